"""Conversion of files to a format that browsers play.

The format is normally MP3: every browser plays it (Safari before 18.4 does not play Ogg Opus), and PyAV's wheels
include LAME. Without LAME, it is WAV. FFmpeg mixes more than two channels down to stereo.
"""

import contextlib
import itertools
import math
import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import av
import numpy as np

from musicsim._arrays import Float32Array
from musicsim.audio.formats import BROWSER_EXTENSIONS
from musicsim.audio.reader import SAFE_OPTIONS, TAGS_MAY_BE_BROKEN, AudioSource, Block, SoundReader, open_source
from musicsim.errors import AudioDecodeError

# suffix -> codec, sample format, sampling rates of the codec (empty: any)
_MP3_RATES = (8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000)
_TARGETS: dict[str, tuple[str, str, tuple[int, ...]]] = {
    ".mp3": ("libmp3lame", "fltp", _MP3_RATES),
    ".m4a": ("aac", "fltp", _MP3_RATES),
    ".wav": ("pcm_s16le", "s16", ()),
}
# Chromium and Firefox both decode these. ALAC, WMA, AC-3, ADPCM, mu-law and big-endian PCM fail in at least one.
_BROWSER_CODECS = {"mp3", "vorbis", "opus", "flac", "aac", "pcm_u8", "pcm_s16le", "pcm_s24le", "pcm_f32le"}
_BROWSER_CONTAINERS = {"mp3", "ogg", "flac", "wav", "aac", "mov", "matroska"}
_LAYOUTS = {1: "mono", 2: "stereo", 3: "3.0", 4: "quad", 5: "5.0", 6: "5.1", 7: "6.1", 8: "7.1"}


def plays_in_browser(path: str | os.PathLike[str]) -> bool:
    """Return whether Chromium and Firefox both play a file unchanged.

    The suffix, the container and the codec are checked: for example, an .m4a file with ALAC does not play. The result
    is False for a file that cannot be opened; no error is raised.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> import soundfile
    >>> from musicsim.audio import plays_in_browser
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("song.flac", "song.aiff"):
    ...         soundfile.write(Path(folder) / name, np.zeros(22050), 22050)
    ...         print(name, plays_in_browser(Path(folder) / name))
    ...
    song.flac True
    song.aiff False
    """
    if Path(path).suffix.lower() not in BROWSER_EXTENSIONS:
        return False
    try:
        with av.open(str(Path(path).absolute()), options=SAFE_OPTIONS, **TAGS_MAY_BE_BROKEN) as container:
            streams = container.streams.audio
            if not streams or streams[0].codec_context is None:  # damage can hide the codec
                return False
            codec = streams[0].codec_context.codec.canonical_name
            return codec in _BROWSER_CODECS and container.format.name.split(",")[0] in _BROWSER_CONTAINERS
    except (OSError, ValueError, av.FFmpegError):
        return False


def transcode_suffix() -> str:
    """Return the suffix to use for the target of :func:`transcode`: ".mp3", or ".wav" without LAME.

    Examples
    --------
    >>> from musicsim.audio import transcode_suffix
    >>> transcode_suffix() in (".mp3", ".wav")
    True
    """
    return ".mp3" if "libmp3lame" in av.codec.codecs_available else ".wav"


def transcode(
    source: AudioSource,
    target: str | os.PathLike[str],
    *,
    bitrate: int = 160_000,
    start_s: float = 0.0,
    length_s: float = math.inf,
) -> Path:
    """Write a copy of a source, or of a part of it, that every browser plays; return `target`.

    The suffix of `target` selects the format: .mp3, .m4a (AAC) or .wav (16 bit); see :func:`transcode_suffix`. The file
    appears only when it is complete, and replaces an existing file. `bitrate`, in bits per second, is ignored for .wav.
    The part to copy may extend past the end of the source.

    Mono stays mono, and stereo stays stereo. Memory use does not grow with the length of the file. Raises
    AudioDecodeError if no sound can be decoded from `source`, or from that part of it.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> import soundfile
    >>> from musicsim.audio import decode, transcode
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     soundfile.write(Path(folder) / "song.aiff", np.zeros(44100), 22050)
    ...     part = transcode(Path(folder) / "song.aiff", Path(folder) / "part.wav", start_s=0.5, length_s=1.0)
    ...     print(decode(part).duration_s)
    ...
    1.0
    """
    target = Path(target)
    suffix = target.suffix.lower()
    if suffix not in _TARGETS:
        raise ValueError(f"target={str(target)!r} must end in one of {', '.join(_TARGETS)}.")
    if bitrate <= 0:
        raise ValueError(f"bitrate={bitrate} must be a positive number of bits per second.")
    data, label = open_source(source, None)
    partial = target.with_name(f".{target.stem}.{secrets.token_hex(4)}{suffix}")
    try:
        blocks = cut_blocks(SoundReader(data).blocks(), start_s, start_s + length_s)
        if not _write(blocks, partial, suffix, bitrate):
            raise AudioDecodeError(f"{label} does not contain sound that can be decoded: nothing was written.")
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)
    return target


def cut_blocks(blocks: Iterator[Block], start_s: float, stop_s: float) -> Iterator[Block]:
    """Yield the blocks from `start_s` to `stop_s`; the first and the last may be cut.

    Earlier blocks must also be decoded; later ones are not.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.audio import cut_blocks
    >>> blocks = [(1000, np.zeros((2, 500), np.float32)) for _ in range(4)]  # two seconds of stereo
    >>> [samples.shape for rate, samples in cut_blocks(iter(blocks), 0.25, 1.25)]
    [(2, 250), (2, 500), (2, 250)]
    """
    at_s = 0.0
    for rate, samples in blocks:
        if at_s >= stop_s:
            return
        last = min(samples.shape[1], round((stop_s - at_s) * rate)) if stop_s < math.inf else None
        part = samples[:, max(0, round((start_s - at_s) * rate)) : last]
        if part.shape[1]:
            yield rate, part
        at_s += samples.shape[1] / rate


def _write(blocks: Iterator[Block], path: Path, suffix: str, bitrate: int) -> bool:
    """Encode all blocks; return False if there are none."""
    codec, sample_format, rates = _TARGETS[suffix]
    first = next(blocks, None)
    if first is None:
        return False
    layout = "mono" if len(first[1]) == 1 else "stereo"
    # the lowest rate that loses no treble, or the highest available
    rate = min((r for r in rates if r >= first[0]), default=max(rates)) if rates else first[0]
    bit_rate = None if suffix == ".wav" else bitrate
    with open_encoder(path, codec, sample_format, layout=layout, rate=rate, bit_rate=bit_rate) as encode:
        for frame in resample_blocks(itertools.chain([first], blocks), sample_format, layout, rate):
            encode(frame)
    return True


@contextlib.contextmanager
def open_encoder(
    path: Path, codec: str, sample_format: str, *, layout: str, rate: int, bit_rate: int | None
) -> Iterator[Callable[[av.AudioFrame], None]]:
    """Open an audio file, and yield a function that encodes a frame; leaving the block completes the file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from musicsim.audio import decode, open_encoder, resample_blocks
    >>> blocks = [(22050, np.zeros((1, 22050), np.float32))]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "silence.wav"
    ...     with open_encoder(path, "pcm_s16le", "s16", layout="mono", rate=22050, bit_rate=None) as encode:
    ...         for frame in resample_blocks(iter(blocks), "s16", "mono", 22050):
    ...             encode(frame)
    ...     print(decode(path).duration_s)
    ...
    1.0
    """
    with av.open(str(path.absolute()), "w") as container:
        stream = cast(av.AudioStream, container.add_stream(codec, rate=rate, layout=layout))
        stream.codec_context.format = av.AudioFormat(sample_format)
        if bit_rate is not None:
            stream.bit_rate = bit_rate
        yield lambda frame: container.mux(stream.encode(frame))
        container.mux(stream.encode(None))


def resample_blocks(blocks: Iterator[Block], sample_format: str, layout: str, rate: int) -> Iterator[av.AudioFrame]:
    """Convert blocks of any rate and number of channels to frames of one format.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.audio import resample_blocks
    >>> blocks = [(44100, np.zeros((2, 44100), np.float32))]
    >>> frames = list(resample_blocks(iter(blocks), "s16", "mono", 22050))
    >>> sum(frame.samples for frame in frames), frames[0].format.name
    (22050, 's16')
    """
    for (block_rate, _), run in itertools.groupby(blocks, key=lambda b: (b[0], len(b[1]))):
        resampler = av.AudioResampler(format=sample_format, layout=layout, rate=rate)
        blocks_and_end = itertools.chain((as_frame(block_rate, samples) for _, samples in run), [None])
        for frame in itertools.chain.from_iterable(map(resampler.resample, blocks_and_end)):
            # the encoder counts the samples itself; time stamps from several resamplers would go backward
            frame.pts = None
            yield frame


def as_frame(rate: int, samples: Float32Array) -> av.AudioFrame:
    """Return a block as a frame, with 0 for nan and infinity; more than eight channels become one.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.audio import as_frame
    >>> frame = as_frame(22050, np.zeros((2, 1024), np.float32))
    >>> frame.samples, frame.sample_rate, frame.layout.name
    (1024, 22050, 'stereo')
    """
    channels = samples if len(samples) in _LAYOUTS else samples.mean(axis=0, keepdims=True)
    finite = np.nan_to_num(channels.T, nan=0.0, posinf=0.0, neginf=0.0)
    # packed, because PyAV cannot fill planar frames with eight channels
    frame = av.AudioFrame.from_ndarray(finite.reshape(1, -1), format="flt", layout=_LAYOUTS[len(channels)])
    frame.sample_rate = rate
    return frame
