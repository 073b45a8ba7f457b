"""Indexes of vectors: their rows, how they are kept in a folder of their own without the rows, and new rows."""

from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt

from musicsim._arrays import BoolArray, Float32Array, Int64Array, Uint8Array
from musicsim.search._folders import DAMAGED, UNREADABLE, fingerprint, made_of, read_meta, replaced, write_meta
from musicsim.search._rows import Answers, Index, checked, read_only

_META_KEYS = ("kind", "options", "shape", "built", "fingerprint")


class VectorIndex(Index):
    """Base of the indexes of vectors.

    A subclass finds the nearest rows in :meth:`_nearest`; it can be saved if it has :meth:`_write` and :meth:`_read`.
    """

    _DISTANCE = np.float32
    _X: Float32Array
    n_built_: int

    def query(self, Q: npt.ArrayLike, k: int = 10, *, allowed: BoolArray | None = None) -> Answers:
        """The `k` nearest rows of each query, as far as the index finds them; equal distances by the lower id.

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
            Exact Euclidean ones, ascending.
        ids : int64 ndarray of the same shape

        Raises
        ------
        ValueError
            If `Q` has another width than the rows or holds NaN, `k` is below 1, or `allowed` has another length.
        """
        return self._answers(Q, k, allowed, self._nearest)

    def add(self, X: npt.ArrayLike) -> Int64Array:
        """Add rows after ``fit``; where they do not suit what was built, it is built again over all of them.

        Parameters
        ----------
        X : array-like of shape (n_new, n_features)

        Returns
        -------
        int64 ndarray of shape (n_new,), the ids

        Raises
        ------
        ValueError
            If `X` has another width than the rows or holds NaN.

        Notes
        -----
        Takes all rows into memory, with room for twice as many: 8 n_samples n_features bytes. Where that is too much
        and the index is kept in a folder, write the new rows to the end of their file instead, and load the index with
        all of it.
        """
        self._check_is_fitted("n_samples_")
        rows = self._same_width(X, "X")
        first = self._append(rows)
        self._insert(rows, first)
        return np.arange(first, self.n_samples_)

    def save(self, folder: str | Path) -> None:
        """Keep the index in a folder of its own, which is replaced whole; the rows are not written.

        Parameters
        ----------
        folder : path
            Its parent has to exist.

        Raises
        ------
        FileExistsError
            If something else than an index is there.
        """
        self._check_is_fitted("n_samples_")
        options = {name: value for name, value in self.get_params().items() if name != "random_state"}
        meta = {
            "kind": type(self).__name__,
            "options": options,
            "shape": [self.n_samples_, self.n_features_in_],
            "built": self.n_built_,
            "fingerprint": fingerprint(self._X),
        }
        with replaced(Path(folder)) as written:
            self._write(written)
            np.save(written / "shown.npy", self._shown, allow_pickle=False)
            write_meta(written, meta)

    @classmethod
    def load(cls, folder: str | Path, X: npt.ArrayLike) -> Self:
        """Map a saved index into memory.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows it was made of. More rows at their end are added to it, in this process only.

        Raises
        ------
        ValueError
            If it is damaged, of another kind or version, or `X` does not begin with the rows it was made of.
        FileNotFoundError
            If there is none.
        """
        source = Path(folder)
        meta, rows = made_of(source, cls.__name__, _META_KEYS, X)
        n = meta["shape"][0]
        try:
            index = cls(**meta["options"])
            index._take(rows[:n])
            index.n_built_ = meta["built"]
            index._read(source)
            index._shown = np.load(source / "shown.npy", allow_pickle=False)
            fits = index._fits() and index._shown.dtype == np.uint8 and index._shown.shape in {(0,), (n,)}
        except UNREADABLE as error:
            raise ValueError(DAMAGED.format(source)) from error
        if not fits:
            raise ValueError(DAMAGED.format(source))
        if len(rows) > n:
            index._extend(rows)
        return index

    @staticmethod
    def saved_rows(folder: str | Path) -> tuple[int, int]:
        """Rows of a saved index, and how many of them it was built over; the others were added."""
        meta = read_meta(Path(folder), _META_KEYS)
        return meta["shape"][0], meta["built"]

    def _extend(self, rows: Float32Array) -> None:
        """Go on with rows that begin with those it has."""
        n, shown = self.n_samples_, self._shown
        self._take(rows)
        if len(shown):
            self._shown = np.concatenate([shown, np.ones(len(rows) - n, np.uint8)])
        self._insert(rows[n:], n)

    def _insert(self, rows: Float32Array, first: int) -> None:
        """Make rows found that are in the store already, from row number `first` on."""
        raise NotImplementedError

    def _nearest(
        self, Q: Float32Array, shown: Uint8Array, n_shown: int, distances: Float32Array, ids: Int64Array
    ) -> None:
        """Fill `distances` and `ids`, neither of which is empty; the other arguments are as of :meth:`_answers`."""
        raise NotImplementedError

    def _write(self, folder: Path) -> None:
        """Write all but the rows, which of them were removed, and the common metadata."""
        raise NotImplementedError

    def _read(self, folder: Path) -> None:
        """Read what was written; raises ValueError for an option that is out of range."""
        raise NotImplementedError

    def _fits(self) -> bool:
        """Whether what was read fits together and the rows."""
        raise NotImplementedError

    def _checked_queries(self, Q: npt.ArrayLike) -> Float32Array:
        return self._same_width(Q, "Q")

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

    def _same_width(self, rows: npt.ArrayLike, name: str) -> Float32Array:
        array = checked(rows, name)
        if array.shape[1] != self.n_features_in_:
            raise ValueError(f"{name} has {array.shape[1]} columns, the index has {self.n_features_in_}.")
        return array
