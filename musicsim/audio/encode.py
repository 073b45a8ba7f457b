"""Files that browsers play, and conversion of others to one of them.

MP3 is written, because every browser plays it, Safari before 18.4 (no Ogg Opus) included, and because
PyAV's wheels carry LAME; a PyAV without it writes WAV instead. Channels beyond two are mixed
down to stereo by FFmpeg's rules.
"""

from __future__ import annotations

import itertools
import math
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import av
import numpy as np

from musicsim.audio.formats import BROWSER_EXTENSIONS
from musicsim.audio.reader import SAFE_OPTIONS, TAGS_MAY_BE_BROKEN, AudioSource, Block, SoundReader, open_source
from musicsim.errors import AudioDecodeError

# suffix -> codec, sample format, rates the codec takes (none: any)
_MP3_RATES = (8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000)
_TARGETS: dict[str, tuple[str, str, tuple[int, ...]]] = {
    ".mp3": ("libmp3lame", "fltp", _MP3_RATES),
    ".m4a": ("aac", "fltp", _MP3_RATES),
    ".wav": ("pcm_s16le", "s16", ()),
}
# Chromium and Firefox both decode these; ALAC, WMA, AC-3, ADPCM, mu-law and big-endian PCM at least one
# of them refuses.
_BROWSER_CODECS = {"mp3", "vorbis", "opus", "flac", "aac", "pcm_u8", "pcm_s16le", "pcm_s24le", "pcm_f32le"}
_BROWSER_CONTAINERS = {"mp3", "ogg", "flac", "wav", "aac", "mov", "matroska"}
_LAYOUTS = {1: "mono", 2: "stereo", 3: "3.0", 4: "quad", 5: "5.0", 6: "5.1", 7: "6.1", 8: "7.1"}


def plays_in_browser(path: str | os.PathLike[str]) -> bool:
    """Tell whether Chromium and Firefox both play a file as it is.

    Looks at the suffix, then at the container and the codec: an .m4a with ALAC, for example, does not
    play. A file that cannot be opened does not either; nothing is raised.
    """
    if Path(path).suffix.lower() not in BROWSER_EXTENSIONS:
        return False
    try:
        with av.open(str(Path(path).absolute()), options=SAFE_OPTIONS, **TAGS_MAY_BE_BROKEN) as container:
            streams = container.streams.audio
            if not streams or streams[0].codec_context is None:  # damage may hide which codec it is
                return False
            codec = streams[0].codec_context.codec.canonical_name
            return codec in _BROWSER_CODECS and container.format.name.split(",")[0] in _BROWSER_CONTAINERS
    except (OSError, ValueError, av.FFmpegError):
        return False


def transcode_suffix() -> str:
    """Return the suffix to give the target of :func:`transcode`: ".mp3", or ".wav" without LAME."""
    return ".mp3" if "libmp3lame" in av.codec.codecs_available else ".wav"


def transcode(
    source: AudioSource,
    target: str | os.PathLike[str],
    *,
    bitrate: int = 160_000,
    start_s: float = 0.0,
    length_s: float = math.inf,
) -> Path:
    """Write a copy that every browser plays, of all or a part.

    Parameters
    ----------
    source : path, bytes-like or binary file object
    target : path
        Its suffix chooses the format: .mp3, .m4a (AAC) or .wav (16 bit); see :func:`transcode_suffix`.
        It appears only when it is complete; an older file of this name is replaced.
    bitrate : int, bits per second
        Not used for .wav.
    start_s, length_s : float, seconds
        The part; what of it lies behind the end is left out.

    Returns
    -------
    Path
        `target`.

    Raises
    ------
    AudioDecodeError
        If `source` holds no sound that can be decoded, or none in that part.
    ValueError
        If the suffix of `target` is another one, or `bitrate` is not positive.

    Notes
    -----
    Mono stays mono, stereo stays stereo. Works block by block, so a long file takes no more
    memory than a short one.
    """
    target = Path(target)
    suffix = target.suffix.lower()
    if suffix not in _TARGETS:
        raise ValueError(f"target={str(target)!r} must end in one of {', '.join(_TARGETS)}.")
    if bitrate <= 0:
        raise ValueError(f"bitrate={bitrate} must be a positive number of bits a second.")
    opened, label = open_source(source, None)
    partial = target.with_name(f".{target.stem}.{secrets.token_hex(4)}{suffix}")
    try:
        blocks = _part(SoundReader(opened).blocks(), start_s, start_s + length_s)
        if not _write(blocks, partial, suffix, bitrate):
            raise AudioDecodeError(f"{label} holds no sound that can be read: nothing was written.")
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)
    return target


def _part(blocks: Iterator[Block], start_s: float, stop_s: float) -> Iterator[Block]:
    """The blocks, or parts of them, of some seconds."""
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
    """Encode all blocks; return whether there was one."""
    codec, sample_format, rates = _TARGETS[suffix]
    first = next(blocks, None)
    if first is None:
        return False
    layout = "mono" if len(first[1]) == 1 else "stereo"
    rate = _nearest_rate(first[0], rates)
    with av.open(str(path.absolute()), "w") as container:
        stream = cast(av.AudioStream, container.add_stream(codec, rate=rate, layout=layout))
        stream.codec_context.format = av.AudioFormat(sample_format)
        if suffix != ".wav":
            stream.bit_rate = bitrate
        for frame in resampled(itertools.chain([first], blocks), sample_format, layout, rate):
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return True


def _nearest_rate(rate: int, rates: tuple[int, ...]) -> int:
    """Return the lowest legal rate that loses no treble, or the highest there is."""
    return min((r for r in rates if r >= rate), default=max(rates)) if rates else rate


def resampled(blocks: Iterator[Block], sample_format: str, layout: str, rate: int) -> Iterator[av.AudioFrame]:
    """Bring blocks of any rate and number of channels to one format."""
    for (block_rate, n_channels), run in itertools.groupby(blocks, key=lambda b: (b[0], len(b[1]))):
        resampler = av.AudioResampler(format=sample_format, layout=layout, rate=rate)
        for _, samples in run:
            channels = samples if n_channels in _LAYOUTS else samples.mean(axis=0, keepdims=True)
            finite = np.ascontiguousarray(np.nan_to_num(channels, nan=0.0, posinf=0.0, neginf=0.0))
            frame = av.AudioFrame.from_ndarray(finite, format="fltp", layout=_LAYOUTS[len(finite)])
            frame.sample_rate = block_rate
            yield from _timeless(resampler.resample(frame))
        yield from _timeless(resampler.resample(None))


def _timeless(frames: list[av.AudioFrame]) -> Iterator[av.AudioFrame]:
    for frame in frames:
        # the encoder counts the samples itself; stamps of several resamplers would run backwards
        frame.pts = None
        yield frame
