"""Comparisons ("is this more like that, or like this?") and the spaces that are learned from them."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
