"""Data, k-nearest-neighbor error and worker processes of the experiments on UCI sets."""

import multiprocessing
import os
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np
import numpy.typing as npt

from musicsim._arrays import Float64Array, Int64Array
from musicsim.datasets import find, load
from musicsim.errors import DataSetAbsentError

__all__ = ["SETS", "knn_errors", "load_isolet", "one_core_each"]


SETS: dict[str, Callable[[], tuple[Float64Array, Int64Array]]] = {
    name: partial(load, name.lower()) for name in ("Balance", "Ionosphere", "WDBC", "Wine")
}
"""Loaders of rows, and of classes 0, 1, ... in alphabetical order."""
_N_ISOLET = 6238
"""Training rows of the thesis."""


def load_isolet() -> tuple[Float64Array, Int64Array, Float64Array, Int64Array]:
    """Load X and y of the training rows, then of UCI's own test file; they do not share speakers.

    Without OpenML's copy, 1,560 rows of other speakers are for training.
    """
    try:
        X, y = load("isolet")
    except DataSetAbsentError:
        parts: list[npt.NDArray] = []
        for file in ("isolet_1560.npz", "isolet5.npz"):
            with np.load(find("isolet_parts", file)) as held:
                parts += [held["X"].astype(np.float64), held["y"].astype(np.int64)]
        return parts[0], parts[1], parts[2], parts[3]
    return X[:_N_ISOLET], y[:_N_ISOLET], X[_N_ISOLET:], y[_N_ISOLET:]


def knn_errors(
    X: Float64Array,
    y: Int64Array,
    X_test: Float64Array,
    y_test: Int64Array,
    ks: Sequence[int],
    weights: Float64Array | None = None,
) -> Float64Array:
    """Return the share of test rows that the majority of their k nearest rows of X misclassifies.

    If classes have equal votes, that of the nearest row wins. The `weights` of shape (d,) apply to the squared
    differences and may be negative.

    Returns
    -------
    ndarray of shape (n_ks,)
    """
    from sklearn.neighbors import NearestNeighbors

    if weights is None:
        neighbors = NearestNeighbors(n_neighbors=max(ks)).fit(X).kneighbors(X_test, return_distance=False)
    else:
        distances = (X**2 @ weights)[None, :] - 2.0 * (X_test * weights) @ X.T  # without the query's own term
        neighbors = np.argsort(distances, axis=1, kind="stable")[:, : max(ks)]
    votes = np.zeros((*neighbors.shape, int(y.max()) + 1))
    # the fractions of all later ranks sum to less than that of the first
    weights = 1.0 + 0.5 ** np.arange(1, max(ks) + 1)
    np.put_along_axis(votes, y[neighbors][:, :, None], weights[None, :, None], axis=2)
    elected = votes.cumsum(axis=1).argmax(axis=2)
    return np.array([np.mean(elected[:, k - 1] != y_test) for k in ks])


def one_core_each() -> ProcessPoolExecutor:
    """Return a pool with one single-threaded process per core, so that CPU seconds are comparable."""
    return ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn"), initializer=_stay_on_one_core)


def _stay_on_one_core() -> None:
    import numba
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"  # for the processes it starts
    threadpool_limits(1)
    numba.set_num_threads(1)
    warnings.simplefilter("ignore", ConvergenceWarning)  # the tables show the gaps
