"""Stored audio features of a song: coefficients, fluctuation and spectral shape. This module imports no decoder."""

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from musicsim._arrays import Float16Array, Float32Array, FloatingArray, Int64Array
from musicsim._npy import write_array
from musicsim.audio.features import HOP, N_MFCC, SAMPLE_RATE, derivative_blocks, derivatives_at
from musicsim.audio.fluctuation import PATTERN_S
from musicsim.audio.spectral_shape import SHAPE_FRAMES, SHAPE_ROW

ASPECT_VERSION = 1
"""Version of the harmony and rhythm features, which some songs lack; timbre features use `FEATURE_VERSION`."""


@dataclass(frozen=True, slots=True)
class SongFrames:
    """Coefficients, fluctuation and spectral shape of a song or part of a song.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.audio import SongFrames, mfcc
    >>> song = SongFrames(mfcc(np.random.default_rng(0).normal(0, 0.1, 22050 * 4)), fluctuation=None)
    >>> len(song), len(song.part(100, 200))
    (345, 100)
    >>> song.rows(np.array([0, 10])).shape  # with derivatives
    (2, 39)
    """

    mfcc: FloatingArray  # (n_frames, 13)
    # (n_patterns, 594), see musicsim.audio.fluctuation(); None in feature version 2
    fluctuation: Float16Array | None
    # (n_blocks, 351), see musicsim.audio.spectral_shape(); None before feature version 4
    spectral_shape: Float32Array | None = None
    # (n_parts, n): values for each part of the song, computed when the frames were stored
    parts: FloatingArray | None = None
    network_vectors: Mapping[str, Float32Array] = field(default_factory=dict)  # of a whole sound, keyed by network

    def __len__(self) -> int:
        return len(self.mfcc)

    @property
    def mean_fluctuation(self) -> Float32Array:
        """Mean fluctuation pattern, (594,); the song must have patterns."""
        assert self.fluctuation is not None
        return self.fluctuation.mean(axis=0, dtype=np.float32)

    def blocks(self) -> Iterator[Float32Array]:
        """Return delta-MFCC in blocks, float32 (n, 39), a few MB at a time.

        Raises
        ------
        AudioTooShortError
            If there are fewer than 9 frames.
        """
        return derivative_blocks(self.mfcc)

    def rows(self, rows: Int64Array) -> Float32Array:
        """Return the delta-MFCC of some frames, float32 (n, 39); raises the same errors as :meth:`blocks`."""
        return derivatives_at(self.mfcc, rows)

    def part(self, start: int, stop: int) -> "SongFrames":
        """Return the frames from `start` to `stop`; of patterns and blocks, return those whose middle is in that range.

        There is at least one pattern and one block.
        """
        patterns, blocks = self.fluctuation, self.spectral_shape
        if patterns is not None:
            # a pattern covers two steps, so its middle is the start of the next pattern
            step = PATTERN_S * SAMPLE_RATE / HOP
            patterns = patterns[_slice_of(len(patterns), *(math.ceil(frame / step) - 1 for frame in (start, stop)))]
        if blocks is not None:
            blocks = blocks[_slice_of(len(blocks), *(math.ceil(frame / SHAPE_FRAMES - 0.5) for frame in (start, stop)))]
        return SongFrames(self.mfcc[start:stop], patterns, blocks)


def _slice_of(n: int, first: int, end: int) -> slice:
    """Return a slice of at least one of n items, moved into the range if necessary."""
    first = min(max(first, 0), n - 1)
    return slice(first, max(end, first + 1))


def read_song_frames(path: Path) -> SongFrames:
    """Read a file of features; the coefficients are a read-only memory map.

    The file contains arrays in NumPy's format, one after another: coefficients, fluctuation (since feature version 3),
    spectral shape (since version 4), and the values per part (if :func:`append_parts` was called). Raises
    FileNotFoundError if the file does not exist, and ValueError or another NumPy error if it is damaged.

    Examples
    --------
    >>> import io, tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> import soundfile
    >>> from musicsim.audio import analyze_sound, read_song_frames
    >>> file = io.BytesIO()
    >>> soundfile.write(file, 0.5 * np.sin(2 * np.pi * 440 * np.arange(44100) / 22050), 22050, format="FLAC")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     features = Path(folder) / "song.npy"
    ...     _ = analyze_sound(file.getvalue(), frames_to=features)
    ...     print(len(read_song_frames(features)))
    ...
    173
    """
    mfcc = np.load(path, mmap_mode="r", allow_pickle=False)
    if mfcc.ndim != 2 or mfcc.shape[1] != N_MFCC or mfcc.dtype != np.float16:
        raise ValueError(f"it contains a {mfcc.dtype} array of shape {mfcc.shape} instead of coefficients.")
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(mfcc.offset + mfcc.nbytes)
        rest: list[Any] = []
        while len(rest) < 3 and file.tell() < size:
            rest.append(np.lib.format.read_array(file, allow_pickle=False))
    if len(rest) > 1 and rest[1].shape[1:] != (SHAPE_ROW,):  # the values per part in version 3
        rest.insert(1, None)
    fluctuation, shape, parts = (*rest, None, None, None)[:3]
    return SongFrames(mfcc, fluctuation, shape, parts)


def append_parts(path: Path, parts: FloatingArray) -> None:
    """Append :attr:`SongFrames.parts` to a file of features that has no such values yet.

    Examples
    --------
    >>> import io, tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> import soundfile
    >>> from musicsim.audio import analyze_sound, append_parts, read_song_frames
    >>> file = io.BytesIO()
    >>> soundfile.write(file, 0.5 * np.sin(2 * np.pi * 440 * np.arange(44100) / 22050), 22050, format="FLAC")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     features = Path(folder) / "song.npy"
    ...     _ = analyze_sound(file.getvalue(), frames_to=features)
    ...     append_parts(features, np.zeros((2, 5), np.float32))
    ...     print(read_song_frames(features).parts.shape)
    ...
    (2, 5)
    """
    with path.open("ab") as file:
        write_array(file, parts)
