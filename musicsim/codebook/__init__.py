"""Codewords: online Hartigan k-means over frames, and songs as histograms of their nearest codewords."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
