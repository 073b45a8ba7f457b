"""Sound in, numbers out: decoding, delta-MFCC, browser-playable copies and outlines for drawing."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
