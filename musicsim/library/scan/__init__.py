"""Scans: find audio files in folders, analyze them in worker processes, and add them to the library.

This package may import `stores` and everything below it. Names are imported on first use, because importing the
decoder takes a tenth of a second and most commands do not need it.
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
