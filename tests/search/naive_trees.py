"""Spill trees by recursion, as algorithms 6.2 and 6.3 are printed, with the directions of a given index."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from musicsim.search.tree_kernels import N_LINKS

__all__ = ["Node", "backed_up", "links_of", "nodes_of", "retrieved", "same_answers", "thresholds"]

# Tolerance of the kernels for rounding, relative to the length of a query.
ROUNDING = 1e-6


@dataclass(eq=False)
class Node:
    """A node and the rows below it. A leaf does not have a direction."""

    rows: list[int]
    depth: int
    w: np.ndarray | None = None
    b_r: float = 0.0
    b_l: float = 0.0
    left: "Node | None" = None
    right: "Node | None" = None
    parent: "Node | None" = None

    @property
    def is_leaf(self) -> bool:
        return self.w is None


def links_of(trees):
    """Return children and parent of every inner node, int32 (n_inner, 3)."""
    return trees.nodes.view(np.int32)[: trees.sizes[0], -3:]


def _node(trees, number, depth=0, parent=None):
    if number < 0:
        first, n = trees.leaves[-1 - number, :2]
        return Node(trees.items[first : first + n].tolist(), depth, parent=parent)
    d = trees.nodes.shape[1] - N_LINKS
    w, (b_r, b_l) = trees.nodes[number, :d].astype(np.float64), trees.nodes[number, d : d + 2]
    node = Node([], depth, w, float(b_r), float(b_l), parent=parent)
    left, right, _ = links_of(trees)[number]
    node.left, node.right = _node(trees, left, depth + 1, node), _node(trees, right, depth + 1, node)
    node.rows = sorted({*node.left.rows, *node.right.rows})
    return node


def nodes_of(index) -> Iterator[Node]:
    """Yield every node of every tree of an index, parents first."""
    for root in index.trees_.roots:
        waiting = [_node(index.trees_, int(root))]
        while waiting:
            node = waiting.pop()
            yield node
            if not node.is_leaf:
                waiting += [node.right, node.left]


def thresholds(projections, spill, whole=0):
    """Return b_r and b_l of algorithm 6.2.

    If ties leave one side empty, the cut next to the median is used. If all projections tie, the result is None.
    """
    values = sorted(projections)
    n = len(values)
    if whole and not spill:
        b_r = b_l = values[math.ceil(n / whole) // 2 * whole - 1]
    else:
        b_r, b_l = (values[max(math.ceil((0.5 + share) * n), 1) - 1] for share in (-spill, spill))
    n_left, n_right = sum(v <= b_l for v in values), sum(v > b_r for v in values)
    if 0 < n_left < n and 0 < n_right < n:
        return b_r, b_l
    middle = values[(n - 1) // 2]
    # cuts next to the median that leave rows on both sides; the more even one, or the upper of equally even ones
    cuts = [cut for cut in (middle, max((v for v in values if v < middle), default=None)) if cut is not None]
    cuts = [cut for cut in cuts if cut < values[-1]]
    if not cuts:
        return None
    cut = min(cuts, key=lambda cut: abs(n - 2 * sum(v <= cut for v in values)))
    return cut, cut


def _reached(node, q, depth, slack):
    if node.is_leaf or node.depth == depth:
        return [node]
    projection, found = node.w @ q, []
    if projection <= node.b_l + slack:
        found += _reached(node.left, q, depth, slack)
    if projection > node.b_r - slack:
        found += _reached(node.right, q, depth, slack)
    return found


def retrieved(root, q, *, depth=None, rounding=ROUNDING):
    """Return the retrieval set of algorithm 6.3 for a tree cut off at a depth."""
    return {row for node in _reached(root, q, depth, rounding * np.linalg.norm(q)) for row in node.rows}


def backed_up(root, q, k, shown):
    """Return the visible rows below the nodes that a query reaches, or below their parents until there are k."""
    nodes = _reached(root, q, None, ROUNDING * np.linalg.norm(q))
    while True:
        rows = {row for node in nodes for row in node.rows} & shown
        if len(rows) >= k or nodes == [root]:
            return rows
        parents = []
        for node in nodes:
            parent = node.parent or node
            if not any(parent is other for other in parents):
                parents.append(parent)
        nodes = parents


def same_answers(got, expected):
    """Assert that two pairs of distances and ids are equal."""
    np.testing.assert_array_equal(got[1], expected[1])
    np.testing.assert_array_equal(got[0], expected[0])
