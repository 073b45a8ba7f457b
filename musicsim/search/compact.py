"""Search by bit codes in memory, with the results ranked by vectors that stay on disk."""

from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt

from musicsim._arrays import BoolArray, Float32Array, Int64Array, Uint8Array, Uint64Array
from musicsim.hashing import RankHash
from musicsim.relevance import Relevance
from musicsim.search._rows import check_rows
from musicsim.search._vector_index import VectorIndex
from musicsim.search.exact import ExactIndex
from musicsim.search.hamming import HammingIndex

_BLOCK_ROWS = 65_536
_RELEVANT, _STEPS = 50, 400  # Number of neighbors per sampled row that should get similar codes, and of steps
# Minimum number of candidates, and the factor by which it may grow if many codes are equally near.
_MIN_CANDIDATES, _MAX_FACTOR = 1_000, 4


class CompactIndex(VectorIndex):
    """Find neighbors among songs whose vectors do not fit into memory.

    Nearest neighbors for rows that do not fit into memory: codes find candidates, and vectors rank them.

    Parameters
    ----------
    n_bits : int from 1 to 1024
        Number of bits in a code.
    ratio : int >= 1
        Number of candidates per result. At least 1,000 rows are candidates, and so are all rows that tie with the last.
    n_learned : int >= 2
        Number of rows from which the codes are learned.
    n_jobs, random_state : as in :class:`SpillTree`

    Attributes
    ----------
    n_samples_, n_features_in_, n_built_ : int
        `n_built_` is the number of rows at the time of the fit.
    nbytes_ : int
        Memory in addition to the rows: `n_bits` / 8 bytes per row.
    hash_ : RankHash

    See Also
    --------
    PartitionIndex : Faster if 1.3 bytes per number fit into memory.
    HammingIndex : Searches codes only.

    Notes
    -----
    This follows the cascade of Nair, Mahajan and Sundararajan (WWW 2012), section 6, without its first stage of short
    codes. The code is learned for retrieval: the nearest rows of a sample are relevant to each other. The Hamming
    distance selects candidates, and exact distances rank them. Rows are not copied. Only the candidates are read from a
    memory map, about 1,000 rows per query.

    Codes cannot tell rows apart within a group that is much tighter than songs usually are. Therefore, all rows as near
    as the last candidate become candidates, up to four times as many. If there are more, they are sampled evenly in the
    order of their ids. For example, 4,000 of 30,000 rows with the same code are compared. The index then finds 13% of
    the nearest rows, and may even miss a row that equals the query. A query needs 36 bytes per row that is as near as
    the last candidate.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.search import CompactIndex, ExactIndex
    >>> X = np.random.default_rng(0).normal(size=(3000, 16)).astype(np.float32)
    >>> index = CompactIndex(n_bits=64, n_learned=200, random_state=0).fit(X)
    >>> found, truth = index.query(X[:100], k=10)[1], ExactIndex().fit(X).query(X[:100], k=10)[1]
    >>> bool(np.mean([np.isin(t, f).mean() for f, t in zip(found, truth)]) > 0.8)
    True
    >>> index.nbytes_ / X.nbytes < 0.2  # memory besides the rows, which may stay on disk
    True
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
        """Learn the codes and store the rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features); a float32 memory map is not copied
        """
        if self.ratio < 1 or self.n_learned < 2:
            raise ValueError(f"ratio={self.ratio} must be at least 1, and n_learned={self.n_learned} at least 2.")
        rows = check_rows(X, "X")
        self._take(rows)
        self.n_built_ = len(rows)
        rng = np.random.default_rng(self.random_state)
        sample = rows[np.sort(rng.permutation(len(rows))[: self.n_learned])]
        self.hash_ = self._learn_hash(sample, int(rng.integers(2**31)))
        self._codes = HammingIndex("scan", n_jobs=self.n_jobs).fit(self._encode(rows[:0]))
        self._insert(rows, 0)
        return self

    def _learn_hash(self, sample: Float32Array, seed: int) -> RankHash:
        """Learn a code that maps near rows to near codes. If all rows are equal, any code is good enough."""
        hashing = RankHash(self.n_bits, "retrieval", method="ranknet", ranknet_steps=_STEPS, random_state=seed)
        if not len(sample) or not np.ptp(sample, axis=0).any():
            rows = np.zeros((4, self.n_features_in_))
            rows[2:] = 1.0
            return hashing.set_params(ranknet_steps=0).fit(rows, Relevance.from_lists([[1], [0], [3], [2]]))
        k = min(_RELEVANT, max(1, len(sample) // 4))
        _, near = ExactIndex().fit(sample).query(sample, k + 1)
        lists = [row[row != i][:k] for i, row in enumerate(near)]
        return hashing.fit(sample, Relevance.from_lists(lists, n=len(sample)))

    def _encode(self, rows: Float32Array) -> Uint64Array:
        return self.hash_.transform(rows) if len(rows) else np.empty((0, -(-self.n_bits // 64)), np.uint64)

    @property
    def nbytes_(self) -> int:
        """Memory in addition to the rows."""
        return self._codes.nbytes_

    def _fill_nearest(
        self, Q: Float32Array, shown: Uint8Array, n_shown: int, distances: Float32Array, ids: Int64Array
    ) -> None:
        k = ids.shape[1]
        mask = shown.view(np.bool_) if len(shown) else None
        n_candidates = min(n_shown, max(_MIN_CANDIDATES, self.ratio * k))
        codes = self._encode(Q)
        radii = self._codes.query(codes, n_candidates, allowed=mask)[0][:, -1]
        for i, radius in enumerate(radii):
            rows = rows_within(self._codes, codes[i : i + 1], radius, _MAX_FACTOR * n_candidates, mask)
            exact = np.linalg.norm(self._X[rows] - Q[i], axis=1)
            order = np.argsort(exact, kind="stable")[:k]
            distances[i], ids[i] = exact[order], rows[order]

    def _insert(self, rows: Float32Array, first: int) -> None:
        for start in range(0, len(rows), _BLOCK_ROWS):
            self._codes.add(self._encode(rows[start : start + _BLOCK_ROWS]))

    def _write(self, folder: Path) -> None:
        self._codes.save(folder / "codes")
        np.savez(folder / "hash.npz", **self.hash_.arrays())

    def _read(self, folder: Path) -> None:
        self._codes = HammingIndex.load(folder / "codes").set_params(n_jobs=self.n_jobs)
        with np.load(folder / "hash.npz", allow_pickle=False) as arrays:
            self.hash_ = RankHash.from_arrays(arrays)
        shapes = (self._codes.n_samples_, self._codes.n_features_in_), self.hash_.n_features_in_
        if shapes != ((self.n_samples_, -(-self.hash_.n_bits // 64)), self.n_features_in_):
            raise ValueError("The codes do not match the rows.")


def rows_within(
    codes: HammingIndex, code: Uint64Array, radius: int, limit: int, allowed: BoolArray | None = None
) -> Int64Array:
    """Return at most `limit` rows whose codes are within a radius of `code`, (1, n_words); sorted by row number.

    All rows nearer than the radius are returned; those exactly at the radius are sampled evenly in the order of ids.
    """
    (distances,), (rows,) = codes.radius(code, radius, allowed=allowed)
    if len(rows) > limit:
        n_nearer = int(np.searchsorted(distances, radius))
        drawn = np.linspace(n_nearer, len(rows) - 1, limit - n_nearer).astype(np.int64)
        rows = np.concatenate([rows[:n_nearer], rows[drawn]])
    return np.sort(rows)
