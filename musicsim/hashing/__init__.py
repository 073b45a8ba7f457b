"""Bit codes of songs (learned for a task, random, or spectral), and votes of the nearest codes."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
