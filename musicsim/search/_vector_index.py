"""Base of the indexes of vectors: their rows, loading, new rows."""

from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from musicsim._arrays import BoolArray, Float32Array, Int64Array, Uint8Array
from musicsim.search._folders import fingerprint, read_meta, report_damage
from musicsim.search._rows import Index, Neighbors, check_rows, read_only

_META_KEYS = ("kind", "options", "shape", "built", "fingerprint")


class VectorIndex(Index):
    """Base of the indexes of vectors; those with :meth:`_write` and :meth:`_read` can be saved and loaded."""

    _DISTANCE = np.float32
    _X: Float32Array
    _buffer: Float32Array  # begins with `_X`
    n_built_: int

    def query(self, Q: npt.ArrayLike, k: int = 10, *, allowed: BoolArray | None = None) -> Neighbors:
        """Return the `k` nearest rows of each query that the index finds; of equal distances, the lower id first.

        Raises ValueError if `Q` has another width than the rows or contains NaN, `k` is below 1, or `allowed` has
        another length.

        Parameters
        ----------
        Q : array-like of shape (n_queries, n_features)
        k : int >= 1
            There are fewer results if fewer rows are allowed.
        allowed : bool ndarray of shape (n_samples,), optional
            Rows that may be results; all by default.

        Returns
        -------
        distances : float32 ndarray of shape (n_queries, min(k, n_allowed))
            Exact Euclidean distances, ascending.
        ids : int64 ndarray of the same shape
        """
        return self._search(Q, k, allowed, self._fill_nearest)

    def add(self, X: npt.ArrayLike) -> Int64Array:
        """Add rows (n_new, n_features) after ``fit``; return their ids.

        If they do not suit the index, it is rebuilt over all rows. Copies all rows to memory, with room for twice as
        many: 8 n_samples n_features bytes. If that is too much and the index is saved, append the new rows to the file
        of rows and load the index with all of it. Raises ValueError if `X` has another width than the rows or contains
        NaN.
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
        """Map a saved index into memory. X, (n_samples, n_features), begins with the rows it was built from.

        Further rows are added, in this process only. Raises ValueError if the index is damaged, of another kind or
        version, or `X` does not begin with its rows; FileNotFoundError if the index does not exist.
        """
        source = Path(folder)
        meta = read_meta(source, _META_KEYS)
        if meta["kind"] != cls.__name__:
            raise ValueError(f"{folder} contains a {meta['kind']}, not a {cls.__name__}.")
        n, width = meta["shape"]
        rows = check_rows(X, "X", first=n)
        if rows.shape[1] != width or len(rows) < n or fingerprint(rows[:n]) != meta["fingerprint"]:
            raise ValueError(f"the index in {folder} was made of other rows: build it again.")
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
        """Return the number of rows of a saved index, and of those it was built from; the others were added later."""
        meta = read_meta(Path(folder), _META_KEYS)
        return meta["shape"][0], meta["built"]

    def _insert(self, rows: Float32Array, first: int) -> None:
        """Index rows from number `first` on; `_X` holds them already."""
        raise NotImplementedError

    def _fill_nearest(
        self, Q: Float32Array, shown: Uint8Array, n_shown: int, distances: Float32Array, ids: Int64Array
    ) -> None:
        """Fill `distances` and `ids`; see :meth:`_search`."""
        raise NotImplementedError

    def _meta(self) -> dict[str, Any]:
        return {"built": self.n_built_, "fingerprint": fingerprint(self._X)}

    def _read(self, folder: Path) -> None:
        """Read what :meth:`_write` wrote; raise ValueError if it does not fit the rows or an option is out of range."""
        raise NotImplementedError

    def _take(self, X: Float32Array) -> None:
        """Start with rows, which are not copied."""
        self._buffer = self._X = X
        self._shown = np.empty(0, np.uint8)
        self.n_samples_, self.n_features_in_ = X.shape

    def _check_width(self, rows: npt.ArrayLike, name: str = "Q") -> Float32Array:
        array = check_rows(rows, name)
        if array.shape[1] != self.n_features_in_:
            raise ValueError(f"{name} has {array.shape[1]} columns, the index has {self.n_features_in_}.")
        return array
