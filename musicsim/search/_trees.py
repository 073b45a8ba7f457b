"""Spill trees as flat arrays: layout, growth on all cores, and insertion of rows.

All trees of a forest share the arrays. Nonnegative numbers are inner nodes; a negative number n is the leaf ``-1 - n``.

- ``nodes``, float32 (n_inner, d + 5): the direction, b_r and b_l, and (as int32) left child, right child and parent.
- ``roots``, int32 (n_trees,).

A row (algorithm 6.2) goes left if its projection is at most b_l, and right if it is above b_r. The parent of a root
is -1. Memory: (d + 5) * 4 bytes per node, plus the leaves (:mod:`musicsim.search._leaves`).
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from musicsim._arrays import Float32Array, Int32Array, Int64Array
from musicsim._checks import check_choice, check_whole
from musicsim.search import tree_kernels as kernels
from musicsim.search._leaves import UINT64, Leaves, all_within
from musicsim.search._rows import read_only
from musicsim.search.code_kernels import BLOCK, code_size, encode
from musicsim.search.split_kernels import RULES, split

_DEEPEST = 1 << 30
# A tree is regrown if its number of copies per row has grown by this factor. If new rows are denser than the first
# rows, each new row falls into many overlaps, and each later split of a leaf copies the row again.
_MAX_COPIED = 2.0


@dataclass(frozen=True, slots=True)
class Growth:
    """Options for growing a tree; see :class:`musicsim.search.SpillTree`. Raises ValueError for an invalid option."""

    rule: str
    spill: float
    max_depth: int | None
    leaf_size: int
    n_sample: int | None
    fills_leaves: bool = False
    n_iterations: int = 32
    n_directions: int = 64

    def __post_init__(self) -> None:
        check_choice("split", self.rule, RULES)
        if not 0 <= self.spill < 0.5:
            raise ValueError(f"spill={self.spill} must be at least 0 and below 0.5.")
        for name, least in (("max_depth", 0), ("leaf_size", 1), ("n_sample", 2)):
            if name == "leaf_size" or getattr(self, name) is not None:
                check_whole(name, getattr(self, name), least)

    @property
    def options(self) -> tuple[int, float, int, int, int, int, int]:
        """Options in the kernels' order: rule, spill, max_depth, leaf_size, n_sample, n_iterations, n_directions."""
        depth = _DEEPEST if self.max_depth is None else self.max_depth
        rule, n_sample = RULES.index(self.rule), self.n_sample or 0
        return rule, float(self.spill), depth, self.leaf_size, n_sample, self.n_iterations, self.n_directions

    @property
    def whole(self) -> int:
        """Kernel argument: the left side of a split gets a multiple of this many rows; 0 splits into halves."""
        return self.leaf_size if self.fills_leaves else 0


@dataclass(slots=True, kw_only=True)
class Trees(Leaves):
    PARTS: ClassVar[dict[str, type[np.generic]]] = {**Leaves.PARTS, "nodes": np.float32, "roots": np.int32}

    nodes: Float32Array
    roots: Int32Array

    def add(self, rows: Float32Array, first: int, X: Float32Array, growth: Growth) -> bool:
        """Insert rows into every tree; return False if too many copies require regrowing."""
        limit = int(_MAX_COPIED * self.copies * len(self.seeds) * (first + len(rows)))
        for tree, seed in enumerate(self.seeds):
            root, self.nodes, self.leaves, self.items, self.codes, n_taken = kernels.insert(
                rows, first, X, self.roots[tree], self.nodes, self.leaves, self.items, self.codes,
                np.float32(self.step), self.sizes, growth.options, np.uint64(seed), limit - self.n_held,
            )  # fmt: skip
            self.roots[tree] = root
            self.n_held += n_taken
        if self.n_held > limit:
            return False
        self.compact()
        return True

    def encode(self, Y: Float32Array, step: float, threads: int) -> None:
        """Compute the codes of all rows, in units of `step`."""
        self.step = float(np.float32(step))
        size = BLOCK * max(1, -(-len(self.items) // (BLOCK * 4 * threads)))
        parts = [self.items[start : start + size] for start in range(0, len(self.items), size)]
        with ThreadPoolExecutor(threads) as pool:
            codes = list(pool.map(lambda part: encode(Y, part, np.float32(self.step)), parts))
        self.codes = np.concatenate(codes) if codes else np.empty(0, np.int8)

    def fits(self, d: int, n: int) -> bool:
        """Return whether every stored number points to a later node of the tree, or to one of n rows of width d."""
        if not self._has_valid_types():
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
            and all_within(parents, -1, n_inner)
            and (links[:, 2] < own).all()
            and self._has_valid_slots()
            and all_within(self.items, -1, n)
            and size.sum() >= n * len(self.roots)
            and (np.bincount(self.items[self.items >= 0], minlength=n) >= len(self.roots)).all()
        )


@dataclass(slots=True)
class _Part:
    """Rows that will form a subtree below `parent`; `path` numbers the nodes of a tree level by level, from 1."""

    ids: Int32Array
    tree: int
    depth: int = 0
    path: int = 1
    parent: int = -1
    side: int = 0


Subtree = tuple[Float32Array, Int64Array, Int32Array]


def grow_trees(X: Float32Array, growth: Growth, seeds: Sequence[int], threads: int) -> Trees:
    """Grow one tree over all rows for each seed, on several threads.

    X must be float32 (n, d) and C-contiguous. Nodes near the roots are split level by level until there are enough
    subtrees for all threads. Each thread needs memory for (1 + 2 * spill) ** depth row numbers per row.
    """
    X = read_only(X)
    ids = np.arange(len(X), dtype=np.int32)
    parts = [_Part(ids, tree) for tree in range(len(seeds))]
    top: list[Float32Array] = []
    roots = np.full(len(seeds), -1, np.int32)
    with ThreadPoolExecutor(threads) as pool:
        while threads > 1 and 0 < len(parts) < 2 * threads:
            splits = list(pool.map(lambda part: _split(X, part, growth, seeds[part.tree]), parts))
            if not any(splits):
                break
            next_parts = []
            for part, halves in zip(parts, splits, strict=True):
                if halves is None:
                    next_parts.append(part)
                    continue
                node, left, right = halves
                _link(top, roots, part, len(top))
                node.view(np.int32)[-1] = part.parent
                for side, rows in enumerate((left, right)):
                    path = 2 * part.path + side & UINT64  # truncated as in the kernels
                    next_parts.append(_Part(rows, part.tree, part.depth + 1, path, len(top), side))
                top.append(node)
            parts = next_parts
        subtrees = list(pool.map(lambda part: _grow(X, part, growth, seeds[part.tree]), parts))
    return _join(X.shape, top, roots, parts, subtrees, seeds)


def _split(
    X: Float32Array, part: _Part, growth: Growth, seed: int
) -> tuple[Float32Array, Int32Array, Int32Array] | None:
    """Return the node of a part and the rows on its left and right sides; None for a leaf."""
    rule, spill, max_depth, leaf_size, n_sample, n_iterations, n_directions = growth.options
    if len(part.ids) <= leaf_size or part.depth >= max_depth:
        return None
    node = np.zeros(X.shape[1] + kernels.N_LINKS, np.float32)
    projections, scratch = np.empty((2, len(part.ids)), np.float32)
    b_r, b_l, _, n_right = split(
        X, part.ids, rule, spill, growth.whole, n_sample, n_iterations, n_directions,
        np.uint64(seed + part.path & UINT64), node[: X.shape[1]], projections, scratch,
    )  # fmt: skip
    if n_right == 0:
        return None
    node[X.shape[1] : X.shape[1] + 2] = b_r, b_l
    return node, part.ids[projections <= b_l], part.ids[projections > b_r]


def _grow(X: Float32Array, part: _Part, growth: Growth, seed: int) -> Subtree:
    path = np.uint64(part.path)
    return kernels.grow(X, part.ids, part.depth, path, growth.options, growth.whole, np.uint64(seed))


def _link(top: list[Float32Array], roots: Int32Array, part: _Part, number: int) -> None:
    if part.parent < 0:
        roots[part.tree] = number
    else:
        top[part.parent].view(np.int32)[-3 + part.side] = number


def _join(
    shape: tuple[int, int],
    top: list[Float32Array],
    roots: Int32Array,
    parts: Sequence[_Part],
    subtrees: Sequence[Subtree],
    seeds: Sequence[int],
) -> Trees:
    """Join the subtrees with the nodes above them; `shape` is the shape of the rows."""
    n, d = shape
    n_inner, n_leaves, n_slots = len(top), 0, 0
    for part, (nodes, leaves, items) in zip(parts, subtrees, strict=True):
        _link(top, roots, part, n_inner if len(nodes) else -1 - n_leaves)
        links = nodes.view(np.int32)[:, -3:]
        children = links[:, :2]
        links[:, :2] = np.where(children >= 0, children + n_inner, children - n_leaves)
        leaves[:, 0] += n_slots
        for parents in (links[:, 2], leaves[:, 3]):
            parents[:] = np.where(parents >= 0, parents + n_inner, part.parent)
        n_inner, n_leaves, n_slots = n_inner + len(nodes), n_leaves + len(leaves), n_slots + len(items)
    top_nodes = np.array(top, np.float32).reshape(-1, d + kernels.N_LINKS)
    trees = Trees(
        nodes=np.concatenate([top_nodes, *(subtree[0] for subtree in subtrees)]),
        leaves=np.concatenate([np.empty((0, 4), np.int64), *(subtree[1] for subtree in subtrees)]),
        items=np.concatenate([np.empty(0, np.int32), *(subtree[2] for subtree in subtrees)]),
        codes=np.empty(0, np.int8),
        roots=roots,
        seeds=tuple(seeds),
        sizes=np.array([n_inner, n_leaves, n_slots], np.int64),
    )
    trees.copies = max(trees.n_held / max(len(seeds) * n, 1), 1.0)
    return trees
