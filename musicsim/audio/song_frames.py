"""Stored audio features of a song: coefficients and fluctuation. This module does not import any decoder."""

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from musicsim._arrays import Float16Array, Float32Array, FloatingArray, Int64Array
from musicsim.audio.features import HOP, N_MFCC, SAMPLE_RATE, derivative_blocks, derivatives_at
from musicsim.audio.fluctuation import PATTERN_S

ASPECT_VERSION = 1
"""Version of the harmony and rhythm features, which some songs lack; timbre features use `FEATURE_VERSION`."""


@dataclass(frozen=True, slots=True)
class SongFrames:
    """Coefficients and fluctuation of a song or part of a song."""

    mfcc: FloatingArray  # (n_frames, 13)
    # (n_patterns, 594), see musicsim.audio.fluctuation(); None in feature version 2
    fluctuation: Float16Array | None
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
        """Return the frames from `start` to `stop`, and the patterns (at least one) whose middle is in that range."""
        patterns = self.fluctuation
        if patterns is not None:
            # a pattern covers two steps, so its middle is the start of the next pattern
            step = PATTERN_S * SAMPLE_RATE / HOP
            first, end = (math.ceil(frame / step) - 1 for frame in (start, stop))
            first = min(max(first, 0), len(patterns) - 1)
            patterns = patterns[first : max(end, first + 1)]
        return SongFrames(self.mfcc[start:stop], patterns)


def read_song_frames(path: Path) -> SongFrames:
    """Read a file of features; the coefficients are a read-only memory map.

    The file contains arrays in NumPy's format, one after another: coefficients, fluctuation (except in feature version
    2), and the values per part (if :func:`append_parts` was called). Raises FileNotFoundError if the file does not
    exist, and ValueError or another NumPy error if it is damaged.
    """
    mfcc = np.load(path, mmap_mode="r", allow_pickle=False)
    if mfcc.ndim != 2 or mfcc.shape[1] != N_MFCC or mfcc.dtype != np.float16:
        raise ValueError(f"it contains a {mfcc.dtype} array of shape {mfcc.shape} instead of coefficients.")
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(mfcc.offset + mfcc.nbytes)
        rest: list[Any] = []
        while len(rest) < 2 and file.tell() < size:
            rest.append(np.lib.format.read_array(file, allow_pickle=False))
    fluctuation, parts = (*rest, None, None)[:2]
    return SongFrames(mfcc, fluctuation, parts)


def append_parts(path: Path, parts: FloatingArray) -> None:
    """Append :attr:`SongFrames.parts` to a file that has coefficients and fluctuation."""
    with path.open("ab") as file:
        np.lib.format.write_array(file, parts, version=(1, 0), allow_pickle=False)
