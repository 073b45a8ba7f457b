"""Relevance of songs to queries, from labels, lists and plays."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
