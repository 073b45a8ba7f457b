"""Spill trees: one tree whose two sides overlap, searched where a query falls (thesis 6.3, algorithms 6.2 and 6.3)."""

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from musicsim._arrays import Float32Array, Int64Array, Uint8Array
from musicsim.search import _query_kernels as kernels
from musicsim.search._rows import ask_parts, n_threads
from musicsim.search._tree_index import TreeIndex
from musicsim.search._trees import Growth, Trees, grow_trees


class SpillTree(TreeIndex):
    """Approximate neighbours from the leaves that a query falls into.

    Every node splits its rows along one direction at the median. With spill, rows near the boundary go to both sides,
    so that fewer neighbours are parted. A query descends into every side it belongs to, and the rows of the leaves it
    reaches are ranked by their exact distance. Where these leaves hold fewer than `k` rows it goes back to their
    parents, and further up until there are enough: as many rows come back as from :class:`ExactIndex`.

    Parameters
    ----------
    split : {"pca", "kd", "2means", "random"}
        The direction of a node: of greatest variance (6.2), the coordinate of greatest variance (6.1), from one of two
        centroids to the other (6.3, B.1), or of 64 random ones that of the largest projected diameter (6.5).
    spill : float in [0, 1/2)
        tau of algorithm 6.2: each side gets the share 1/2 + spill of a node's rows.
    max_depth : int or None
        Splits on the way to a leaf, at most.
    leaf_size : int
        A node with so many rows or fewer is a leaf.
    n_sample : int or None
        Rows that a node's direction is worked out from; None for all, as the thesis has it. The thresholds are always
        the quantiles of all rows.
    n_jobs : int or None
        Threads that build, and that answer when many queries come at once: None is 1, -1 one a core. The tree is the
        same with any number.
    random_state : int, numpy.random.Generator or None

    Attributes
    ----------
    n_samples_, n_features_in_ : int
    n_leaves_, depth_ : int
    nbytes_ : int
        Memory in addition to the rows.

    Notes
    -----
    Depth grows the copies: a tree of depth D holds each row (1 + 2 * spill) ** D times on average, as a number of
    4 bytes; 10.7 times for spill 0.1 and depth 13. Rows that are all equal cannot be split and stay one leaf. Where
    rows that were added make it hold each row twice as often as when it was grown, the tree is regrown over all.
    """

    _LEAVES: ClassVar = Trees
    _trees: Trees

    def __init__(
        self,
        split: str = "pca",
        spill: float = 0.05,
        max_depth: int | None = None,
        leaf_size: int = 256,
        *,
        n_sample: int | None = 4096,
        n_jobs: int | None = -1,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.split, self.spill, self.max_depth, self.leaf_size = split, spill, max_depth, leaf_size
        self.n_sample, self.n_jobs, self.random_state = n_sample, n_jobs, random_state

    def _growth(self) -> Growth:
        growth = Growth(self.split, self.spill, self.max_depth, self.leaf_size, self.n_sample)
        growth.check()
        return growth

    def _check(self) -> None:
        self._growth()

    def _grown(self, rows: Float32Array, seeds: tuple[int, ...]) -> Trees:
        return grow_trees(rows, self._growth(), seeds, n_threads(self.n_jobs))

    def _placed(self, rows: Float32Array, first: int) -> bool:
        return self._trees.add(rows, first, self._X, self._growth())

    def _regrown(self) -> Trees:
        return self._grown(self._X, self._trees.seeds)

    def _nearest(
        self, Q: Float32Array, shown: Uint8Array, n_shown: int, distances: Float32Array, ids: Int64Array
    ) -> None:
        trees = self._trees

        def ask(part: slice) -> None:
            kernels.defeat(
                self._X, Q[part], trees.nodes, trees.leaves, trees.items, int(trees.roots[0]), shown,
                distances[part], ids[part],
            )  # fmt: skip

        ask_parts(len(Q), self.n_jobs, ask)

    def retrieve(self, Q: npt.ArrayLike, *, depth: int | None = None) -> list[Int64Array]:
        """The retrieval set of each query (algorithm 6.3), as a tree of a smaller depth would have it.

        Parameters
        ----------
        Q : array-like of shape (n_queries, n_features)
        depth : int, optional
            The tree is cut off at this depth: what lies below a node is its leaf.

        Returns
        -------
        list of int64 ndarrays
            Ids in no order, each once; never backed up to a parent.

        Raises
        ------
        ValueError
            If `Q` has another width than the rows or holds NaN, or `depth` is below 0.
        """
        queries = self._queries(Q, 1)
        if depth is not None and depth < 0:
            raise ValueError(f"depth={depth} should be 0 or more, or None.")
        trees, shown = self._trees, self._shown
        cut = -1 if depth is None else depth
        return [
            kernels.retrieve(q, trees.nodes, trees.leaves, trees.items, int(trees.roots[0]), shown, cut, 0).astype(
                np.int64
            )
            for q in queries
        ]
