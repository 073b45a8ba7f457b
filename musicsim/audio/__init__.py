"""Sound in, numbers out: decoding, delta-MFCC, browser-playable copies and outlines for drawing."""

from musicsim.errors import AudioDecodeError, AudioError, AudioTooShortError

from .analysis import ASPECT_VERSION, TYPICAL_S, Sound, analyse_sound
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
from .harmony import HARMONY_SIZE, harmony
from .rhythm import RHYTHM_SIZE, TEMPOS, rhythm
from .waveform import peaks

__all__ = [
    "ASPECT_VERSION",
    "AUDIO_EXTENSIONS",
    "BROWSER_EXTENSIONS",
    "DELTA_WIDTH",
    "FEATURE_CHANGES",
    "FEATURE_VERSION",
    "FRAME",
    "HARMONY_SIZE",
    "HOP",
    "RHYTHM_SIZE",
    "SAMPLE_RATE",
    "TEMPOS",
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
    "harmony",
    "load",
    "media_type",
    "mfcc",
    "peaks",
    "plays_in_browser",
    "rhythm",
    "transcode",
    "transcode_suffix",
]
