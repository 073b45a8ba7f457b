"""Audio: decoding, delta-MFCC and other features, copies that browsers can play, and waveform outlines."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
