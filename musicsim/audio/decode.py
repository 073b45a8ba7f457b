"""Decode a file, bytes or a file object to mono samples at a single sample rate.

Samples are float32, full scale 1.0. Mono is the mean of all channels (stereo and surround, as in librosa). Times are
seconds of decoded sound, not times from headers or tags. Decoding continues after damage; `Decoded.notes` lists the
losses. The samples equal librosa's if it reads the same packets: both resample the mix with soxr's HQ filter. Files are
decoded block by block, so only the mono result is in memory (88 kB per second; 159 MB for 30 minutes).
"""

from dataclasses import dataclass

import av
import numpy as np

from musicsim._arrays import Float32Array
from musicsim.audio._mono import read_mono
from musicsim.audio.formats import DECODERS
from musicsim.audio.reader import AudioSource, open_source


def list_undecodable_extensions() -> list[str]:
    """Return the :data:`AUDIO_EXTENSIONS` that FFmpeg should decode, but cannot decode on this machine.

    Examples
    --------
    >>> from musicsim.audio import list_undecodable_extensions
    >>> ".flac" in list_undecodable_extensions()
    False
    """
    return sorted(suffix for suffix, name in DECODERS.items() if name not in av.codecs_available)


@dataclass(frozen=True, slots=True)
class Decoded:
    """The sound of one source.

    Examples
    --------
    >>> import io
    >>> import numpy as np
    >>> import soundfile
    >>> from musicsim.audio import decode
    >>> file = io.BytesIO()
    >>> soundfile.write(file, np.zeros(44100), 44100, format="FLAC")
    >>> sound = decode(file.getvalue())
    >>> sound.expected_s, sound.notes  # neither cut nor damaged
    (1.0, ())
    """

    samples: Float32Array  # (n_samples,), float32, mono, full scale 1.0
    sr: int  # samples per second
    duration_s: float  # length of `samples` in seconds
    expected_s: float | None  # length of the whole file according to the container, or None
    notes: tuple[str, ...]  # warnings: skipped damage, canceling channels, NaN samples


def load(source: AudioSource, *, sr: int = 22050, offset: float = 0.0, duration: float | None = None) -> Float32Array:
    """Decode `source` to mono samples, like :func:`decode`, but without a report of damage.

    Returns
    -------
    ndarray of shape (n_samples,), float32, full scale 1.0

    Examples
    --------
    >>> import io
    >>> import numpy as np
    >>> import soundfile
    >>> from musicsim.audio import load
    >>> file = io.BytesIO()
    >>> soundfile.write(file, np.zeros((44100, 2)), 44100, format="WAV")
    >>> load(file.getvalue()).shape
    (22050,)
    """
    return decode(source, sr=sr, offset=offset, duration=duration).samples


def decode(
    source: AudioSource, *, sr: int = 22050, offset: float = 0.0, duration: float | None = None, name: str | None = None
) -> Decoded:
    """Decode a path, bytes or a binary file object to mono samples at `sr`.

    Parameters
    ----------
    source : path, bytes-like or binary file object
        A file object is read into memory from its current position, which is restored if it can seek.
    sr : int > 0; samples per second in the result
    offset, duration : float, seconds
        Start (>= 0) and length (>= 0.001; None: up to the end) of the part to return, in decoded time. Everything
        before `offset` is decoded and dropped, because seeking in damaged or VBR files is inexact.
    name : str, optional; name of the source in messages; default is its path or its `name`

    Returns
    -------
    Decoded

    Raises
    ------
    AudioDecodeError
        If the file is missing, a folder, empty or without sound, or ends before `offset`.

    Notes
    -----
    Digital silence is legal. If the mix is silent but a channel is not (right = -left), the loudest channel is used,
    which requires decoding twice.

    Examples
    --------
    >>> import io
    >>> import numpy as np
    >>> import soundfile
    >>> from musicsim.audio import decode
    >>> file = io.BytesIO()
    >>> soundfile.write(file, np.zeros((44100, 2)), 44100, format="WAV")
    >>> sound = decode(file.getvalue(), offset=0.25)
    >>> round(sound.duration_s, 2), sound.samples.ndim, sound.sr
    (0.75, 1, 22050)
    """
    if not (np.isfinite(sr) and sr >= 1):
        raise ValueError(f"sr={sr} must be at least 1 sample per second.")
    if not (np.isfinite(offset) and offset >= 0):
        raise ValueError(f"offset={offset} must be zero or more seconds.")
    data, label = open_source(source, name)
    sound = read_mono(data, label, sr, _Samples, offset, duration)
    samples = sound.sink.finish()
    return Decoded(samples, int(sr), len(samples) / sr, sound.expected_s, sound.notes)


class _Samples:
    """A sink that collects all samples in one array."""

    def __init__(self) -> None:
        self.n_samples = 0
        self._buffer = np.empty(0, np.float32)

    def add(self, samples: Float32Array) -> None:
        needed = self.n_samples + len(samples)
        if needed > len(self._buffer):
            # grows in place by a quarter, so the song is never in memory twice
            self._buffer.resize(max(needed, len(self._buffer) * 5 // 4, 1 << 20), refcheck=False)
        self._buffer[self.n_samples : needed] = samples
        self.n_samples = needed

    def finish(self) -> Float32Array:
        # shrinks in place, without a copy
        self._buffer.resize(self.n_samples, refcheck=False)
        return self._buffer
