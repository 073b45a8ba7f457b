"""Spill trees as flat arrays: how they lie in memory, how they are grown on all cores, kept in a file, and added to.

All trees of a forest share the arrays. A *node* is an inner node if its number is 0 or more, else leaf ``-1 - number``.

- ``nodes``, float32 (n_inner, d + 5): the direction, then b_r and b_l (algorithm 6.2: a row goes left where its
  projection is at most b_l, right where it is above b_r), then, as int32, left child, right child and parent.
- ``roots``, int32 (n_trees,).

A parent of -1 is above the root. Memory: (d + 5) * 4 bytes a node, beside the leaves (:mod:`musicsim.search._leaves`).
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from musicsim._arrays import Float32Array, Int32Array, Int64Array
from musicsim._checks import check_choice, check_whole
from musicsim.search import _kernels as kernels
from musicsim.search._code_kernels import code_size
from musicsim.search._leaves import Leaves, encoded, within
from musicsim.search._rows import read_only

_DEEPEST = 1 << 30
_UINT64 = (1 << 64) - 1  # numbers of nodes far down are cut to it, as the kernels do
# Times as often as when it was grown a tree may hold a row: where new rows lie denser than the first ones, each falls
# into many overlaps, and every split of a leaf there copies them again.
_MAX_COPIED = 2.0


@dataclass(frozen=True, slots=True)
class Growth:
    """Rules by which a tree is grown: the split rule and when to stop; see :class:`musicsim.search.SpillTree`."""

    rule: str
    spill: float
    max_depth: int | None
    leaf_size: int
    n_sample: int | None
    fills_leaves: bool = False
    n_iterations: int = 32
    n_directions: int = 64

    def check(self) -> None:
        """Raise ValueError for an option that is out of range."""
        check_choice("split", self.rule, kernels.RULES)
        if not 0 <= self.spill < 0.5:
            raise ValueError(f"spill={self.spill} should be at least 0 and below 0.5.")
        for name, least in (("max_depth", 0), ("leaf_size", 1), ("n_sample", 2)):
            if name == "leaf_size" or getattr(self, name) is not None:
                check_whole(name, getattr(self, name), least)

    @property
    def options(self) -> tuple[int, float, int, int, int, int, int]:
        """Numbers for the kernels: rule, spill, max_depth, leaf_size, n_sample, n_iterations, n_directions."""
        depth = _DEEPEST if self.max_depth is None else self.max_depth
        return (
            kernels.RULES.index(self.rule), float(self.spill), depth, self.leaf_size,
            self.n_sample or 0, self.n_iterations, self.n_directions,
        )  # fmt: skip

    @property
    def whole(self) -> int:
        """The size of which sides are multiples, 0 for halves."""
        return self.leaf_size if self.fills_leaves else 0


@dataclass(slots=True, kw_only=True)
class Trees(Leaves):
    """The arrays; see the module."""

    PARTS: ClassVar[dict[str, type[np.generic]]] = {**Leaves.PARTS, "nodes": np.float32, "roots": np.int32}

    nodes: Float32Array
    roots: Int32Array

    def depth(self) -> int:
        """Splits on the longest way from a root to a leaf."""
        links = self.nodes.view(np.int32)[:, -3:]
        reached, depth = self.roots[self.roots >= 0], 0
        while len(reached):
            children = links[reached, :2].ravel()
            reached, depth = children[children >= 0], depth + 1
        return depth

    def add(self, rows: Float32Array, first: int, X: Float32Array, growth: Growth) -> bool:
        """Put rows into every tree; see :func:`musicsim.search._kernels.insert`.

        False where that takes so many copies that trees have to be regrown: these are of no use any more.
        """
        most = int(_MAX_COPIED * self.copies * len(self.seeds) * (first + len(rows)))
        for tree, seed in enumerate(self.seeds):
            root, self.nodes, self.leaves, self.items, self.codes, n_taken = kernels.insert(
                rows, first, X, self.roots[tree], self.nodes, self.leaves, self.items, self.codes,
                np.float32(self.step), self.sizes, growth.options, np.uint64(seed), most - self.n_held,
            )  # fmt: skip
            self.roots[tree] = root
            self.n_held += n_taken
        if self.n_held > most:
            return False
        self.tidy()
        return True

    def encode(self, Y: Float32Array, step: float, threads: int) -> None:
        """Let leaves keep 8-bit codes of their rows, in units of `step`."""
        self.step = float(np.float32(step))
        self.codes = encoded(Y, self.items, self.step, threads)

    def fits(self, d: int, n: int) -> bool:
        """Whether every number leads downwards to a node of its own, or to one of n rows of width d."""
        if not self._is_of_its_types():
            return False
        n_inner, n_leaves, n_slots = self.sizes.tolist()
        shapes = (n_inner, d + kernels.N_LINKS), (n_leaves, 4), (n_slots,), (len(self.seeds),)
        if (self.nodes.shape, self.leaves.shape, self.items.shape, self.roots.shape) != shapes:
            return False
        links, own = self.nodes.view(np.int32)[:, -3:], np.arange(n_inner)
        children, parents = links[:, :2], np.concatenate([links[:, 2], self.leaves[:, 3]])
        size = self.leaves[:, 1]
        return bool(
            len(self.codes) in {0, n_slots * code_size(d)}
            and np.array_equal(np.sort(np.concatenate([self.roots, children.ravel()])), np.arange(-n_leaves, n_inner))
            and ((children < 0) | (children > own[:, None])).all()
            and within(parents, -1, n_inner)
            and (links[:, 2] < own).all()
            and self._lie_in_their_slots()
            and within(self.items, -1, n)
            and size.sum() >= n * len(self.roots)
            and (np.bincount(self.items[self.items >= 0], minlength=n) >= len(self.roots)).all()
        )


@dataclass(slots=True)
class _Part:
    """Rows that wait to be grown into a tree below `parent`."""

    ids: Int32Array
    tree: int
    depth: int = 0
    path: int = 1
    parent: int = -1
    side: int = 0


Subtree = tuple[Float32Array, Int64Array, Int32Array]


def grow_trees(X: Float32Array, growth: Growth, seeds: Sequence[int], threads: int) -> Trees:
    """Grow a tree over all rows for each seed, on several threads.

    X is float32 (n, d) and C-contiguous. Nodes near the roots are split one level after another until there are
    subtrees enough for all threads. Memory while growing: a thread holds (1 + 2 * spill) ** depth row numbers a row.
    """
    X = read_only(X)
    ids = np.arange(len(X), dtype=np.int32)
    parts = [_Part(ids, tree) for tree in range(len(seeds))]
    top: list[Float32Array] = []
    roots = np.full(len(seeds), -1, np.int32)
    with ThreadPoolExecutor(threads) as pool:
        while threads > 1 and 0 < len(parts) < 2 * threads:
            halves = list(pool.map(lambda part: _halves(X, part, growth, seeds[part.tree]), parts))
            if not any(halves):
                break
            following = []
            for part, half in zip(parts, halves, strict=True):
                if half is None:
                    following.append(part)
                    continue
                node, left, right = half
                _link(top, roots, part, len(top))
                node.view(np.int32)[-1] = part.parent
                for side, rows in enumerate((left, right)):
                    following.append(
                        _Part(rows, part.tree, part.depth + 1, 2 * part.path + side & _UINT64, len(top), side)
                    )
                top.append(node)
            parts = following
        grown = list(pool.map(lambda part: _grown(X, part, growth, seeds[part.tree]), parts))
    return _joined(X.shape, top, roots, parts, grown, seeds)


def _halves(
    X: Float32Array, part: _Part, growth: Growth, seed: int
) -> tuple[Float32Array, Int32Array, Int32Array] | None:
    """The node of some rows and the rows on its two sides; None for a leaf."""
    rule, spill, max_depth, leaf_size, n_sample, n_iterations, n_directions = growth.options
    if len(part.ids) <= leaf_size or part.depth >= max_depth:
        return None
    node = np.zeros(X.shape[1] + kernels.N_LINKS, np.float32)
    projections, scratch = np.empty((2, len(part.ids)), np.float32)
    b_r, b_l, _, n_right = kernels.split(
        X, part.ids, rule, spill, growth.whole, n_sample, n_iterations, n_directions,
        np.uint64(seed + part.path & _UINT64), node[: X.shape[1]], projections, scratch,
    )  # fmt: skip
    if n_right == 0:
        return None
    node[X.shape[1] : X.shape[1] + 2] = b_r, b_l
    return node, part.ids[projections <= b_l], part.ids[projections > b_r]


def _grown(X: Float32Array, part: _Part, growth: Growth, seed: int) -> Subtree:
    rule, spill, max_depth, leaf_size, n_sample, n_iterations, n_directions = growth.options
    return kernels.grow(
        X, part.ids, part.depth, np.uint64(part.path), rule, spill, growth.whole, max_depth, leaf_size, n_sample,
        n_iterations, n_directions, np.uint64(seed),
    )  # fmt: skip


def _link(top: list[Float32Array], roots: Int32Array, part: _Part, number: int) -> None:
    """Let the parent of a part, or the list of roots, know its number."""
    if part.parent < 0:
        roots[part.tree] = number
    else:
        top[part.parent].view(np.int32)[-3 + part.side] = number


def _joined(
    shape: tuple[int, int],
    top: list[Float32Array],
    roots: Int32Array,
    parts: Sequence[_Part],
    grown: Sequence[Subtree],
    seeds: Sequence[int],
) -> Trees:
    """All subtrees over rows of a shape in one set of arrays, below the nodes of the top."""
    n, d = shape
    n_inner, n_leaves, n_slots = len(top), 0, 0
    for part, (nodes, leaves, items) in zip(parts, grown, strict=True):
        _link(top, roots, part, n_inner if len(nodes) else -1 - n_leaves)
        links = nodes.view(np.int32)[:, -3:]
        children = links[:, :2]
        links[:, :2] = np.where(children >= 0, children + n_inner, children - n_leaves)
        leaves[:, 0] += n_slots
        for parents in (links[:, 2], leaves[:, 3]):
            parents[:] = np.where(parents >= 0, parents + n_inner, part.parent)
        n_inner, n_leaves, n_slots = n_inner + len(nodes), n_leaves + len(leaves), n_slots + len(items)
    width = d + kernels.N_LINKS
    trees = Trees(
        nodes=np.concatenate([np.array(top, np.float32).reshape(-1, width), *(part[0] for part in grown)]),
        leaves=np.concatenate([np.empty((0, 4), np.int64), *(part[1] for part in grown)]),
        items=np.concatenate([np.empty(0, np.int32), *(part[2] for part in grown)]),
        codes=np.empty(0, np.int8),
        roots=roots,
        seeds=tuple(seeds),
        sizes=np.array([n_inner, n_leaves, n_slots], np.int64),
    )
    trees.copies = max(trees.n_held / max(len(seeds) * n, 1), 1.0)
    return trees
