"""The HTTP side of the app: who may ask, sound by song id, and the interface for other programs."""

from musicsim.api.guard import Guard, named_hosts
from musicsim.api.routes import routes

__all__ = ["Guard", "named_hosts", "routes"]
