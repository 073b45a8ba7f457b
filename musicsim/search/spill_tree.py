"""Spill trees: one tree whose two sides overlap (thesis 6.3, algorithms 6.2 and 6.3)."""

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from musicsim._arrays import Float32Array, Int64Array, Uint8Array
from musicsim.search import _query_kernels as kernels
from musicsim.search._rows import map_parts, n_threads
from musicsim.search._trees import Growth, Trees, grow_trees
from musicsim.search.tree_index import TreeIndex


class SpillTree(TreeIndex):
    """Approximate neighbors from the leaves that a query falls into.

    Every node splits its rows along one direction at the median. With spill, rows near the boundary go to both sides,
    so that fewer neighbors are separated. A query descends into every side it belongs to, and the rows of the leaves it
    reaches are ranked by exact distance. If these leaves hold fewer than `k` rows, it moves up to their parents until
    there are enough: there are as many results as from :class:`ExactIndex`.

    Parameters
    ----------
    split : {"pca", "kd", "2means", "random"}
        Direction of a node: greatest variance (6.2), the coordinate of greatest variance (6.1), from one of two
        centroids to the other (6.3, B.1), or the one of 64 random directions with the largest diameter (6.5).
    spill : float in [0, 1/2)
        tau of algorithm 6.2: each side gets the share 1/2 + spill of a node's rows.
    max_depth : int or None
        Maximum number of splits on the way to a leaf.
    leaf_size : int
        A node with at most this many rows is a leaf.
    n_sample : int or None
        Rows from which the direction of a node is computed; None for all, as in the thesis. Thresholds are always
        quantiles of all rows.
    n_jobs : int or None
        Threads that build, and that answer when many queries come at once: None is 1, -1 one per core. The tree does
        not depend on it.
    random_state : int, numpy.random.Generator or None

    Attributes
    ----------
    n_samples_, n_features_in_, n_leaves_, depth_ : int
    nbytes_ : int
        Memory in addition to the rows.

    Notes
    -----
    A tree of depth D holds each row (1 + 2 * spill) ** D times on average, as a number of 4 bytes; 10.7 times for spill
    0.1 and depth 13. Equal rows cannot be split and stay in one leaf. If new rows make the tree hold each row twice as
    often as when it was grown, it is regrown over all rows.
    """

    _LEAVES: ClassVar = Trees
    trees_: Trees

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
        return Growth(self.split, self.spill, self.max_depth, self.leaf_size, self.n_sample)

    def _check_options(self) -> None:
        self._growth()

    def _grow(self, rows: Float32Array, seeds: tuple[int, ...]) -> Trees:
        return grow_trees(rows, self._growth(), seeds, n_threads(self.n_jobs))

    def _try_insert(self, rows: Float32Array, first: int) -> bool:
        return self.trees_.add(rows, first, self._X, self._growth())

    def _fill_nearest(
        self, Q: Float32Array, shown: Uint8Array, n_shown: int, distances: Float32Array, ids: Int64Array
    ) -> None:
        trees = self.trees_

        def search(part: slice) -> None:
            kernels.search_defeatist(
                self._X, Q[part], trees.nodes, trees.leaves, trees.items, int(trees.roots[0]), shown,
                distances[part], ids[part],
            )  # fmt: skip

        map_parts(len(Q), self.n_jobs, search)

    def retrieve(self, Q: npt.ArrayLike, *, depth: int | None = None) -> list[Int64Array]:
        """Return the retrieval set of each query (n_queries, n_features) by algorithm 6.3, int64 ids.

        Nodes at `depth`, if given, count as leaves, as in a tree of this depth. Ids are unique and in no order; the set
        is never extended to parents. Raises ValueError if `Q` has another width than the rows or contains NaN, or
        `depth` is below 0.
        """
        queries = self._check_queries(Q, 1)
        if depth is not None and depth < 0:
            raise ValueError(f"depth={depth} should be 0 or more, or None.")
        trees, cut = self.trees_, -1 if depth is None else depth
        arrays = trees.nodes, trees.leaves, trees.items, int(trees.roots[0]), self._shown
        return [kernels.retrieve(q, *arrays, cut, 0).astype(np.int64) for q in queries]
