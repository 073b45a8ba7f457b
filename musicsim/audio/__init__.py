"""Audio: decoding, delta-MFCC and other features, copies that browsers can play, and waveform outlines."""

import lazy_loader as lazy

from musicsim._old_names import load_renamed

_load, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
__getattr__ = load_renamed(_load, {"analyse_sound": "analyze_sound", "HEARD": "DESCRIPTORS"})
