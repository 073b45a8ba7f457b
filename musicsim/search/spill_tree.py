"""Spill trees: trees in which the two sides of a split overlap (thesis 6.3, algorithms 6.2 and 6.3)."""

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from musicsim._arrays import Float32Array, Int64Array, Uint8Array
from musicsim.search import _query_kernels as kernels
from musicsim.search._rows import map_parts, n_threads
from musicsim.search._trees import Growth, Trees, grow_trees
from musicsim.search.tree_index import TreeIndex


class SpillTree(TreeIndex):
    """Find similar songs with a tree; the thesis compares its ways to split songs.

    Approximate nearest neighbors from the leaves that a query falls into. Every node splits its rows at the median
    along one direction. With spill, rows near the boundary go to both sides, so that fewer neighbors are separated. A
    query descends into every side that it falls into. The rows of the leaves that it reaches are ranked by exact
    distance. If these leaves hold fewer than `k` rows, the query moves up to their parents until there are enough. So
    it returns as many results as :class:`ExactIndex`.

    Parameters
    ----------
    split : {"pca", "kd", "2means", "random"}
        Direction of a node. "pca" is the direction of greatest variance (6.2), and "kd" the coordinate of greatest
        variance (6.1). "2means" is the line between two centroids (6.3, B.1). "random" is the direction with the
        largest diameter among 64 random directions (6.5).
    spill : float in [0, 1/2)
        tau in algorithm 6.2: each side gets the share 1/2 + spill of a node's rows.
    max_depth : int or None
        Maximum number of splits from the root to a leaf.
    leaf_size : int
        A node with at most this many rows is a leaf.
    n_sample : int or None
        Number of rows from which a node's direction is computed; None uses all rows, as in the thesis. Thresholds are
        always quantiles of all rows.
    n_jobs : int or None
        Number of threads for building and for many queries: None is one thread, -1 is one per core. The tree does not
        depend on it.
    random_state : int, numpy.random.Generator or None

    Attributes
    ----------
    n_samples_, n_features_in_, n_leaves_ : int
    nbytes_ : int
        Memory in addition to the rows.

    See Also
    --------
    SpillForest : Several trees, searched best first.
    PartitionIndex : Faster and smaller in our benchmarks.

    Notes
    -----
    A tree of depth D holds each row ``(1 + 2 * spill) ** D`` times on average, and each takes 4 bytes. With a spill of
    0.1 and a depth of 13, this is 10.7 times. Equal rows cannot be split and stay in one leaf. If added rows double the
    mean number of copies per row, the tree is regrown over all rows.

    References
    ----------
    - B. McFee, More like this: machine learning approaches to music similarity, PhD thesis, UC San Diego, 2012, chapter
      6 (algorithms 6.1 to 6.3).
    - B. McFee and G. Lanckriet, Large-scale music similarity search with spatial trees, ISMIR 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.search import ExactIndex, SpillTree
    >>> X = np.random.default_rng(0).normal(size=(2000, 8)).astype(np.float32)
    >>> tree = SpillTree(spill=0.1, leaf_size=100, random_state=0).fit(X)
    >>> found, truth = tree.query(X[:100], k=10)[1], ExactIndex().fit(X).query(X[:100], k=10)[1]
    >>> recall = np.mean([np.isin(t, f).mean() for f, t in zip(found, truth)])
    >>> bool(0.3 < recall < 1)
    True
    >>> bool(np.mean([len(rows) for rows in tree.retrieve(X[:100])]) < 1000)  # rows whose distance was computed
    True
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
        """Return the retrieval set of each query (algorithm 6.3), which is never extended to parents.

        Parameters
        ----------
        Q : array-like of shape (n_queries, n_features)
        depth : int >= 0, optional
            Treat nodes at this depth as leaves, as in a tree of this depth.

        Returns
        -------
        list of int64 ndarrays
            Ids of rows, each once, in no particular order.
        """
        queries = self._check_queries(Q, 1)
        if depth is not None and depth < 0:
            raise ValueError(f"depth={depth} must be at least 0, or None.")
        trees, cut = self.trees_, -1 if depth is None else depth
        arrays = trees.nodes, trees.leaves, trees.items, int(trees.roots[0]), self._shown
        return [kernels.retrieve(q, *arrays, cut, 0).astype(np.int64) for q in queries]
