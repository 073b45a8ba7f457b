"""Audio: decoding, delta-MFCC and other features, copies that browsers can play, and waveform outlines."""

from musicsim._old_names import load_renamed
from musicsim.extras import attach_stub

_load, __dir__, __all__ = attach_stub(__name__, __file__, "audio")
__getattr__ = load_renamed(_load, {"analyse_sound": "analyze_sound", "HEARD": "DESCRIPTORS"})
