"""Sound in, numbers out: decoding, delta-MFCC, browser-playable copies and outlines for drawing."""

from musicsim.errors import AudioDecodeError, AudioError, AudioTooShortError

from .analysis import TYPICAL_S, Sound, analyse_sound
from .decode import AUDIO_EXTENSIONS, Decoded, decode, load
from .encode import BROWSER_EXTENSIONS, media_type, plays_in_browser, transcode, transcode_suffix
from .features import (
    DELTA_WIDTH,
    FEATURE_CHANGES,
    FEATURE_VERSION,
    FRAME,
    HOP,
    SAMPLE_RATE,
    delta_mfcc,
    derivative_blocks,
    derivatives,
    mfcc,
)
from .waveform import peaks

__all__ = [
    "AUDIO_EXTENSIONS",
    "BROWSER_EXTENSIONS",
    "DELTA_WIDTH",
    "FEATURE_CHANGES",
    "FEATURE_VERSION",
    "FRAME",
    "HOP",
    "SAMPLE_RATE",
    "TYPICAL_S",
    "AudioDecodeError",
    "AudioError",
    "AudioTooShortError",
    "Decoded",
    "Sound",
    "analyse_sound",
    "decode",
    "delta_mfcc",
    "derivative_blocks",
    "derivatives",
    "load",
    "media_type",
    "mfcc",
    "peaks",
    "plays_in_browser",
    "transcode",
    "transcode_suffix",
]
