"""Gaussian mixtures of frames: of songs, with their divergence, and of tags (thesis 5.4.3)."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
