"""Playlists with a reason for every step: random walks on a hypergraph of songs."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
