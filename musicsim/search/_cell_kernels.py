"""Compiled loops over a partition: cells of rows, and one list of the cells' centres; see `_cells`."""

import numpy as np
from numba import njit

from musicsim.search._kernels import BLOCK, moved, put_code
from musicsim.search._query_kernels import FAR, LINE, along, hold, nearest_of, prefetch, scan, sink

# Places of a cell's codes that are asked for before it is looked into: the processor goes on by itself.
_FETCHED = 2048


@njit(cache=True, nogil=True)
def off_axes(rows, centre, Y, result):
    """Write how far rows (n, d) lie from the space of the axes they have the coordinates Y on into the last column."""
    for i in range(rows.shape[0]):
        square = np.float32(0.0)
        for j in range(rows.shape[1]):
            square += (rows[i, j] - centre[j]) ** 2
        for j in range(Y.shape[1]):
            square -= Y[i, j] * Y[i, j]
        result[i, -1] = np.sqrt(max(square, np.float32(0.0)))


@njit(cache=True, nogil=True)
def lay_out(groups, ends, items):
    """Put rows into slots, those of a group one after the other; `ends` says where each group goes on.

    The group of each row gives way to its slot.
    """
    for i in range(groups.shape[0]):
        group = groups[i]
        items[ends[group]] = i
        groups[i] = ends[group]
        ends[group] += 1


@njit(cache=True, nogil=True)
def put_codes(codes, slots, Y, step):
    """Write the codes of rows (n, d) at their slots."""
    for i in range(slots.shape[0]):
        put_code(codes, slots[i], Y[i], step)


@njit(cache=True, nogil=True)
def hold_each_once(leaves, items, n):
    """Whether leaves, which lie in their slots, hold each of n rows once."""
    seen, n_seen = np.zeros(n, np.bool_), 0
    for leaf in range(leaves.shape[0]):
        for slot in range(leaves[leaf, 0], leaves[leaf, 0] + leaves[leaf, 1]):
            number = items[slot]
            if number < 0 or number >= n or seen[number]:
                return False
            seen[number] = True
            n_seen += 1
    return n_seen == n


@njit(cache=True, nogil=True)
def append(Y, first, cells, leaves, items, codes, step, sizes):
    """Put rows, numbered from `first` on, at the end of their cells; returns the arrays that may have grown."""
    d = Y.shape[1]
    for i in range(Y.shape[0]):
        cell = cells[i]
        if leaves[cell, 1] == leaves[cell, 2]:
            items, codes = moved(cell, leaves, items, codes, d, sizes)
        slot = leaves[cell, 0] + leaves[cell, 1]
        items[slot] = first + i
        put_code(codes, slot, Y[i], step)
        leaves[cell, 1] += 1
    return items, codes


@njit(cache=True, nogil=True)
def _offer(numbers, distances, shown, best, best_ids, n_kept):
    """Keep those of a leaf that are among the nearest so far; returns how many are kept."""
    n_best = best.shape[0]
    worst = -best[0] if n_kept == n_best else np.float32(np.inf)
    for i in range(numbers.shape[0]):
        if distances[i] < worst and (shown.shape[0] == 0 or shown[numbers[i]]):
            n_kept = hold(best, best_ids, n_kept, distances[i], numbers[i])
            if n_kept == n_best:
                worst = -best[0]
    return n_kept


@njit(cache=True, nogil=True)
def _ask_for(cell, leaves, items, codes, d):
    """Let the first codes of a cell be fetched."""
    start, size = leaves[cell, 0], leaves[cell, 1]
    prefetch(items, start)
    for place in range(start * d, start * d + min(size * d, _FETCHED), 4 * LINE):
        prefetch(codes, place)


@njit(cache=True, nogil=True)
def _look(query, n_probes, leaves, items, codes, shown, spans, best, found):
    """Look into the cells whose centres are nearest, the nearest first; returns how many rows are kept."""
    d = query.shape[0]
    n_cells = leaves[0, 1]
    keys, near = np.empty(n_probes, np.float32), np.empty(n_probes, np.int32)
    scan(codes, 0, n_cells, query, spans)
    n_near = _offer(items[:n_cells], spans, shown[:0], keys, near, 0)
    for n in range(n_near - 1, 0, -1):  # sorted: the farthest of those that are left goes to the end
        cell = near[0]
        sink(keys, near, n, keys[n], near[n])
        near[n] = cell
    n_kept = 0
    for place in range(n_near):
        if place + 1 < n_near:
            _ask_for(near[place + 1], leaves, items, codes, d)
        start, size = leaves[near[place], 0], leaves[near[place], 1]
        scan(codes, start, size, query, spans)
        n_kept = _offer(items[start : start + size], spans, shown, best, found, n_kept)
    return n_kept


@njit(cache=True, nogil=True)
def probe_cells(
    X, Q, centre, axes, leaves, items, codes, step, shown, n_probes, longest, n_best, distances, ids
):  # fmt: skip
    """The nearest rows in the cells whose centres are nearest, nearest first.

    `n_probes` cells are looked into, and where they hold fewer rows than there is room for four times as many, until
    they are enough. The best by their codes are ranked by their exact distance. Parameters are as of
    :func:`musicsim.search._query_kernels.probe`; codes have one number more than there are axes: how far a row lies
    from their space. That of the query counts as 0, so that the squares add up as if both lay off it at right angles.
    """
    d, n_cells = axes.shape[1], leaves[0, 1]
    unit = np.float32(step)
    query, scaled = np.empty(d, np.float32), np.zeros(d + 1, np.float32)
    found, best = np.empty(n_best, np.int32), np.empty(n_best, np.float32)
    spans = np.empty(longest + BLOCK, np.float32)
    for q in range(Q.shape[0]):
        along(Q[q], centre, axes, query)
        for j in range(d):
            scaled[j] = min(max(query[j] / unit, -FAR), FAR)
        n, n_kept = min(n_probes, n_cells), 0
        while True:
            n_kept = _look(scaled, n, leaves, items, codes, shown, spans, best, found)
            if n_kept == n_best or n == n_cells:
                break
            n = min(4 * n, n_cells)
        nearest_of(X, Q[q], found[:n_kept], distances[q], ids[q])
