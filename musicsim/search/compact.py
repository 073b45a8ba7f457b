"""Search in bit codes held in memory, decided by vectors that stay on the disk."""

from collections.abc import Iterator
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt

from musicsim._arrays import BoolArray, Float32Array, Float64Array, Int64Array, Uint8Array, Uint64Array
from musicsim.hashing import RankHash
from musicsim.relevance import Relevance
from musicsim.search._rows import checked
from musicsim.search._vector_index import VectorIndex
from musicsim.search.exact import ExactIndex
from musicsim.search.hamming import HammingIndex

_BLOCK_ROWS = 65_536
# Of the sample that codes are learned on: the nearest that a query's code should be near to, and the steps of the fit.
_RELEVANT, _STEPS = 50, 400
# Fewest candidates, for any number of answers; and how many times as many, where many codes are equally near.
_MIN_CANDIDATES, _MAX_TIMES = 1_000, 4


class CompactIndex(VectorIndex):
    """Neighbours among rows too many for memory: codes say which may be near, their vectors which are.

    Parameters
    ----------
    n_bits : int
        Of the codes.
    ratio : int >= 1
        Candidates for each answer that is asked for; 1 000 at least, and those as near as the last one.
    n_learned : int >= 2
        Rows on which the codes are learned.
    n_jobs : int or None
        Threads that answer when many queries come at once: None is 1, -1 one a core.
    random_state : int, Generator or None
        Seed of the sample and of the fit.

    Attributes
    ----------
    n_samples_, n_features_in_ : int
    nbytes_ : int
        Memory in addition to the rows: `n_bits` / 8 bytes a row, 320 MB for ten million rows of 256 bits.
    n_built_ : int
        Rows of the fit.
    hash_ : RankHash

    Notes
    -----
    The cascade of WWW 2012 (Nair, Mahajan, Sundararajan), 6: a code learned for retrieval, the nearest rows of a sample
    being relevant to one another, makes a shortlist by Hamming distance; exact distances rank it. Rows are used where
    they lie, so that those of a memory map are read only as far as they are candidates: some 1 000 places a query.

    Codes do not tell rows of a tight group apart, those that lie much nearer to one another than songs usually do. Rows
    as near as the last candidate are therefore all candidates, up to four times as many; where there are more, as many
    are drawn from them, evenly in the order of their ids. Of a group of 30 000 rows with one code 4 000 are looked at,
    so that 13 % of the nearest are found, and a row of it may not find itself. A query takes 36 bytes for each row that
    is as near as the last candidate.
    """

    def __init__(
        self,
        n_bits: int = 256,
        ratio: int = 8,
        *,
        n_learned: int = 5_000,
        n_jobs: int | None = -1,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.n_bits, self.ratio, self.n_learned = n_bits, ratio, n_learned
        self.n_jobs, self.random_state = n_jobs, random_state

    def fit(self, X: npt.ArrayLike, y: None = None) -> Self:
        """Take the rows to search in, and learn their codes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            A float32 memory map is used in place, not copied.
        y : ignored

        Raises
        ------
        ValueError
            If `X` is not two-dimensional or holds NaN, or an option is out of range.
        """
        if self.ratio < 1 or self.n_learned < 2:
            raise ValueError(f"ratio={self.ratio} should be at least 1, n_learned={self.n_learned} at least 2.")
        rows = checked(X, "X")
        self._take(rows)
        self.n_built_ = len(rows)
        rng = np.random.default_rng(self.random_state)
        sample = rows[np.sort(rng.permutation(len(rows))[: self.n_learned])]
        self.hash_ = self._learned(sample, int(rng.integers(2**31)))
        self._codes = HammingIndex("scan", n_jobs=self.n_jobs)
        for place, codes in enumerate(self._coded(rows)):
            if place:
                self._codes.add(codes)
            else:
                self._codes.fit(codes)
        return self

    def _learned(self, sample: Float32Array, seed: int) -> RankHash:
        """Codes that are near where rows are; in a sample of a few rows, or of equal ones, none has to be."""
        hashing = RankHash(self.n_bits, "retrieval", method="ranknet", ranknet_steps=_STEPS, random_state=seed)
        if not len(sample) or not np.ptp(sample, axis=0).any():
            return hashing.set_params(ranknet_steps=0).fit(*_two_apart(self.n_features_in_))
        k = min(_RELEVANT, max(1, len(sample) // 4))
        _, near = ExactIndex().fit(sample).query(sample, k + 1)
        lists = [row[row != i][:k] for i, row in enumerate(near)]
        return hashing.fit(sample, Relevance.from_lists(lists, n=len(sample)))

    def _coded(self, rows: Float32Array) -> Iterator[Uint64Array]:
        for start in range(0, max(len(rows), 1), _BLOCK_ROWS):
            yield self._code(rows[start : start + _BLOCK_ROWS])

    def _code(self, rows: Float32Array) -> Uint64Array:
        if not len(rows):
            return np.empty((0, -(-self.n_bits // 64)), np.uint64)
        return self.hash_.transform(rows)

    @property
    def nbytes_(self) -> int:
        """Memory in addition to the rows."""
        return self._codes.nbytes_

    def _nearest(
        self, Q: Float32Array, shown: Uint8Array, n_shown: int, distances: Float32Array, ids: Int64Array
    ) -> None:
        k = ids.shape[1]
        mask = shown.view(np.bool_) if len(shown) else None
        n_candidates = min(n_shown, max(_MIN_CANDIDATES, self.ratio * k))
        codes = self._code(Q)
        edges = self._codes.query(codes, n_candidates, allowed=mask)[0][:, -1]
        for i, edge in enumerate(edges):
            rows = self._candidates(codes[i : i + 1], edge, _MAX_TIMES * n_candidates, mask)
            exact = np.linalg.norm(self._X[rows] - Q[i], axis=1)
            order = np.argsort(exact, kind="stable")[:k]
            distances[i], ids[i] = exact[order], rows[order]

    def _candidates(self, code: Uint64Array, edge: int, most: int, allowed: BoolArray | None) -> Int64Array:
        """Rows whose codes lie as near as `edge`, at most so many, in the order in which they lie on the disk."""
        (distances,), (rows,) = self._codes.radius(code, edge, allowed=allowed)
        if len(rows) > most:
            n_nearer = int(np.searchsorted(distances, edge))
            drawn = np.linspace(n_nearer, len(rows) - 1, most - n_nearer).astype(np.int64)
            rows = np.concatenate([rows[:n_nearer], rows[drawn]])
        return np.sort(rows)

    def _insert(self, rows: Float32Array, first: int) -> None:
        for codes in self._coded(rows):
            self._codes.add(codes)

    def _write(self, folder: Path) -> None:
        self._codes.save(folder / "codes")
        np.savez(folder / "hash.npz", **self.hash_.arrays())

    def _read(self, folder: Path) -> None:
        self._codes = HammingIndex.load(folder / "codes").set_params(n_jobs=self.n_jobs)
        with np.load(folder / "hash.npz", allow_pickle=False) as arrays:
            self.hash_ = RankHash.from_arrays(arrays)

    def _fits(self) -> bool:
        n_words = -(-self.hash_.n_bits // 64)
        return (self._codes.n_samples_, self._codes.n_features_in_) == (
            self.n_samples_,
            n_words,
        ) and self.hash_.n_features_in_ == self.n_features_in_


def _two_apart(n_features: int) -> tuple[Float64Array, Relevance]:
    """Rows that differ, where the true ones do not: any code will do."""
    rows = np.zeros((4, n_features))
    rows[2:] = 1.0
    return rows, Relevance.from_lists([[1], [0], [3], [2]])
