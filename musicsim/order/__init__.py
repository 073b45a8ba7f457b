"""Comparisons of pairs of songs ("A and B are more similar than C and D") and embeddings learned from them."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
