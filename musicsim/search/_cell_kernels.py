"""Compiled loops over a partition: cells of rows, and one list of the cells' centres; see `_cells`."""

import numpy as np
from numba import njit

from musicsim.search._code_kernels import BLOCK, GROUP, below, code_size, lowest, put_code, rounded
from musicsim.search._kernels import moved
from musicsim.search._query_kernels import LINE, along, nearest_of, prefetch

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
    size = code_size(Y.shape[1])
    for i in range(Y.shape[0]):
        cell = cells[i]
        if leaves[cell, 1] == leaves[cell, 2]:
            items, codes = moved(cell, leaves, items, codes, size, sizes)
        slot = leaves[cell, 0] + leaves[cell, 1]
        items[slot] = first + i
        put_code(codes, slot, Y[i], step)
        leaves[cell, 1] += 1
    return items, codes


@njit(cache=True, nogil=True)
def _parted(keys, numbers, low, high, pivot, may_equal):
    """Put the pairs below the pivot, or those up to it, first; returns where they end."""
    end = low
    for i in range(low, high):  # without a branch, which processors would guess wrong half of the time
        key, number = keys[i], numbers[i]
        keys[i], numbers[i] = keys[end], numbers[end]
        keys[end], numbers[end] = key, number
        end += (key < pivot) | (may_equal & (key == pivot))
    return end


@njit(cache=True, nogil=True)
def _put_least_first(keys, numbers, n, fewest, most):
    """Put the pairs of the least keys of n first, in no order; returns how many, between the fewest and the most."""
    low, high = 0, n
    while high > most:
        first, middle, last = keys[low], keys[(low + high) >> 1], keys[high - 1]
        pivot = max(min(first, middle), min(max(first, middle), last))
        end = _parted(keys, numbers, low, high, pivot, False)
        if end == low:  # nothing is below the pivot
            end = _parted(keys, numbers, low, high, pivot, True)
            if end >= fewest:
                return min(end, most)
        if end > most:
            high = end
        elif end >= fewest:
            return end
        else:
            low = end
    return high


@njit(cache=True, nogil=True, fastmath=True)
def _largest(keys, n):
    """The largest of the first n keys."""
    largest = keys[0]
    for i in range(1, n):
        largest = max(largest, keys[i])
    return largest


@njit(cache=True, nogil=True)
def _scan(leaf, leaves, items, codes, query, unit, shown, of_block, n_best, keys, numbers, n_kept, limit):
    """Keep the rows of a leaf that are nearer than the limit; returns how many are kept, and the limit for others.

    `keys` and `numbers` have room for twice as many as are wanted, and a block.
    """
    first, one = leaves[leaf, 0], np.uint64(1)
    end = first + leaves[leaf, 1]
    for slot in range(first, end, BLOCK):
        bits = below(codes, slot, end - slot, query, unit, limit, of_block)
        while bits:
            place = lowest(bits)
            bits &= bits - one
            number = items[slot + place]
            if shown.shape[0] == 0 or shown[number]:
                keys[n_kept], numbers[n_kept] = of_block[place], number
                n_kept += 1
        if n_kept >= 2 * n_best:
            # not exactly: that would take several times as long
            n_kept = _put_least_first(keys, numbers, n_kept, n_best, n_best + n_best // 2)
            limit = _largest(keys, n_kept)
    return n_kept, limit


@njit(cache=True, nogil=True)
def _ask_for(cell, leaves, items, codes, size_of_code):
    """Let the first codes of a cell be fetched."""
    start, size = leaves[cell, 0], leaves[cell, 1]
    prefetch(items, start)
    first = start * size_of_code
    for place in range(first, first + min(size * size_of_code, _FETCHED), 4 * LINE):
        prefetch(codes, place)


@njit(cache=True, nogil=True)
def _look(query, unit, n_probes, leaves, items, codes, shown, of_block, n_best, keys, found):
    """Look into the cells whose centres are nearest; returns how many rows are kept, the best ones."""
    room, endless = 2 * n_probes + BLOCK, np.float32(np.inf)
    distances, near = np.empty(room, np.float32), np.empty(room, np.int32)
    n_near, _ = _scan(0, leaves, items, codes, query, unit, shown[:0], of_block, n_probes, distances, near, 0, endless)
    n_near = _put_least_first(distances, near, n_near, n_probes, n_probes)
    n_kept, limit = 0, endless
    for place in range(n_near):
        if place + 1 < n_near:
            _ask_for(near[place + 1], leaves, items, codes, query.shape[0] + GROUP)
        n_kept, limit = _scan(
            near[place], leaves, items, codes, query, unit, shown, of_block, n_best, keys, found, n_kept, limit
        )
    return _put_least_first(keys, found, n_kept, n_best, n_best)


@njit(cache=True, nogil=True)
def probe_cells(X, Q, centre, axes, leaves, items, codes, step, shown, n_probes, n_best, distances, ids):
    """The nearest rows in the cells whose centres are nearest, nearest first.

    `n_probes` cells are looked into, and where they hold fewer rows than there is room for four times as many, until
    they are enough. The best by their codes are ranked by their exact distance. Parameters are as of
    :func:`musicsim.search._query_kernels.probe`; codes have one number more than there are axes: how far a row lies
    from their space. That of the query counts as 0, so that the squares add up as if both lay off it at right angles.
    """
    d, n_cells = axes.shape[1], leaves[0, 1]
    query, code = np.zeros(d + 1, np.float32), np.empty(code_size(d + 1) - GROUP, np.int8)
    room = 2 * n_best + BLOCK
    found, keys, of_block = np.empty(room, np.int32), np.empty(room, np.float32), np.empty(BLOCK, np.float32)
    for q in range(Q.shape[0]):
        along(Q[q], centre, axes, query[:d])
        unit = rounded(query, np.float32(step), code)
        n, n_kept = min(n_probes, n_cells), 0
        while True:
            n_kept = _look(code, unit, n, leaves, items, codes, shown, of_block, n_best, keys, found)
            if n_kept == n_best or n == n_cells:
                break
            n = min(4 * n, n_cells)
        nearest_of(X, Q[q], found[:n_kept], distances[q], ids[q])
