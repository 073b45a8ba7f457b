"""Base class of the vector indexes: stores their rows, adds new ones, loads saved indexes."""

from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from musicsim._arrays import BoolArray, Float32Array, Int64Array, Uint8Array
from musicsim._checks import check_choice, check_whole
from musicsim.search._folders import fingerprint, read_meta, report_damage
from musicsim.search._rows import Index, Neighbors, check_rows, read_only

MODES = ("connectivity", "distance")
_N_NEIGHBORS = 5  # as in scikit-learn
_META_KEYS = ("kind", "options", "shape", "built", "fingerprint")


class VectorIndex(Index):
    """Base class of the vector indexes; those with :meth:`_write` and :meth:`_read` can be saved and loaded."""

    _DISTANCE = np.float32
    _X: Float32Array
    _buffer: Float32Array  # array whose first rows are `_X`
    n_built_: int

    def query(self, Q: npt.ArrayLike, k: int = 10, *, allowed: BoolArray | None = None) -> Neighbors:
        """Return the `k` nearest rows that the index finds for each query; ties are ordered by id.

        Parameters
        ----------
        Q : array-like of shape (n_queries, n_features)
        k : int >= 1
        allowed : bool ndarray of shape (n_samples,), optional
            Mask of the rows that may be results; by default all rows.

        Returns
        -------
        distances : float32 ndarray of shape (n_queries, min(k, n_allowed))
            Exact Euclidean distances, ascending.
        ids : int64 ndarray of the same shape
        """
        return self._search(Q, k, allowed, self._fill_nearest)

    def kneighbors(
        self, X: npt.ArrayLike | None = None, n_neighbors: int | None = None, return_distance: bool = True
    ) -> Neighbors | Int64Array:
        """Return the nearest rows of each query, as scikit-learn's ``NearestNeighbors.kneighbors`` does.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features), optional
            By default, the rows of the index, which are then not their own neighbors.
        n_neighbors : int >= 1, by default 5
            At most the number of rows that can be neighbors.
        return_distance : bool

        Returns
        -------
        distances : float32 ndarray of shape (n_queries, n_neighbors), ascending; only if `return_distance`
        ids : int64 ndarray of the same shape
        """
        self._check_is_fitted("n_samples_")
        k = _N_NEIGHBORS if n_neighbors is None else n_neighbors
        check_whole("n_neighbors", k, 1)
        n_others = self._combine_masks(None)[1] - (X is None)
        if k > n_others:
            raise ValueError(f"n_neighbors={k} must be at most {n_others}, the number of rows that can be neighbors.")
        if X is not None:
            distances, ids = self.query(X, int(k))
        else:
            distances, ids = _leave_out_own(*self.query(self._X, int(k) + 1))
        return (distances, ids) if return_distance else ids

    def kneighbors_graph(
        self, X: npt.ArrayLike | None = None, n_neighbors: int | None = None, mode: str = "connectivity"
    ) -> Any:
        """Return the graph from queries to their nearest rows, as scikit-learn's ``kneighbors_graph`` does.

        Parameters
        ----------
        X, n_neighbors : as in :meth:`kneighbors`
        mode : "connectivity" or "distance"
            Entries are ones, or distances; a distance of 0 is an entry, too.

        Returns
        -------
        SciPy CSR array of shape (n_queries, n_samples), float64
        """
        from scipy import sparse  # this import takes 0.1 s

        check_choice("mode", mode, MODES)
        distances, ids = self.kneighbors(X, n_neighbors)
        entries = distances.astype(np.float64) if mode == "distance" else np.ones(ids.shape)
        starts = np.arange(0, ids.size + 1, ids.shape[1])
        return sparse.csr_array((entries.ravel(), ids.ravel(), starts), shape=(len(ids), self.n_samples_))

    def add(self, X: npt.ArrayLike) -> Int64Array:
        """Add rows, and return their int64 ids; the index is rebuilt if its axes or leaves no longer fit all rows.

        Parameters
        ----------
        X : array-like of shape (n_new, n_features)

        Notes
        -----
        Copies all rows to memory, with room for twice as many: 8 n_samples n_features bytes. To avoid this for a saved
        index, append the new rows to the file of rows and load the index with the whole file.
        """
        self._check_is_fitted("n_samples_")
        rows = self._check_width(X, "X")
        first, n = self.n_samples_, self.n_samples_ + len(rows)
        if n > len(self._buffer) or not self._buffer.flags.writeable:
            self._buffer = np.empty((max(n, 2 * first), self.n_features_in_), np.float32)
            self._buffer[:first] = self._X
        self._buffer[first:n] = rows
        self._X, self.n_samples_ = read_only(self._buffer[:n]), n
        self._extend_shown(len(rows))
        self._insert(rows, first)
        return np.arange(first, n)

    @classmethod
    def load(cls, folder: str | Path, X: npt.ArrayLike) -> Self:
        """Map a saved index into memory.

        Parameters
        ----------
        folder : str or Path
        X : array-like of shape (n_samples, n_features)
            The indexed rows, in the same order. Further rows at the end are added, but only in this process.

        Raises
        ------
        ValueError
            If the index is damaged, has a different class or version, or was built from different rows.
        FileNotFoundError
            If the folder holds no index.
        """
        source = Path(folder)
        meta = read_meta(source, _META_KEYS)
        if meta["kind"] != cls.__name__:
            raise ValueError(f"{folder} contains a {meta['kind']}, not a {cls.__name__}.")
        n, width = meta["shape"]
        rows = check_rows(X, "X", first=n)
        if rows.shape[1] != width or len(rows) < n or fingerprint(rows[:n]) != meta["fingerprint"]:
            raise ValueError(f"the index in {folder} was built from different rows; rebuild it.")
        with report_damage(source):
            index = cls(**meta["options"])
            index._take(rows[:n])
            index.n_built_ = meta["built"]
            index._read(source)
            index._read_shown(source)
        if len(rows) > n:
            shown = index._shown
            index._take(rows)
            index._shown = shown
            index._extend_shown(len(rows) - n)
            index._insert(rows[n:], n)
        return index

    @staticmethod
    def count_saved_rows(folder: str | Path) -> tuple[int, int]:
        """Return the number of rows in a saved index, and the number it was built from (others were added later)."""
        meta = read_meta(Path(folder), _META_KEYS)
        return meta["shape"][0], meta["built"]

    def _insert(self, rows: Float32Array, first: int) -> None:
        """Index the given rows, numbered starting at `first`; `_X` already contains them."""
        raise NotImplementedError

    def _fill_nearest(
        self, Q: Float32Array, shown: Uint8Array, n_shown: int, distances: Float32Array, ids: Int64Array
    ) -> None:
        raise NotImplementedError

    def _meta(self) -> dict[str, Any]:
        return {"built": self.n_built_, "fingerprint": fingerprint(self._X)}

    def _read(self, folder: Path) -> None:
        """Read the files of :meth:`_write`; raise ValueError if they do not match the rows or an option is invalid."""
        raise NotImplementedError

    def _take(self, X: Float32Array) -> None:
        """Set the first rows of the index; they are not copied."""
        self._buffer = self._X = X
        self._shown = np.empty(0, np.uint8)
        self.n_samples_, self.n_features_in_ = X.shape

    def _check_rows(self, rows: npt.ArrayLike, name: str) -> Any:
        """Return rows in the form that the index can search."""
        return check_rows(rows, name)

    def _check_width(self, rows: npt.ArrayLike, name: str = "Q") -> Any:
        array = self._check_rows(rows, name)
        if array.shape[1] != self.n_features_in_:
            raise ValueError(f"{name} has {array.shape[1]} columns, but the index has {self.n_features_in_}.")
        return array


def _leave_out_own(distances: Float32Array, ids: Int64Array) -> Neighbors:
    """Remove row i from the neighbors of row i; if it is not among them, remove the last."""
    is_own = ids == np.arange(len(ids))[:, None]
    is_own[~is_own.any(axis=1), -1] = True
    shape = len(ids), ids.shape[1] - 1
    return distances[~is_own].reshape(shape), ids[~is_own].reshape(shape)
