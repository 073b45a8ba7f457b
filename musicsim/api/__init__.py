"""The HTTP part of the app: access control, the audio of songs, and the interface for other programs."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
