"""File name suffixes of the formats that can be decoded or rendered, and of those that browsers play."""

import os
from pathlib import Path

# Suffixes that a scan considers, each with FFmpeg's decoder for its usual codec. Containers that are mostly used for
# films (mp4, webm, mkv, avi, ts) are not scanned, but `decode` can read their sound.
DECODERS = {
    **dict.fromkeys((".wav", ".wave", ".w64", ".rf64", ".caf", ".voc"), "pcm_s16le"),
    **dict.fromkeys((".aiff", ".aif", ".aifc", ".au", ".snd"), "pcm_s16be"),
    **{".flac": "flac", ".alac": "alac", ".ape": "ape", ".wv": "wavpack", ".tta": "tta", ".tak": "tak"},
    **{".shn": "shorten", ".dsf": "dsd_lsbf_planar", ".mp3": "mp3float", ".mp2": "mp2float", ".spx": "speex"},
    **{".ogg": "vorbis", ".oga": "vorbis", ".opus": "opus", ".m4a": "aac", ".aac": "aac", ".m4b": "aac"},
    **{".wma": "wmav2", ".mka": "aac", ".ac3": "ac3", ".eac3": "eac3", ".dts": "dca", ".mpc": "mpc8"},
    ".amr": "amrnb",
}
# suffixes of the formats that need an optional library: tracker modules, and MIDI
NOTES_EXTENSIONS = {"MOD": (".mod",), "XM": (".xm",), "IT": (".it",), "S3M": (".s3m",), "MIDI": (".mid", ".midi")}
AUDIO_EXTENSIONS = frozenset(DECODERS).union(*NOTES_EXTENSIONS.values())
BROWSER_EXTENSIONS = frozenset({".mp3", ".ogg", ".oga", ".opus", ".flac", ".wav", ".m4a", ".aac", ".webm"})

_MEDIA_TYPES = {
    **dict.fromkeys((".ogg", ".oga", ".opus"), "audio/ogg"),
    **{".mp3": "audio/mpeg", ".flac": "audio/flac", ".wav": "audio/wav"},
    **{".m4a": "audio/mp4", ".aac": "audio/aac", ".webm": "audio/webm"},
}


def media_type(path: str | os.PathLike[str]) -> str:
    """Return the MIME type that a browser expects for the suffix of `path`.

    Examples
    --------
    >>> from musicsim.audio import media_type
    >>> media_type("Tides.mp3"), media_type("cover.xyz")
    ('audio/mpeg', 'application/octet-stream')
    """
    return _MEDIA_TYPES.get(Path(path).suffix.lower(), "application/octet-stream")
