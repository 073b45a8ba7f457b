"""A view of a library in which songs are compared in one factor, such as rhythm."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from musicsim._arrays import BoolArray, Float32Array, Float64Array, FloatingArray, Int64Array
from musicsim.audio import SongFrames
from musicsim.errors import ModelError, NotFoundError
from musicsim.explorer.snapshot.conditions import All
from musicsim.explorer.snapshot.factors import HARMONY, Factors
from musicsim.explorer.snapshot.snapshot import Rows, Snapshot

_BLOCK = 65_536  # number of songs whose vectors are in memory at the same time


@dataclass(frozen=True)
class FactorView(Snapshot):
    """A snapshot under Sound whose vectors are those of one factor, so that every search ranks by this factor.

    The vectors are scaled to a mean squared distance of 1, like those of Sound. A search compares all songs, without an
    index and without hub reduction. Songs without the factor have no row, so they are never results. Equal distances
    keep the order of the rows. Memory: 9 bytes per song and query.
    """

    factors: Factors = field(kw_only=True, compare=False)
    factor: str = field(kw_only=True)
    scale: float = field(kw_only=True, compare=False)

    def vectors_at(self, rows: Rows) -> Float32Array:
        """Return the vectors of some rows in the factor; NaN for songs without it."""
        vectors = self.factors.vectors(self.factor, np.asarray(rows, dtype=np.int64))
        return np.multiply(vectors, self.scale, dtype=np.float32)

    def has_factor(self, rows: Int64Array) -> BoolArray:
        """Return True for each row with a vector in the factor."""
        return np.asarray(np.isfinite(self.vectors_at(rows)).all(axis=1))

    def rows_of(self, ids: Iterable[int]) -> Int64Array:
        """Return the rows of songs; -1 for songs without a row or without the factor."""
        rows = super().rows_of(ids)
        rows[rows >= 0] = np.where(self.has_factor(rows[rows >= 0]), rows[rows >= 0], -1)
        return rows

    def row_of(self, song_id: int) -> int:
        """Return the row of a song; raise NotFoundError if it has no vector in the factor."""
        if super().rows_of([song_id])[0] >= 0 and self.rows_of([song_id])[0] < 0:
            way_out = "scan its folder again with “Store audio features” on" if self.factor == HARMONY else "refit it"
            raise NotFoundError(f"{self.library.song(song_id).label} has no {self.factor}: {way_out}.")
        return super().row_of(song_id)

    def nearest(
        self, vector: Float32Array, k: int, *, allowed: BoolArray | None = None, condition: All | None = None
    ) -> Int64Array:
        """Return the rows of the k songs nearest to a vector, nearest first; fewer if fewer have the factor."""
        squared = np.full(self.n_indexed, np.nan)
        for start in range(0, self.n_indexed, _BLOCK):
            rows = np.arange(start, min(start + _BLOCK, self.n_indexed))
            rows = rows if allowed is None else rows[allowed[rows]]
            squared[rows] = np.square(self.vectors_at(rows) - vector).sum(axis=1)
        order = np.argsort(squared, kind="stable")  # NaN is last
        return order[: min(k, int(np.isfinite(squared).sum()))]

    def adjust_distances(self, vector: Float32Array, distances: FloatingArray, rows: Int64Array) -> Float64Array:
        """Return the distances unchanged."""
        return np.asarray(distances, dtype=np.float64)

    def count_missing(self) -> int:
        """Return the number of songs without the factor."""
        if self.factor in self.factors.columns:
            return 0
        blocks = range(0, self.n_indexed, _BLOCK)
        return sum(
            int((~self.has_factor(np.arange(start, min(start + _BLOCK, self.n_indexed)))).sum()) for start in blocks
        )

    def vector_of(self, frames: SongFrames) -> Float32Array:
        """Return the vector of sound from outside the library; raise ModelError if only songs have the factor."""
        columns, model = self.factors.columns.get(self.factor), self.model
        if columns is None or model is None:
            raise ModelError(
                f"by={self.factor!r}: choose a song of the library, because other sound has no such vector."
            )
        return np.multiply(model.vectors(model.features([frames]))[0, columns], self.scale, dtype=np.float32)


def compare_in(snapshot: Snapshot, factor: str) -> FactorView:
    """Return a view in which songs are compared in one factor.

    For example, ``find_similar(compare_in(snapshot, "rhythm"), song_id)`` finds the songs with the most similar rhythm.
    Raises NotFoundError for an unknown factor, and ModelError before Sound is fitted.
    """
    factors = Factors(snapshot)
    scale = factors.width(factor) ** -0.5
    sound = factors.sound
    return FactorView(sound.library, sound.revision, sound.model_id, factors=factors, factor=factor, scale=scale)
