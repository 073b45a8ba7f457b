"""Quality measures for neighbors, hubs, rankings, playlist continuation and listening tests, and splits by artist."""

import lazy_loader as lazy

from musicsim._old_names import load_renamed

_load, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
__getattr__ = load_renamed(_load, {"nearest_neighbours": "nearest_neighbors"})
