from .add_music import add_and_refresh as add_and_refresh
from .add_music import build_demo as build_demo
from .add_music import scan_again as scan_again
