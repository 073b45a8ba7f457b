from .guard import Guard as Guard
from .guard import read_allowed_hosts as read_allowed_hosts
from .http import http_interface as http_interface
from .responses import filter_routes as filter_routes
from .routes import path_prefix as path_prefix
from .routes import routes as routes
from .visitors import Visitors as Visitors
