"""A collection of generated music, with listeners, to try musicsim on without any music of one's own."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
