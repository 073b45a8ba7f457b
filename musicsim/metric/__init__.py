"""Learn metrics for songs from similarity: rankings, pairs, classes, or relevance feedback."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
