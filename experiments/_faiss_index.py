"""The indexes of faiss behind our methods: lists around centroids, which lead where songs fall into separate groups."""

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from musicsim.search._rows import Answers, Index, checked
from musicsim.search._trees import n_threads

__all__ = ["FaissIndex"]

_TRAINED = 100_000  # rows at most that centroids are found on


class FaissIndex(Index):
    """Neighbours by an index of faiss, an option that has to be installed (``pip install faiss-cpu``).

    Parameters
    ----------
    factory : str
        As ``faiss.index_factory`` takes it: "IVF1024,Flat" are 1 024 lists around centroids, "HNSW16" is a graph. Only
        what faiss can search in some of the rows: not "LSH", "NSG16", nor what ends in "RFlat" or begins with "IDMap".
    breadth : int >= 1
        Lists that are looked into (nprobe), or the width of the search in a graph (efSearch).
    n_jobs : int or None
        Threads of faiss, of the whole process: None is 1, -1 one a core.
    random_state : int, Generator or None
        Seed of the rows that centroids are found on.

    Attributes
    ----------
    n_samples_, n_features_in_ : int

    Notes
    -----
    Answers are ranked by exact distance, equal ones by the lower id, as of the other indexes; a query for which too few
    are found is compared with every row. Memory: what faiss takes, for "Flat" the rows once more.
    """

    def __init__(
        self,
        factory: str = "IVF1024,Flat",
        *,
        breadth: int = 32,
        n_jobs: int | None = -1,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.factory, self.breadth, self.n_jobs, self.random_state = factory, breadth, n_jobs, random_state

    def fit(self, X: npt.ArrayLike, y: None = None) -> Self:
        """Take the rows to search in.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : ignored

        Raises
        ------
        ValueError
            If `X` is not two-dimensional or holds NaN, or an option is none that faiss knows, cannot build from these
            rows or cannot search in some of them.
        ImportError
            If faiss is not installed.
        """
        faiss = _faiss()
        rows = checked(X, "X")
        if self.breadth < 1:
            raise ValueError(f"breadth={self.breadth} should be at least 1.")
        try:
            index = faiss.index_factory(rows.shape[1], self.factory)
        except RuntimeError as error:
            raise ValueError(f"factory={self.factory!r} is none that faiss knows.") from error
        n_lists = getattr(index, "nlist", 0)
        if n_lists > len(rows):
            raise ValueError(f"factory={self.factory!r} wants {n_lists} lists, X has {len(rows)} rows.")
        self._index = index
        self._threads()
        try:
            if not index.is_trained:
                chosen = np.random.default_rng(self.random_state).permutation(len(rows))[:_TRAINED]
                index.train(rows[np.sort(chosen)])
            if len(rows):
                index.add(rows)
            # faiss says only when asked whether an index takes parameters
            some = self._parameters(np.zeros(1, np.int64))
            index.search(np.zeros((1, rows.shape[1]), np.float32), 1, params=some)
        except RuntimeError as error:
            raise ValueError(
                f"factory={self.factory!r}: faiss cannot build it from {len(rows)} rows, or not search in some of "
                "them; choose another."
            ) from error
        self._take(rows)
        return self

    def add(self, X: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Add rows after :meth:`fit`; returns their ids, shape (n_new,)."""
        check_is_fitted(self, "n_samples_")
        rows = self._same_width(X, "X")
        first = self._append(rows)
        self._threads()
        if len(rows):
            self._index.add(rows)
        return np.arange(first, self.n_samples_)

    def query(
        self, Q: npt.ArrayLike, k: int = 10, *, allowed: npt.NDArray[np.bool_] | None = None
    ) -> Answers:
        """Near rows of each query, nearest first; equal distances by the lower id.

        Parameters
        ----------
        Q : array-like of shape (n_queries, n_features)
        k : int >= 1
            Fewer come back when fewer rows are allowed.
        allowed : bool ndarray of shape (n_samples,), optional
            Rows that may be answers; all by default.

        Returns
        -------
        distances : float32 ndarray of shape (n_queries, min(k, n_allowed))
        ids : int64 ndarray of the same shape

        Raises
        ------
        ValueError
            If `Q` has another width than the rows or holds NaN, `k` is below 1, or `allowed` has another length.
        """
        queries, shown, _, (distances, nearest) = self._prepared(Q, k, allowed)
        k = nearest.shape[1]
        if not nearest.size:
            return distances, nearest
        self._threads()
        rows = np.flatnonzero(shown) if len(shown) else np.arange(self.n_samples_)
        _, found = self._index.search(queries, k, params=self._parameters(rows if len(shown) else None))
        for i, ids in enumerate(found):
            near = ids[ids >= 0] if (ids >= 0).all() else rows
            exact = np.linalg.norm(self._X[near] - queries[i], axis=1)
            order = np.lexsort((near, exact))[:k]
            distances[i], nearest[i] = exact[order], near[order]
        return distances, nearest

    def _threads(self) -> None:
        _faiss().omp_set_num_threads(n_threads(self.n_jobs))

    def _parameters(self, rows: npt.NDArray[np.int64] | None) -> Any:
        """How broadly to search, and in which rows."""
        faiss = _faiss()
        options = {} if rows is None else {"sel": faiss.IDSelectorBatch(rows)}
        if isinstance(self._index, faiss.IndexIVF):
            return faiss.SearchParametersIVF(nprobe=self.breadth, **options)
        if isinstance(self._index, faiss.IndexHNSW):
            return faiss.SearchParametersHNSW(efSearch=self.breadth, **options)
        return faiss.SearchParameters(**options)


def _faiss() -> Any:
    try:
        import faiss
    except ImportError as error:
        raise ImportError("FaissIndex needs faiss: pip install faiss-cpu.") from error
    return faiss
