"""Sound in, numbers out: decoding, delta-MFCC, browser-playable copies and outlines for drawing."""

from musicsim.errors import AudioDecodeError, AudioError, AudioTooShortError

from .decode import AUDIO_EXTENSIONS, Decoded, decode, load
from .encode import BROWSER_EXTENSIONS, media_type, plays_in_browser, transcode, transcode_suffix
from .features import DELTA_WIDTH, FEATURE_VERSION, FRAME, HOP, SAMPLE_RATE, delta_mfcc, derivatives, mfcc
from .waveform import peaks

__all__ = [
    "AUDIO_EXTENSIONS",
    "BROWSER_EXTENSIONS",
    "DELTA_WIDTH",
    "FEATURE_VERSION",
    "FRAME",
    "HOP",
    "SAMPLE_RATE",
    "AudioDecodeError",
    "AudioError",
    "AudioTooShortError",
    "Decoded",
    "decode",
    "delta_mfcc",
    "derivatives",
    "load",
    "media_type",
    "mfcc",
    "peaks",
    "plays_in_browser",
    "transcode",
    "transcode_suffix",
]
