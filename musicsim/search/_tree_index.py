"""What a spill tree and a forest share: growing, adding, keeping in a folder."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from musicsim.search._folders import (
    DAMAGED,
    UNREADABLE,
    fingerprint,
    made_of,
    read_meta,
    replaced,
    write_meta,
)
from musicsim.search._rows import Index
from musicsim.search._trees import Growth, Trees, n_threads

__all__ = ["TreeIndex"]

_SAID = ("kind", "options", "shape", "built", "fingerprint")
# Queries for each thread, below which it costs more than it gives.
_QUERIES_A_THREAD = 16


class TreeIndex(Index):
    """Trees over rows; subclasses say how they are grown and asked."""

    _KEPT: ClassVar[dict[str, type[np.generic]]] = {"shown": np.uint8}
    """Arrays that are kept beside the trees and their types, named by their attributes without the underscore."""

    n_jobs: int | None
    random_state: int | np.random.Generator | None
    n_built_: int
    _trees: Trees

    def _begin(self, X: npt.NDArray[np.float32], trees: Trees) -> None:
        """Take the rows in, and the trees that were grown over them."""
        self._take(X)
        self._trees, self.n_built_ = trees, len(X)

    def _growth(self) -> Growth:
        """How trees are grown; raises ValueError for an option that is out of range."""
        raise NotImplementedError

    def _seeds(self, n: int) -> tuple[int, ...]:
        return tuple(np.random.default_rng(self.random_state).integers(2**63, size=n).tolist())

    @property
    def n_leaves_(self) -> int:
        """Leaves of all trees."""
        return self._trees.n_leaves

    @property
    def depth_(self) -> int:
        """Splits on the longest way from a root to a leaf."""
        return self._trees.depth()

    @property
    def nbytes_(self) -> int:
        """Memory besides the rows."""
        return self._trees.nbytes

    def add(self, X: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Add rows after ``fit``; leaves that have twice ``leaf_size`` rows are split.

        Trees that have come to suit their rows badly are grown anew over all of them, which takes as long as ``fit``:
        see the notes of the class.

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
        """
        check_is_fitted(self, "n_samples_")
        rows = self._same_width(X, "X")
        first = self._append(rows)
        self._insert(rows, first)
        return np.arange(first, self.n_samples_)

    def _insert(self, rows: npt.NDArray[np.float32], first: int) -> None:
        """Put rows that are in the store already into the trees, or grow these anew."""
        if not self._placed(rows, first):
            self._trees, self.n_built_ = self._regrown(), self.n_samples_

    def _placed(self, rows: npt.NDArray[np.float32], first: int) -> bool:
        """Put rows into the trees; False where these have to be grown anew instead."""
        raise NotImplementedError

    def _regrown(self) -> Trees:
        """Trees over all rows, of the seeds they have."""
        raise NotImplementedError

    def _for_parts(self, n: int, ask: Callable[[slice], None]) -> None:
        """Ask for parts of n queries, on as many threads as are worth it."""
        # a single query is not kept waiting by counting cores
        n_parts = min(n_threads(self.n_jobs), n // _QUERIES_A_THREAD) if n >= 2 * _QUERIES_A_THREAD else 1
        if n_parts == 1:
            ask(slice(0, n))
            return
        with ThreadPoolExecutor(n_parts) as pool:
            list(pool.map(ask, [slice(i * n // n_parts, (i + 1) * n // n_parts) for i in range(n_parts)]))

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
        check_is_fitted(self, "n_samples_")
        target = Path(folder)
        options = {name: value for name, value in self.get_params().items() if name != "random_state"}
        meta = {
            "kind": type(self).__name__,
            "options": options,
            "shape": [self.n_samples_, self.n_features_in_],
            "built": self.n_built_,
            "fingerprint": fingerprint(self._X),
        }
        with replaced(target) as written:
            self._trees.save(written)
            for name in self._KEPT:
                np.save(written / f"{name}.npy", getattr(self, f"_{name}"), allow_pickle=False)
            write_meta(written, meta)

    @classmethod
    def load(cls, folder: str | Path, X: npt.ArrayLike) -> Self:
        """Map a saved index into memory.

        Parameters
        ----------
        folder : path
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
        meta, rows = made_of(source, cls.__name__, _SAID, X)
        n = meta["shape"][0]
        try:
            index = cls(**meta["options"])
            index._trees = Trees.load(source)
            index._take(rows[:n])
            index.n_built_ = meta["built"]
            index._growth()  # this and the next raise for options out of range
            n_threads(index.n_jobs)
            for name in cls._KEPT:
                setattr(index, f"_{name}", np.load(source / f"{name}.npy", allow_pickle=False))
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
        meta = read_meta(Path(folder), _SAID)
        return meta["shape"][0], meta["built"]

    @property
    def _width(self) -> int:
        """Numbers of a row in the space of the trees."""
        return self.n_features_in_

    def _fits(self) -> bool:
        """Whether what was read from files fits together and the rows; the kernels follow every number blindly."""
        return (
            all(getattr(self, f"_{name}").dtype == kind for name, kind in self._KEPT.items())
            and self._shown.shape in {(0,), (self.n_samples_,)}
            and self._trees.fits(self._width, self.n_samples_)
        )

    def _extend(self, rows: npt.NDArray[np.float32]) -> None:
        """Go on with rows that begin with those it has."""
        n, shown = self.n_samples_, self._shown
        self._take(rows)
        if len(shown):
            self._shown = np.concatenate([shown, np.ones(len(rows) - n, np.uint8)])
        self._insert(rows[n:], n)
