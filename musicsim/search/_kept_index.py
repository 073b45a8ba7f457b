"""Indexes of rows that are kept in a folder of their own, without the rows."""

from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt

from musicsim._arrays import Float32Array
from musicsim.search._folders import DAMAGED, UNREADABLE, fingerprint, made_of, read_meta, replaced, write_meta
from musicsim.search._rows import VectorIndex

_META_KEYS = ("kind", "options", "shape", "built", "fingerprint")


class KeptIndex(VectorIndex):
    """Saving, loading, and going on with rows that came since; subclasses say what is in the files."""

    n_built_: int

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
            fits = index._fits()
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

    def _write(self, folder: Path) -> None:
        """Write all but the rows and the common metadata."""
        raise NotImplementedError

    def _read(self, folder: Path) -> None:
        """Read what was written; raises ValueError for an option that is out of range."""
        raise NotImplementedError

    def _fits(self) -> bool:
        """Whether what was read fits together and the rows."""
        raise NotImplementedError
