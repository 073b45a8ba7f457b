"""Rows to search in: checked, growing at their end, some of them removed."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from musicsim._arrays import Float32Array, Int64Array, Uint8Array

__all__ = ["Index", "checked", "read_only"]

_BLOCK_ROWS = 65_536
_FEW_ROWS = 16
_LARGEST = float(np.finfo(np.float32).max)

Answers = tuple[Float32Array, Int64Array]


def checked(rows: npt.ArrayLike, name: str, *, first: int = 0) -> Float32Array:
    """Two-dimensional float32 rows whose distances are finite; those of a float32 memory map are not copied.

    Parameters
    ----------
    rows : array-like
    name : str
        Of the argument, for messages.
    first : int
        Rows before this one have been checked.

    Raises
    ------
    ValueError
    """
    array: Float32Array = np.asarray(rows, dtype=np.float32)
    if array.ndim != 2:
        raise ValueError(f"{name} should be two-dimensional, one song a row; its shape is {array.shape}.")
    # the squared distance of two rows of this size is half of float32's largest number at most
    limit = (_LARGEST / (8 * max(array.shape[1], 1))) ** 0.5
    for i in range(first, len(array), _BLOCK_ROWS):
        block = array[i : i + _BLOCK_ROWS]
        if len(block) <= _FEW_ROWS and np.vdot(block, block) <= limit * limit:
            continue  # a single query: a product takes a fifth of the time of the extremes
        low, high = float(block.min(initial=0.0)), float(block.max(initial=0.0))
        if not (math.isfinite(low) and math.isfinite(high)):
            raise ValueError(f"{name} holds NaN or infinite values.")
        if low < -limit or high > limit:
            raise ValueError(f"{name} holds {max(-low, high):.2g}: distances need values below {limit:.2g}.")
    return read_only(np.ascontiguousarray(array))


def read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A view that cannot be written to: numba compiles a kernel once for all rows, be they in memory or in a file."""
    view = array.view()
    view.flags.writeable = False
    return view


class Index(BaseEstimator):
    """What all indexes share: their rows, which of them were removed, and the checks of a query.

    Attributes
    ----------
    n_samples_ : int
        Rows ever given; ids are below it.
    n_features_in_ : int
    """

    _X: Float32Array
    _shown: Uint8Array

    def _take(self, X: Float32Array) -> None:
        """Begin with rows, used where they lie."""
        self._buffer = self._X = X
        self._shown = np.empty(0, np.uint8)  # of no row while none was removed
        self.n_samples_, self.n_features_in_ = X.shape

    def _append(self, rows: Float32Array) -> int:
        """Put rows at the end, in room that at least doubles; returns the number of the first."""
        first, n = self.n_samples_, self.n_samples_ + len(rows)
        if n > len(self._buffer) or not self._buffer.flags.writeable:
            self._buffer = np.empty((max(n, 2 * first), self.n_features_in_), np.float32)
            self._buffer[:first] = self._X
        self._buffer[first:n] = rows
        self._X, self.n_samples_ = read_only(self._buffer[:n]), n
        if len(self._shown):
            self._shown = np.concatenate([self._shown, np.ones(len(rows), np.uint8)])
        return first

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
        check_is_fitted(self, "n_samples_")
        gone = np.atleast_1d(np.asarray(ids))
        if gone.size and not np.issubdtype(gone.dtype, np.integer):
            raise ValueError(f"ids should be whole numbers, not {gone.dtype}.")
        if gone.size and not (gone.min() >= 0 and gone.max() < self.n_samples_):
            raise ValueError(
                f"ids go from {gone.min()} to {gone.max()}, the index has {self.n_samples_} rows."
            )
        if gone.size:
            # a copy: a query on another thread has counted what it may answer
            shown = self._shown.copy() if len(self._shown) else np.ones(self.n_samples_, np.uint8)
            shown[gone.astype(np.int64)] = 0
            self._shown = shown

    def _asked(self, Q: npt.ArrayLike, k: int) -> Float32Array:
        """The queries, checked."""
        if not hasattr(self, "n_samples_"):  # scikit-learn's own check takes as long as a small search
            check_is_fitted(self, "n_samples_")
        if k < 1:
            raise ValueError(f"k={k} should be at least 1.")
        return self._same_width(Q, "Q")

    def _same_width(self, rows: npt.ArrayLike, name: str) -> Float32Array:
        array = checked(rows, name)
        if array.shape[1] != self.n_features_in_:
            raise ValueError(f"{name} has {array.shape[1]} columns, the index has {self.n_features_in_}.")
        return array

    def _prepared(
        self, Q: npt.ArrayLike, k: int, allowed: npt.ArrayLike | None
    ) -> tuple[Float32Array, Uint8Array, int, Answers]:
        """What a query begins with: checked rows, which may be answers, how many, and room for the answers."""
        queries = self._asked(Q, k)
        shown, n_shown = self._visible(allowed)
        shape = len(queries), min(k, n_shown)
        return queries, shown, n_shown, (np.zeros(shape, np.float32), np.zeros(shape, np.int64))

    def _visible(self, allowed: npt.ArrayLike | None) -> tuple[Uint8Array, int]:
        """Which rows may be answers (of no row: all), and how many."""
        shown = self._shown
        if allowed is not None:
            mask = np.asarray(allowed, dtype=bool)
            if mask.shape != (self.n_samples_,):
                raise ValueError(f"allowed has shape {mask.shape}, the index has {self.n_samples_} rows.")
            shown = mask.view(np.uint8) & shown if len(shown) else mask.view(np.uint8)
        return shown, int(np.count_nonzero(shown)) if allowed is not None or len(shown) else self.n_samples_
