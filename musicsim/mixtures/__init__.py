"""Gaussian mixtures of frames, for songs (with their divergence) and for tags (thesis 5.4.3)."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
