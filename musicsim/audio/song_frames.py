"""What is kept of the sound of a song, and read again: coefficients and patterns of fluctuation.

Apart from what decodes sound, which whoever looks something up does not need.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from musicsim._arrays import Float16Array, Float32Array, FloatingArray, Int64Array
from musicsim.audio.features import HOP, N_MFCC, SAMPLE_RATE, derivative_blocks, derivatives_at
from musicsim.audio.fluctuation import PATTERN_S

ASPECT_VERSION = 1
"""Of the numbers of harmony and rhythm, which songs may lack; those of timbre have `FEATURE_VERSION`."""


@dataclass(frozen=True, slots=True)
class SongFrames:
    """Coefficients and fluctuation of a song, or of a part of it."""

    mfcc: FloatingArray  # (n_frames, 13), floating
    # (n_patterns, 594), or None of feature version 2: see musicsim.audio.fluctuation()
    fluctuation: Float16Array | None
    # (n_parts, n), floating: what was worked out of the frames of parts when they were kept, of whatever version
    parts: FloatingArray | None = None

    def __len__(self) -> int:
        return len(self.mfcc)

    @property
    def mean_fluctuation(self) -> Float32Array:
        """The mean pattern, (594,), of a song that has patterns."""
        assert self.fluctuation is not None
        return self.fluctuation.mean(axis=0, dtype=np.float32)

    def blocks(self) -> Iterator[Float32Array]:
        """Delta-MFCC in blocks, float32 (n, 39); of a song of hours, too, some MB at a time.

        Raises
        ------
        AudioTooShortError
            If there are fewer than 9 frames.
        """
        return derivative_blocks(self.mfcc)

    def rows(self, rows: Int64Array) -> Float32Array:
        """Delta-MFCC of some frames, float32 (n, 39); raises as :meth:`blocks`."""
        return derivatives_at(self.mfcc, rows)

    def part(self, start: int, stop: int) -> SongFrames:
        """The frames from `start` to `stop`, and the patterns of the blocks whose middle they hold, or the nearest."""
        patterns = self.fluctuation
        if patterns is not None:
            # a block is as long as two steps, so that its middle is where the next one begins
            step = PATTERN_S * SAMPLE_RATE / HOP
            first, end = (math.ceil(frame / step) - 1 for frame in (start, stop))
            first = min(max(first, 0), len(patterns) - 1)
            patterns = patterns[first : max(end, first + 1)]
        return SongFrames(self.mfcc[start:stop], patterns)


def read_song_frames(path: Path) -> SongFrames:
    """Read a file; the coefficients as a read-only memory map.

    Raises FileNotFoundError; ValueError and others of numpy if the file is damaged.

    In it are arrays in NumPy's format, one after the other: coefficients, fluctuation, and numbers of parts. Files of
    feature version 2 end after the first, and a file has no numbers of parts until :func:`append_parts` writes them.
    """
    mfcc = np.load(path, mmap_mode="r", allow_pickle=False)
    if mfcc.ndim != 2 or mfcc.shape[1] != N_MFCC or mfcc.dtype != np.float16:
        raise ValueError(f"it holds no coefficients, but {mfcc.dtype} of the shape {mfcc.shape}.")
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(mfcc.offset + mfcc.nbytes)
        rest: list[Any] = []
        while len(rest) < 2 and file.tell() < size:
            rest.append(np.lib.format.read_array(file, allow_pickle=False))
    fluctuation, parts = (*rest, None, None)[:2]
    return SongFrames(mfcc, fluctuation, parts)


def append_parts(path: Path, parts: FloatingArray) -> None:
    """Write what :attr:`SongFrames.parts` is behind the coefficients and the fluctuation of a file."""
    with path.open("ab") as file:
        np.lib.format.write_array(file, parts, version=(1, 0), allow_pickle=False)
