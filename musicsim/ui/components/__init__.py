"""Components that several pages share: player, song list, finder, map and jobs; names are imported on first use."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
