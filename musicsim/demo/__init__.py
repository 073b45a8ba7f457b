"""A collection of generated music, with listeners, for trying musicsim without music of your own."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
