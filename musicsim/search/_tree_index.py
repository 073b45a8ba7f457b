"""Base of spill tree, forest and partition: growing, adding, saving. Cells of a partition are leaves of no tree."""

from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from musicsim._arrays import Float32Array
from musicsim.search._leaves import Leaves
from musicsim.search._rows import check_n_jobs, checked
from musicsim.search._vector_index import VectorIndex


class TreeIndex(VectorIndex):
    """Trees over rows; subclasses say how they are grown and asked."""

    _KEPT: ClassVar[dict[str, type[np.generic]]] = {}
    """Arrays that are kept beside the trees and their types, named by their attributes without the underscore."""

    _LEAVES: ClassVar[type[Leaves]]
    n_jobs: int | None
    random_state: int | np.random.Generator | None
    _trees: Leaves

    def fit(self, X: npt.ArrayLike, y: None = None) -> Self:
        """Build the trees; float32 rows are used where they lie, not copied.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : ignored

        Raises
        ------
        ValueError
            If `X` is not two-dimensional or holds NaN, or an option is out of range.
        """
        rows = checked(X, "X")
        self._check()  # options are checked before they count
        seeds = np.random.default_rng(self.random_state).integers(2**63, size=self._n_seeds).tolist()
        trees = self._grown(rows, tuple(seeds))
        self._take(rows)
        self._trees, self.n_built_ = trees, len(rows)
        return self

    @property
    def _n_seeds(self) -> int:
        return 1

    def _grown(self, rows: Float32Array, seeds: tuple[int, ...]) -> Leaves:
        """The trees of some rows, a seed for each."""
        raise NotImplementedError

    def _check(self) -> None:
        """Raise ValueError for an option that is out of range."""
        raise NotImplementedError

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
        """Memory in addition to the rows."""
        return self._trees.nbytes

    def _insert(self, rows: Float32Array, first: int) -> None:
        """Put rows into the trees, whose leaves are split when they have twice ``leaf_size``, or regrow these."""
        if not self._placed(rows, first):
            self._trees, self.n_built_ = self._regrown(), self.n_samples_

    def _placed(self, rows: Float32Array, first: int) -> bool:
        """Put rows into the trees; False where these have to be regrown instead."""
        raise NotImplementedError

    def _regrown(self) -> Leaves:
        """Trees over all rows, of the seeds they have."""
        raise NotImplementedError

    def _write(self, folder: Path) -> None:
        self._trees.save(folder)
        for name in self._KEPT:
            np.save(folder / f"{name}.npy", getattr(self, f"_{name}"), allow_pickle=False)

    def _read(self, folder: Path) -> None:
        self._trees = self._LEAVES.load(folder)
        self._check()  # this and the next raise for options out of range
        check_n_jobs(self.n_jobs)
        for name in self._KEPT:
            setattr(self, f"_{name}", np.load(folder / f"{name}.npy", allow_pickle=False))

    @property
    def _width(self) -> int:
        """Numbers of a row in the space of the trees."""
        return self.n_features_in_

    def _fits(self) -> bool:
        """Whether what was read from files fits together and the rows; the kernels follow every number blindly."""
        return all(getattr(self, f"_{name}").dtype == kind for name, kind in self._KEPT.items()) and self._trees.fits(
            self._width, self.n_samples_
        )
