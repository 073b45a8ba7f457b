"""Learning a metric from plays, labels, playlists or answers, and evaluating it on held-out artists.

This package may import snapshot, models and playlists. It returns learned models, which refresh saves. Its compiled
functions are imported on first use.
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
