"""Scans: find audio files in folders, analyze them in worker processes, and add them to the library."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
