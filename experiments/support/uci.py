"""Data, k-nearest-neighbor error and worker processes of the experiments on UCI sets."""

import multiprocessing
import os
import warnings
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import numpy.typing as npt

from musicsim._arrays import Float64Array, Int64Array

__all__ = ["SETS", "knn_errors", "load_isolet", "load_set", "one_core_each"]


SETS = {
    "Balance": ("balance-scale.data", 0),
    "Ionosphere": ("ionosphere.data", -1),
    "WDBC": ("wdbc.arff", 0),
    "Wine": ("wine.data", 0),
}
"""File, and column of the class."""


def load_set(folder: Path, name: str) -> tuple[Float64Array, Int64Array]:
    """Load the rows and classes 0, 1, ... (in alphabetical order) of one of :data:`SETS`.

    Parameters
    ----------
    folder : Path
        Folder with the files of the UCI repository.

    Returns
    -------
    X : ndarray of shape (n_rows, d)
    y : ndarray of shape (n_rows,)
    """
    file, column = SETS[name]
    lines = (folder / file).read_text(encoding="utf-8").splitlines()
    table = np.array([line.split(",") for line in lines if line and not line.startswith("@")])
    y = np.unique(table[:, column], return_inverse=True)[1]
    return np.delete(table, column, axis=1).astype(np.float64), y.astype(np.int64)


def load_isolet(folder: Path) -> tuple[Float64Array, Int64Array, Float64Array, Int64Array]:
    """Load X and y of 1560 training rows, then of UCI's own test file; they do not share speakers."""
    parts: list[npt.NDArray] = []
    for file in ("isolet_1560.npz", "isolet5.npz"):
        with np.load(folder / file) as held:
            parts += [held["X"].astype(np.float64), held["y"].astype(np.int64)]
    X, y, X_test, y_test = parts
    return X, y, X_test, y_test


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
