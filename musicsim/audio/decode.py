"""Decode a file, bytes or a file object to mono samples of one rate.

Conventions: samples are float32, full scale is 1.0, mono is the mean of all channels (stereo and
surround alike, as in librosa), and times are seconds of decoded sound, not of what a header or a tag
claims. Decoding goes on behind damage, and what was lost is listed in `Decoded.notes`. The samples equal
librosa's where it reads the same packets: soxr's HQ filter at the file's own rate, fed block by
block, so that of a long song only the mono result is held (88 kB a second; 159 MB for 30 minutes).
"""

from __future__ import annotations

from dataclasses import dataclass

import av
import numpy as np

from musicsim._arrays import Float32Array
from musicsim.audio._mono import check_duration, read_mono
from musicsim.audio.formats import DECODERS
from musicsim.audio.reader import AudioSource, open_source


def without_decoder() -> list[str]:
    """Those of :data:`AUDIO_EXTENSIONS` that the FFmpeg on this machine cannot decode."""
    return sorted(ending for ending, name in DECODERS.items() if name not in av.codecs_available)


@dataclass(frozen=True, slots=True)
class Decoded:
    """The sound of one source."""

    samples: Float32Array  # (n_samples,), float32, mono, full scale 1.0
    sr: int  # samples per second
    duration_s: float  # length of `samples` in seconds
    expected_s: float | None  # length of the whole file as its container states it; None if it states none
    # what a listener should know: damage that was skipped, channels that cancel, NaN samples
    notes: tuple[str, ...]


def load(source: AudioSource, *, sr: int = 22050, offset: float = 0.0, duration: float | None = None) -> Float32Array:
    """Decode `source` to mono samples; see :func:`decode`, which also reports what was wrong with it.

    Returns
    -------
    ndarray of shape (n_samples,), float32, full scale 1.0

    Raises
    ------
    AudioDecodeError
        If nothing can be decoded; the message names the file and what to do.
    """
    return decode(source, sr=sr, offset=offset, duration=duration).samples


def decode(
    source: AudioSource, *, sr: int = 22050, offset: float = 0.0, duration: float | None = None, name: str | None = None
) -> Decoded:
    """Decode a path, bytes or a binary file object to mono samples at `sr`.

    Parameters
    ----------
    source : path, bytes-like or binary file object
        A file object is read into memory from its current position, and put back there if it can
        seek.
    sr : int > 0
        Samples per second of the result.
    offset, duration : float, seconds
        The part to keep, by decoded time: 0 <= offset, 0.001 <= duration; None keeps all to the end.
        Everything before `offset` is decoded and dropped, since seeking in damaged or VBR files is
        inexact.
    name : str, optional
        What messages call the source; default is its path or its `name`.

    Returns
    -------
    Decoded

    Raises
    ------
    AudioDecodeError
        If the file is missing, a folder, empty, holds no sound, or ends before `offset`.
    ValueError, TypeError
        If another argument is out of range, or `source` is none of the above.

    Notes
    -----
    Digital silence is legal. If the mix is silent and a channel is not (right = -left), the loudest
    channel is taken, which costs a second decoding.
    """
    if not (np.isfinite(sr) and sr >= 1):
        raise ValueError(f"sr={sr} must be at least 1 sample a second.")
    if not (np.isfinite(offset) and offset >= 0):
        raise ValueError(f"offset={offset} must be zero or more seconds.")
    check_duration(duration)
    opened, label = open_source(source, name)
    sound = read_mono(opened, label, sr, _Samples, offset, duration)
    samples = sound.sink.finish()
    return Decoded(samples, int(sr), len(samples) / sr, sound.expected_s, sound.notes)


class _Samples:
    """All samples in one array."""

    def __init__(self) -> None:
        self.n_samples = 0
        self._buffer = np.empty(0, np.float32)

    def add(self, samples: Float32Array) -> None:
        needed = self.n_samples + len(samples)
        if needed > len(self._buffer):
            # growing in place by a quarter: the whole song is never held twice
            self._buffer.resize(max(needed, len(self._buffer) * 5 // 4, 1 << 20), refcheck=False)
        self._buffer[self.n_samples : needed] = samples
        self.n_samples = needed

    def finish(self) -> Float32Array:
        # no copy: the block of memory is cut to its used length
        self._buffer.resize(self.n_samples, refcheck=False)
        return self._buffer
