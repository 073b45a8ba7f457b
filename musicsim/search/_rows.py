"""Base class of all indexes: checks of rows and queries, removed rows, saving, threads."""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from numbers import Integral
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from musicsim._arrays import Float32Array, Int64Array, Uint8Array
from musicsim._checks import check_dense
from musicsim._npy import save_array
from musicsim.search._folders import replace_folder, write_meta
from musicsim.search.estimator import Estimator

T = TypeVar("T")
Neighbors = tuple[Float32Array, Int64Array]

_BLOCK_ROWS = 65_536
_QUERIES_PER_THREAD = 16  # With fewer queries, a thread costs more time than it saves
_FEW_ROWS = 16
_MAX_FLOAT32 = float(np.finfo(np.float32).max)


def check_rows(rows: npt.ArrayLike, name: str, *, first: int = 0) -> Float32Array:
    """Return two-dimensional float32 rows whose distances are finite; rows before `first` are not checked."""
    check_dense(name, rows)
    array: Float32Array = np.asarray(rows, dtype=np.float32)
    if array.ndim != 2:
        raise ValueError(f"{name} has shape {array.shape}; it must be two-dimensional, with one song per row.")
    # the squared distance between two rows of this size is at most half of float32's largest number
    square = _MAX_FLOAT32 / (8 * max(array.shape[1], 1))
    if len(array) <= _FEW_ROWS:
        array = np.ascontiguousarray(array)
        numbers = array.ravel()
        with np.errstate(over="ignore", invalid="ignore"):  # invalid rows are rejected below
            is_small = numbers.dot(numbers) <= square  # takes a tenth of the time of min and max
        if is_small:
            return read_only(array)
    limit = square**0.5
    for i in range(first, len(array), _BLOCK_ROWS):
        block = array[i : i + _BLOCK_ROWS]
        low, high = float(block.min(initial=0.0)), float(block.max(initial=0.0))
        if not (math.isfinite(low) and math.isfinite(high)):
            raise ValueError(f"{name} contains NaN or infinite values.")
        if low < -limit or high > limit:
            raise ValueError(f"{name} contains {max(-low, high):.2g}; values must be below {limit:.2g}.")
    return read_only(np.ascontiguousarray(array))


def check_sparse_rows(rows: Any, name: str) -> Any:
    """Return rows as a float32 CSR array whose distances are finite."""
    from scipy import sparse  # this import takes 0.1 s

    if rows.dtype.kind == "c":
        raise ValueError(f"{name} is complex. Complex data not supported: pass real numbers.")
    array = sparse.csr_array(rows, dtype=np.float32, copy=True)
    array.sum_duplicates()
    check_rows(array.data[None], name)
    return array


def read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a read-only view, so that numba compiles a kernel only once for arrays in memory and in files."""
    view = array.view()
    view.setflags(write=False)
    return view


def map_parts(n: int, n_jobs: int | None, search: Callable[[slice], T], max_size: int | None = None) -> list[T]:
    """Search for n queries in parts of at most `max_size`, on several threads if that is faster; return each result."""
    if max_size is None and n < 2 * _QUERIES_PER_THREAD:  # counting cores would delay a single query
        return [search(slice(0, n))]
    threads = n_threads(n_jobs) if n >= 2 * _QUERIES_PER_THREAD else 1
    n_parts = max(min(threads, n // _QUERIES_PER_THREAD), -(-n // (max_size or max(n, 1))), 1)
    parts = [slice(i * n // n_parts, (i + 1) * n // n_parts) for i in range(n_parts)]
    if threads == 1:
        return [search(part) for part in parts]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(search, parts))


def n_threads(n_jobs: int | None) -> int:
    """Return the number of threads for scikit-learn's `n_jobs`: None is one thread, -1 is one per core."""
    from joblib import effective_n_jobs

    check_n_jobs(n_jobs)
    return effective_n_jobs(n_jobs)


def check_n_jobs(n_jobs: int | None) -> None:
    """Raise ValueError unless `n_jobs` is a number of threads. It does not count cores, because that imports joblib."""
    if n_jobs == 0 or not (n_jobs is None or isinstance(n_jobs, Integral)):
        raise ValueError(f"n_jobs={n_jobs!r} must be a number of threads (1 is one thread, -1 is one per core).")


class Index(Estimator):
    """Base class of all indexes; ids are below `n_samples_`, the number of rows ever added."""

    _DISTANCE: ClassVar[type[np.generic]]  # type of the returned distances
    n_samples_: int
    n_features_in_: int
    _shown: Uint8Array  # 0 for removed rows; empty if no row was removed

    def remove(self, ids: npt.ArrayLike) -> None:
        """Exclude rows from results; their ids are not used again. Removing a row twice has no effect.

        Parameters
        ----------
        ids : int or int array-like, each below `n_samples_`
        """
        self._check_is_fitted("n_samples_")
        removed = np.atleast_1d(np.asarray(ids))
        if not removed.size:
            return
        if not np.issubdtype(removed.dtype, np.integer):
            raise ValueError(f"ids has type {removed.dtype}; ids must be integers.")
        low, high = removed.min(), removed.max()
        if low < 0 or high >= self.n_samples_:
            raise ValueError(f"ids range from {low} to {high}, but the index has {self.n_samples_} rows.")
        # copied, because a query on another thread may have counted the rows of the old mask
        shown = self._shown.copy() if len(self._shown) else np.ones(self.n_samples_, np.uint8)
        shown[removed.astype(np.int64)] = 0
        self._shown = shown

    def save(self, folder: str | Path) -> None:
        """Save the index to a folder, which is replaced as a whole. Bit codes are saved, but vectors are not.

        Parameters
        ----------
        folder : str or Path, inside an existing folder

        Raises
        ------
        FileExistsError
            If the folder contains something other than an index.
        """
        self._check_is_fitted("n_samples_")
        meta = {
            "kind": type(self).__name__,
            "options": {name: value for name, value in self.get_params().items() if name != "random_state"},
            "shape": [self.n_samples_, self.n_features_in_],
            **self._meta(),
        }
        with replace_folder(Path(folder)) as target:
            self._write(target)
            save_array(target / "shown.npy", self._shown)
            write_meta(target, meta)

    def _meta(self) -> dict[str, Any]:
        """Return the metadata that is specific to this class."""
        raise NotImplementedError

    def _write(self, folder: Path) -> None:
        """Write arrays, except vectors and removed rows."""
        raise NotImplementedError

    def _read_shown(self, folder: Path) -> None:
        """Read the mask of rows that were not removed; raise ValueError if its type or length is wrong."""
        self._shown = np.load(folder / "shown.npy", allow_pickle=False)
        if self._shown.dtype != np.uint8 or self._shown.shape not in {(0,), (self.n_samples_,)}:
            raise ValueError("shown.npy does not match the rows.")

    def _extend_shown(self, n: int) -> None:
        if len(self._shown):
            self._shown = np.concatenate([self._shown, np.ones(n, np.uint8)])

    def _search(
        self, Q: npt.ArrayLike, k: int, allowed: npt.ArrayLike | None, fill_nearest: Callable[..., None], *args: int
    ) -> tuple[Any, Int64Array]:
        """Return the distances and ids of the `k` rows nearest to each query.

        `fill_nearest` is called with the checked queries, the mask of allowed rows and their number, the nonempty
        arrays of distances and ids to fill, and `args`. An empty mask allows all rows.
        """
        queries = self._check_queries(Q, k)
        shown, n_shown = self._combine_masks(allowed)
        shape = queries.shape[0], min(k, n_shown)
        distances, ids = np.zeros(shape, self._DISTANCE), np.zeros(shape, np.int64)
        if ids.size:
            fill_nearest(queries, shown, n_shown, distances, ids, *args)
        return distances, ids

    def _check_queries(self, Q: npt.ArrayLike, k: int) -> Any:
        self._check_is_fitted("n_samples_")
        if k < 1:
            raise ValueError(f"k={k} must be at least 1.")
        return self._check_width(Q)

    def _check_width(self, Q: npt.ArrayLike) -> Any:
        """Return queries as an array; raise ValueError unless they are as wide as the rows."""
        raise NotImplementedError

    def _combine_masks(self, allowed: npt.ArrayLike | None) -> tuple[Uint8Array, int]:
        """Return the mask of rows that are allowed and not removed (empty for all rows), and their number."""
        shown = self._shown
        if allowed is not None:
            mask = np.asarray(allowed, dtype=bool)
            if mask.shape != (self.n_samples_,):
                raise ValueError(f"allowed has shape {mask.shape}; it must be ({self.n_samples_},), one entry per row.")
            shown = mask.view(np.uint8) & shown if len(shown) else mask.view(np.uint8)
        return shown, int(np.count_nonzero(shown)) if allowed is not None or len(shown) else self.n_samples_
