"""Quality measures for neighbors, hubs, rankings, playlist continuation and listening tests, and splits by artist."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
