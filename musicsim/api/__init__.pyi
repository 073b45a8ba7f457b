from .guard import Guard as Guard
from .guard import named_hosts as named_hosts
from .http import http_interface as http_interface
from .offered import offered as offered
from .routes import path_prefix as path_prefix
from .routes import routes as routes
from .visitors import Visitors as Visitors
