"""Common parts of all pages: session state, text, frame and background tasks; names are imported on first use."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
