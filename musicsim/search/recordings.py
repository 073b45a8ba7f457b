"""Comparison of two songs, frame by frame: are they the same recording, at the same speed and pitch?

The *changes* of their MFCCs are aligned at the best offset. Another performance, a remix, or a song with the same drum
loop has different changes at different times, even if it sounds similar. Four tests follow:

- *Speed*: short segments are aligned on their own. In the same recording, their offsets lie on a line whose slope is at
  most 0.2%. A difference this small is common, because the clocks of recorders differ.
- *Agreement*: the changes must agree along this line.
- *Timing*: half-second windows of the same recording deviate from the line by less than 5 ms. The notes of another
  performance are earlier or later, even if a machine or a metronome dictates the tempo.
- *Pitch*: the changes of a transposed song are shifted along the frequency axis, unless drums dominate them. Its
  harmony is rotated.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from musicsim._arrays import Float32Array, FloatingArray
from musicsim.audio import HOP, SAMPLE_RATE
from musicsim.search.deviations import estimate_drift, estimate_factor, interpolate, is_transposed, measure_spread
from musicsim.search.frame_changes import (
    MAX_OFFSET,
    N_CONTOURS,
    STRIDE,
    agreement_of,
    align,
    align_coarsely,
    changes,
    low_bands,
    overlap,
    semitone_effects,
)

# A 40-second excerpt excludes most candidates; whole songs are read only for pairs that may be the same. The agreement
# is below 0.3 for excerpts of different songs, and 0.7 or more for poor duplicates (experiments.duplicates).
_EXCERPT = slice(round(10 * SAMPLE_RATE / HOP), round(50 * SAMPLE_RATE / HOP))
_MIN_ROUGH_AGREEMENT = 0.4
# Cache sizes: an excerpt takes 35 kB, and all changes of a four-minute song take 830 kB.
_KEPT_EXCERPTS, _KEPT_SONGS = 4096, 64
MIN_AGREEMENT = 0.82  # Minimum agreement between the changes of two songs
_MAX_DRIFT = 0.002
_MAX_DRIFT_FRAMES = 1.0  # Always allowed in total: the offsets of segments of a very short song are less exact
_MAX_SPREAD = 0.43  # frames; at most 0.25 in duplicates, and 0.55 or more in performances (experiments.duplicates)
_MAX_SEMITONES = 0.35  # at most 0.24 in duplicates, and 0.4 or more in songs a semitone apart without loud drums


@dataclass(frozen=True, slots=True)
class Match:
    """Two aligned songs."""

    agreement: float  # correlation of the changes, at most 1
    offset: int  # in frames: frame t of the first song is frame t + offset of the second
    drift: float = 0.0  # change of the offset per frame; 0.01 if the second song is 1% slower
    spread: float = 0.0  # standard deviation of the offsets of windows from their neighbors, in frames
    semitones: float = 0.0  # estimated pitch of the second song relative to the first
    is_transposed: bool = False  # True if the harmonies show a transposition

    @property
    def is_same_recording(self) -> bool:
        has_same_timing = abs(self.drift) <= _MAX_DRIFT and self.spread <= _MAX_SPREAD
        has_same_pitch = abs(self.semitones) <= _MAX_SEMITONES and not self.is_transposed
        return self.agreement >= MIN_AGREEMENT and has_same_timing and has_same_pitch


RowArray = Callable[[int], FloatingArray | None]
"""Returns an array of a row, or None if it is missing."""


class Comparison:
    """Comparison of two rows, first by excerpts, then by whole songs unless the excerpts exclude the pair.

    `frames_of` returns the MFCCs of a row, (n_frames, 13 or more). `harmony_of` returns its
    :func:`musicsim.audio.harmony`.
    """

    def __init__(self, frames_of: RowArray, harmony_of: RowArray | None = None) -> None:
        self._frames_of, self._harmony_of = frames_of, harmony_of
        self._excerpt = lru_cache(maxsize=_KEPT_EXCERPTS)(self._read_excerpt)
        self._whole = lru_cache(maxsize=_KEPT_SONGS)(self._read_whole)

    def match(self, first: int, second: int) -> Match | None:
        """Return the best alignment of two rows, or None if frames are missing."""
        a, b = self._excerpt(first), self._excerpt(second)
        if a is None or b is None:
            return None
        # short excerpts could miss the true offset, and comparing such short songs completely is cheap
        if min(len(a), len(b)) >= 3 * MAX_OFFSET // STRIDE:
            agreement, offset = align_coarsely(a, b, min(len(a), len(b)) / 2)
            if 0.0 < agreement < _MIN_ROUGH_AGREEMENT:  # an agreement of 0 means that the excerpt is constant
                return Match(agreement, offset * STRIDE)
        agreement, offset = align(self._whole(first), self._whole(second))
        if agreement < _MIN_ROUGH_AGREEMENT:
            return Match(agreement, offset)
        return self._examine(first, second, offset)

    def _examine(self, first: int, second: int, offset: int) -> Match:
        """Return the match of two songs at a known offset, with their differences in speed and pitch."""
        x, y = overlap(self._whole(first), self._whole(second), offset)
        drift = estimate_drift(x, y)
        if abs(drift) * len(x) <= _MAX_DRIFT_FRAMES:
            drift = 0.0
        places = np.arange(len(x)) + drift * (np.arange(len(x)) - len(x) / 2)
        y = interpolate(y, places)
        agreement = agreement_of(x[::STRIDE], y[::STRIDE])
        if agreement < MIN_AGREEMENT or abs(drift) > _MAX_DRIFT:
            return Match(agreement, offset, drift)
        of_first, of_second = (self._changes_of(row, semitone_effects()) for row in (first, second))
        effect_x, effect_y = overlap(of_first, of_second, offset)
        semitones = estimate_factor(x, y, (effect_x + interpolate(effect_y, places)) * np.float32(0.5))
        return Match(agreement, offset, drift, measure_spread(x, y), semitones, self._is_transposed(first, second))

    def _is_transposed(self, first: int, second: int) -> bool:
        a, b = (self._harmony_of(row) if self._harmony_of else None for row in (first, second))
        return a is not None and b is not None and is_transposed(a, b)

    def _read_excerpt(self, row: int) -> Float32Array | None:
        frames = self._frames_of(row)
        return None if frames is None else changes(frames[_EXCERPT], low_bands())[::STRIDE].copy()

    def _read_whole(self, row: int) -> Float32Array:
        return self._changes_of(row, low_bands())

    def _changes_of(self, row: int, contours: Float32Array) -> Float32Array:
        frames = self._frames_of(row)
        return changes(frames, contours) if frames is not None else np.empty((0, N_CONTOURS), np.float32)
