"""Base classes of indexes: their rows, which of them were removed, the checks of a query."""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from numbers import Integral
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from musicsim._arrays import Float32Array, Int64Array, Uint8Array
from musicsim.search._estimator import Estimator

T = TypeVar("T")

_BLOCK_ROWS = 65_536
_QUERIES_A_THREAD = 16  # below, a thread costs more than it gives
_FEW_ROWS = 16
_MAX_FLOAT32 = float(np.finfo(np.float32).max)

Answers = tuple[Float32Array, Int64Array]


def checked(rows: npt.ArrayLike, name: str, *, first: int = 0) -> Float32Array:
    """Two-dimensional float32 rows whose distances are finite; those of a float32 memory map are not copied.

    `name` is that of the argument, for the ValueError; the rows before `first` have been checked.
    """
    array: Float32Array = np.asarray(rows, dtype=np.float32)
    if array.ndim != 2:
        raise ValueError(f"{name} should be two-dimensional, one song a row; its shape is {array.shape}.")
    # the squared distance of two rows of this size is half of float32's largest number at most
    square = _MAX_FLOAT32 / (8 * max(array.shape[1], 1))
    if len(array) <= _FEW_ROWS:
        array = np.ascontiguousarray(array)
        numbers = array.ravel()
        with np.errstate(over="ignore", invalid="ignore"):  # damaged rows are refused below
            is_small = numbers.dot(numbers) <= square  # a product takes a tenth of the time of the extremes
        if is_small:
            return read_only(array)
    limit = square**0.5
    for i in range(first, len(array), _BLOCK_ROWS):
        block = array[i : i + _BLOCK_ROWS]
        low, high = float(block.min(initial=0.0)), float(block.max(initial=0.0))
        if not (math.isfinite(low) and math.isfinite(high)):
            raise ValueError(f"{name} holds NaN or infinite values.")
        if low < -limit or high > limit:
            raise ValueError(f"{name} holds {max(-low, high):.2g}: distances need values below {limit:.2g}.")
    return read_only(np.ascontiguousarray(array))


def read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A view that cannot be written to: numba compiles a kernel once for all rows, be they in memory or in a file."""
    view = array.view()
    view.setflags(write=False)
    return view


def ask_parts(n: int, n_jobs: int | None, ask: Callable[[slice], T], most: int | None = None) -> list[T]:
    """Ask for parts of n queries, at most so many each, on as many threads as are worth it; what each part gives."""
    if most is None and n < 2 * _QUERIES_A_THREAD:  # a single query is not kept waiting by counting cores
        return [ask(slice(0, n))]
    threads = n_threads(n_jobs) if n >= 2 * _QUERIES_A_THREAD else 1
    n_parts = max(min(threads, n // _QUERIES_A_THREAD), -(-n // (most or max(n, 1))), 1)
    parts = [slice(i * n // n_parts, (i + 1) * n // n_parts) for i in range(n_parts)]
    if threads == 1:
        return [ask(part) for part in parts]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(ask, parts))


def n_threads(n_jobs: int | None) -> int:
    """Threads for `n_jobs` as scikit-learn reads it: None is one, -1 all cores.

    Raises ValueError if it is 0.
    """
    from joblib import effective_n_jobs

    check_n_jobs(n_jobs)
    return effective_n_jobs(n_jobs)


def check_n_jobs(n_jobs: int | None) -> None:
    """Raise ValueError for what is no number of threads; cores are not counted, for which a library is imported."""
    if n_jobs == 0 or not (n_jobs is None or isinstance(n_jobs, Integral)):
        raise ValueError(f"n_jobs={n_jobs!r} has no meaning; 1 is one thread, -1 one a core.")


class Index(Estimator):
    """Base of all indexes: which rows were removed, and the frame of a query.

    Attributes
    ----------
    n_samples_ : int
        Rows ever given; ids are below it.
    n_features_in_ : int
    """

    _DISTANCE: ClassVar[type[np.generic]]
    """Type of distances."""

    n_samples_: int
    n_features_in_: int
    _shown: Uint8Array

    def remove(self, ids: npt.ArrayLike) -> None:
        """Let rows be answers no more; their ids are not given again.

        Parameters
        ----------
        ids : int or int array-like
            Removing a row twice does nothing.

        Raises
        ------
        ValueError
            If an id was never given.
        """
        self._check_is_fitted("n_samples_")
        gone = np.atleast_1d(np.asarray(ids))
        if gone.size and not np.issubdtype(gone.dtype, np.integer):
            raise ValueError(f"ids should be whole numbers, not {gone.dtype}.")
        if gone.size and not (gone.min() >= 0 and gone.max() < self.n_samples_):
            raise ValueError(f"ids go from {gone.min()} to {gone.max()}, the index has {self.n_samples_} rows.")
        if gone.size:
            # a copy: a query on another thread has counted what it may answer
            shown = self._shown.copy() if len(self._shown) else np.ones(self.n_samples_, np.uint8)
            shown[gone.astype(np.int64)] = 0
            self._shown = shown

    def _answers(
        self, Q: npt.ArrayLike, k: int, allowed: npt.ArrayLike | None, nearest: Callable[..., None], *more: int
    ) -> tuple[Any, Int64Array]:
        """Distances and ids of the `k` nearest rows of each query.

        `nearest` takes the checked queries, which rows may be answers (of no row: all), how many these are, the
        two arrays to fill, which are not empty, and what is given besides.
        """
        queries = self._queries(Q, k)
        shown, n_shown = self._visible(allowed)
        shape = len(queries), min(k, n_shown)
        distances, ids = np.zeros(shape, self._DISTANCE), np.zeros(shape, np.int64)
        if ids.size:
            nearest(queries, shown, n_shown, distances, ids, *more)
        return distances, ids

    def _queries(self, Q: npt.ArrayLike, k: int) -> Any:
        """The queries, checked."""
        self._check_is_fitted("n_samples_")
        if k < 1:
            raise ValueError(f"k={k} should be at least 1.")
        return self._checked_queries(Q)

    def _checked_queries(self, Q: npt.ArrayLike) -> Any:
        """Queries of the width of the rows; raises ValueError for others."""
        raise NotImplementedError

    def _visible(self, allowed: npt.ArrayLike | None) -> tuple[Uint8Array, int]:
        """Which rows may be answers (of no row: all), and how many."""
        shown = self._shown
        if allowed is not None:
            mask = np.asarray(allowed, dtype=bool)
            if mask.shape != (self.n_samples_,):
                raise ValueError(f"allowed has shape {mask.shape}, the index has {self.n_samples_} rows.")
            shown = mask.view(np.uint8) & shown if len(shown) else mask.view(np.uint8)
        return shown, int(np.count_nonzero(shown)) if allowed is not None or len(shown) else self.n_samples_
