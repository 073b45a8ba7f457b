"""The HTTP side of the app: sound by song id, and the interface for other programs."""

from musicsim.api.routes import routes

__all__ = ["routes"]
