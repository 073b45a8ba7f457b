"""File formats of mixes, and writing samples to them."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from musicsim import audio
from musicsim._arrays import Float32Array

_CHUNK = 1 << 16  # number of samples per call to the encoder

Write = Callable[[Float32Array], None]


class MixFormat(NamedTuple):
    """An audio format; a lossless one has no bit rate."""

    codec: str
    sample_format: str
    rate: int
    bit_rate: int | None


_FORMATS = {
    ".m4a": MixFormat("aac", "fltp", 44_100, 192_000),
    ".mp3": MixFormat("libmp3lame", "fltp", 44_100, 192_000),
    ".opus": MixFormat("libopus", "flt", 48_000, 128_000),
    ".flac": MixFormat("flac", "s16", 44_100, None),
    ".wav": MixFormat("pcm_s16le", "s16", 44_100, None),
}
MIX_ENDINGS = tuple(_FORMATS)  # file extensions of mixes, one per format


def find_format(target: Path) -> MixFormat:
    """Return the format for a file extension. Raises ValueError if it is unknown or cannot be encoded."""
    import av

    usable = [ending for ending, form in _FORMATS.items() if form.codec in av.codec.codecs_available]
    if target.suffix.lower() not in usable:
        raise ValueError(f"target={str(target)!r} must end in one of {', '.join(usable)}.")
    return _FORMATS[target.suffix.lower()]


@contextlib.contextmanager
def open_writer(path: Path, form: MixFormat) -> Iterator[Write]:
    """Open an audio file, and yield a function that encodes samples (2, n); leaving the block completes the file."""
    codec, sample_format, rate, bit_rate = form
    with audio.open_encoder(path, codec, sample_format, layout="stereo", rate=rate, bit_rate=bit_rate) as encode:

        def write(samples: Float32Array) -> None:
            for start in range(0, samples.shape[1], _CHUNK):
                encode(audio.as_frame(rate, samples[:, start : start + _CHUNK]))

        yield write
