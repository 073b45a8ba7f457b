"""Compiled loops that grow spill trees and insert rows; :mod:`musicsim.search._trees` describes the arrays."""

import numpy as np
from numba import njit

from musicsim.search.code_kernels import BLOCK, code_size, copy_code, decode, put_code
from musicsim.search.split_kernels import count_sides, dot, split

N_LINKS = 5
"""Number of columns after a node's direction: b_r, b_l, left child, right child, parent."""


@njit(cache=True, nogil=True)
def larger(array, size):
    """Return `array`, or a copy with at least twice its length if it is shorter than `size`."""
    if array.shape[0] >= size:
        return array
    copy = np.empty((max(size, 2 * array.shape[0]), *array.shape[1:]), array.dtype)
    values, copied = array.reshape(-1), copy.reshape(-1)
    for i in range(values.shape[0]):
        copied[i] = values[i]
    return copy


@njit(cache=True, nogil=True)
def _n_slots(n):
    """Return the number of slots for a leaf of n rows: whole blocks, and at least one."""
    return max((n + BLOCK - 1) // BLOCK, 1) * BLOCK


@njit(cache=True, nogil=True)
def grow(X, ids, depth, path, options, whole, seed):
    """Grow a tree depth-first over the rows `ids`, int32 (m,), of X, float32 (n, d) (algorithm 6.2).

    The root is at `depth` in the whole tree, whose nodes are numbered level by level from 1; `path` is the root's
    number. `options` are as in :func:`insert`. A node at max_depth, or with at most leaf_size rows, is a leaf. Returns
    nodes, float32 (n_inner, d + N_LINKS), leaves, int64 (n_leaves, 4), and items, int32 (n_slots,). The root is inner
    node 0; if there are no inner nodes, it is leaf 0.
    """
    rule, spill, max_depth, leaf_size, n_sample, n_iterations, n_directions = options
    d = X.shape[1]
    nodes, leaves = np.empty((64, d + N_LINKS), np.float32), np.empty((64, 4), np.int64)
    items = np.full(_n_slots(ids.shape[0]), -1, np.int32)
    n_inner = n_leaves = n_slots = 0
    w = np.empty(d, np.float32)
    projections, scratch = np.empty(ids.shape[0], np.float32), np.empty(ids.shape[0], np.float32)
    pool, top = ids.copy(), ids.shape[0]  # rows of the waiting nodes; the rows of the next node are last
    waiting, paths = np.empty((64, 4), np.int64), np.empty(64, np.uint64)
    n_waiting = _push_node(waiting, paths, 0, ids.shape[0], depth, -1, 0, path)
    while n_waiting:
        n_waiting -= 1
        n, level, parent, side = waiting[n_waiting]
        own, here = pool[top - n : top], paths[n_waiting]
        b_r = b_l = np.float32(0.0)
        n_left = n_right = 0
        if n > leaf_size and level < max_depth:
            b_r, b_l, n_left, n_right = split(
                X, own, rule, spill, whole, n_sample, n_iterations, n_directions, seed + here, w, projections, scratch
            )
        number = n_inner if n_right else -1 - n_leaves
        if n_right:
            nodes = larger(nodes, n_inner + 1)
            _set_node(nodes, number, w, b_r, b_l, parent)
            n_inner += 1
            both = own.copy()
            top += n_left + n_right - n
            pool = larger(pool, top)
            _distribute(
                both, projections, b_r, b_l, pool[top - n_left - n_right : top - n_left], pool[top - n_left : top]
            )
            waiting, paths = larger(waiting, n_waiting + 2), larger(paths, n_waiting + 2)
            twice = here * np.uint64(2)
            n_waiting = _push_node(waiting, paths, n_waiting, n_right, level + 1, number, 1, twice + np.uint64(1))
            n_waiting = _push_node(waiting, paths, n_waiting, n_left, level + 1, number, 0, twice)
        else:
            room = _n_slots(n)
            leaves, items = larger(leaves, n_leaves + 1), larger(items, n_slots + room)
            leaves[n_leaves, 0], leaves[n_leaves, 1] = n_slots, n
            leaves[n_leaves, 2], leaves[n_leaves, 3] = room, parent
            items[n_slots : n_slots + n] = own
            items[n_slots + n : n_slots + room] = -1
            n_leaves += 1
            n_slots += room
            top -= n
        if parent >= 0:
            nodes.view(np.int32)[parent, d + 2 + side] = number
    return nodes[:n_inner].copy(), leaves[:n_leaves].copy(), items[:n_slots].copy()


@njit(cache=True, nogil=True)
def _push_node(waiting, paths, n_waiting, n, depth, parent, side, path):
    """Push a node of n rows onto the stack of waiting nodes; return the new size of the stack."""
    waiting[n_waiting, 0], waiting[n_waiting, 1] = n, depth
    waiting[n_waiting, 2], waiting[n_waiting, 3] = parent, side
    paths[n_waiting] = path
    return n_waiting + 1


@njit(cache=True, nogil=True)
def _set_node(nodes, number, w, b_r, b_l, parent):
    d = w.shape[0]
    nodes[number, :d] = w
    nodes[number, d], nodes[number, d + 1] = b_r, b_l
    nodes.view(np.int32)[number, d + 4] = parent


@njit(cache=True, nogil=True)
def _distribute(ids, projections, b_r, b_l, right, left):
    """Copy each row to the side that it belongs to, or to both sides."""
    n_right = n_left = 0
    for i in range(ids.shape[0]):
        if projections[i] > b_r:
            right[n_right] = ids[i]
            n_right += 1
        if projections[i] <= b_l:
            left[n_left] = ids[i]
            n_left += 1


@njit(cache=True, nogil=True)
def measure_spread(rows, Y, center, reach, largest):
    """Measure how well axes and codes fit rows (n, d), whose coordinates relative to a center are Y (n, n_axes).

    Returns the number of rows beyond `reach`, and the sums of squared distances from the center along the axes and in
    total. `reach` is the largest coordinate that codes can hold. Squared distances above `largest` are reduced to
    `largest`, so that one outlier does not dominate.
    """
    n_clipped, explained, total = 0, 0.0, 0.0
    for i in range(rows.shape[0]):
        square = farthest = np.float32(0.0)
        for j in range(rows.shape[1]):
            square += (rows[i, j] - center[j]) ** 2
        for j in range(Y.shape[1]):
            farthest = max(farthest, abs(Y[i, j]))
        n_clipped += farthest > reach
        weight = largest / max(np.float64(square), largest)
        explained += weight * dot(Y[i], Y[i])
        total += weight * square
    return n_clipped, explained, total


@njit(cache=True, nogil=True)
def insert(rows, first, X, root, nodes, leaves, items, codes, step, sizes, options, seed, most):
    """Insert rows into one tree; a leaf that reaches twice `leaf_size` rows is split.

    Rows, float32 (n_new, d) in the space of the directions, are numbered starting at `first`. X contains all rows,
    including the new ones, or is empty if leaves hold codes (in units of `step`). `sizes`, int64 (3,), counts inner
    nodes, leaves and slots in use, and is updated. `options` are (rule, spill, max_depth, leaf_size, n_sample,
    n_iterations, n_directions). Once more than `most` slots are filled with rows and copies of rows, the remaining rows
    are not inserted.

    Returns root, nodes, leaves, items and codes, which may have grown, and the number of filled slots.
    """
    max_depth, leaf_size = options[2], options[3]
    d = rows.shape[1]
    n_code_bytes = 0 if X.shape[0] else code_size(d)
    waiting, paths = np.empty((64, 4), np.int64), np.empty(64, np.uint64)  # columns: node, depth, parent, side
    n_taken = 0
    for i in range(rows.shape[0]):
        if n_taken > most:
            break
        n_waiting = _push_node(waiting, paths, 0, root, 0, -1, 0, np.uint64(0))
        while n_waiting:
            n_waiting -= 1
            node, depth, parent, side = waiting[n_waiting]
            if node >= 0:
                row, links = nodes[node], nodes.view(np.int32)
                projection = dot(row[:d], rows[i])
                waiting, paths = larger(waiting, n_waiting + 2), larger(paths, n_waiting + 2)
                for which in range(2):
                    if (projection > row[d]) if which else (projection <= row[d + 1]):
                        child = links[node, d + 2 + which]
                        n_waiting = _push_node(waiting, paths, n_waiting, child, depth + 1, node, which, np.uint64(0))
                continue
            leaf = -1 - node
            if leaves[leaf, 1] == leaves[leaf, 2]:
                items, codes = enlarge_leaf(leaf, leaves, items, codes, n_code_bytes, sizes)
            slot = leaves[leaf, 0] + leaves[leaf, 1]
            items[slot] = first + i
            if n_code_bytes:
                put_code(codes, slot, rows[i], step)
            leaves[leaf, 1] += 1
            n_taken += 1
            n = leaves[leaf, 1]
            if n >= 2 * leaf_size and _has_doubled(n, leaf_size) and depth < max_depth:
                L, own_seed = _leaf_rows(leaf, leaves, items, codes, step, X, d), seed + np.uint64(first + i)
                number, nodes, leaves, items, codes = _split_leaf(
                    leaf, L, parent, nodes, leaves, items, codes, n_code_bytes, sizes, options, own_seed
                )
                if number >= 0 and parent < 0:
                    root = number
                elif number >= 0:
                    nodes.view(np.int32)[parent, d + 2 + side] = number
                if number >= 0:
                    n_taken += leaves[leaf, 1] + leaves[sizes[1] - 1, 1] - n
    return root, nodes, leaves, items, codes, n_taken


@njit(cache=True, nogil=True)
def _has_doubled(n, leaf_size):
    """Return whether `n` is leaf_size times a power of two; splits are tried only then, so equal rows cost little."""
    times = n // leaf_size
    return times * leaf_size == n and times & (times - 1) == 0


@njit(cache=True, nogil=True)
def _leaf_rows(leaf, leaves, items, codes, step, X, d):
    """Return the rows of a leaf, float32 (n, d), exact or decoded from codes."""
    start, n = leaves[leaf, 0], leaves[leaf, 1]
    L = np.empty((n, d), np.float32)
    if X.shape[0]:
        for i in range(n):
            L[i] = X[items[start + i]]
    else:
        decode(codes, start, step, L)
    return L


@njit(cache=True, nogil=True)
def _split_leaf(leaf, L, parent, nodes, leaves, items, codes, n_code_bytes, sizes, options, seed):
    """Replace a leaf of rows `L` with an inner node; return its number (-1 if it cannot be split) and the arrays."""
    rule, spill, _, _, n_sample, n_iterations, n_directions = options
    n, d = L.shape
    w = np.empty(d, np.float32)
    projections, scratch = np.empty(n, np.float32), np.empty(n, np.float32)
    ids = np.arange(n).astype(np.int32)
    b_r, b_l, _, n_right = split(
        L, ids, rule, spill, 0, n_sample, n_iterations, n_directions, seed, w, projections, scratch
    )
    if n_right == 0:
        return -1, nodes, leaves, items, codes
    number = sizes[0]
    sizes[0] += 1
    nodes = larger(nodes, sizes[0])
    _set_node(nodes, number, w, b_r, b_l, parent)
    leaves, items, codes = _divide_leaf(leaf, number, projections, b_r, b_l, leaves, items, codes, n_code_bytes, sizes)
    links = nodes.view(np.int32)
    links[number, d + 2], links[number, d + 3] = -1 - leaf, -sizes[1]
    return number, nodes, leaves, items, codes


@njit(cache=True, nogil=True)
def _add_slots(room, items, codes, n_code_bytes, sizes):
    """Add `room` slots at the end; return the first new slot and the arrays."""
    start = sizes[2]
    sizes[2] += room
    items, codes = larger(items, sizes[2]), larger(codes, sizes[2] * n_code_bytes)
    items[start : start + room] = -1
    return start, items, codes


@njit(cache=True, nogil=True)
def enlarge_leaf(leaf, leaves, items, codes, n_code_bytes, sizes):
    """Move a full leaf to the end with at least a quarter more room; its old slots stay unused."""
    old, n = leaves[leaf, 0], leaves[leaf, 1]
    room = leaves[leaf, 2] + _n_slots(leaves[leaf, 2] // 4)
    start, items, codes = _add_slots(room, items, codes, n_code_bytes, sizes)
    for i in range(n):
        items[start + i] = items[old + i]
        copy_code(codes, old + i, start + i, n_code_bytes)
    leaves[leaf, 0], leaves[leaf, 2] = start, room
    return items, codes


@njit(cache=True, nogil=True)
def _divide_leaf(leaf, inner, projections, b_r, b_l, leaves, items, codes, n_code_bytes, sizes):
    """Divide a leaf: the left side keeps its number, and the right side becomes a new leaf."""
    old = leaves[leaf, 0]
    right = sizes[1]
    sizes[1] += 1
    leaves = larger(leaves, sizes[1])
    sides = count_sides(projections, b_r, b_l)
    for which in range(2):
        room = _n_slots(sides[which])
        start, items, codes = _add_slots(room, items, codes, n_code_bytes, sizes)
        slot = start
        for i in range(projections.shape[0]):
            if (projections[i] > b_r) if which else (projections[i] <= b_l):
                items[slot] = items[old + i]
                copy_code(codes, old + i, slot, n_code_bytes)
                slot += 1
        target = right if which else leaf
        leaves[target, 0], leaves[target, 1], leaves[target, 2] = start, sides[which], room
        leaves[target, 3] = inner
    return leaves, items, codes
