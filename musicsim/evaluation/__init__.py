"""Measures of quality: neighbours, hubs, rankings, splits by artist, and files of ranking sets."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
