"""Name, find and fetch the public data sets of the experiments; nothing is fetched without a call of :func:`fetch`."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
