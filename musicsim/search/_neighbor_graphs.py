"""scikit-learn's interface to neighbors, on top of an index's own query."""

from typing import Any

import numpy as np
import numpy.typing as npt

from musicsim._arrays import Float32Array, Int64Array
from musicsim._checks import check_choice, check_whole
from musicsim.search._rows import Index, Neighbors

MODES = ("connectivity", "distance")
_N_NEIGHBORS = 5  # as in scikit-learn


class NeighborGraphs(Index):
    """Neighbors with the names, arguments and results of scikit-learn's ``NearestNeighbors``."""

    _X: Float32Array

    def query(self, Q: npt.ArrayLike, k: int = 10) -> Neighbors:
        raise NotImplementedError

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


def _leave_out_own(distances: Float32Array, ids: Int64Array) -> Neighbors:
    """Remove row i from the neighbors of row i; if it is not among them, remove the last."""
    is_own = ids == np.arange(len(ids))[:, None]
    is_own[~is_own.any(axis=1), -1] = True
    shape = len(ids), ids.shape[1] - 1
    return distances[~is_own].reshape(shape), ids[~is_own].reshape(shape)
