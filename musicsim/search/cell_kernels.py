"""Compiled loops over a partition: cells of rows, and the centers of cells; see :mod:`musicsim.search.partition`."""

import numpy as np
from numba import njit

from musicsim.search._query_kernels import LINE, prefetch, project, rank_rows
from musicsim.search.code_kernels import BLOCK, GROUP, code_size, find_below, lowest_bit, put_code, round_query
from musicsim.search.tree_kernels import enlarge_leaf

# Number of bytes of a cell's codes that are prefetched before a scan; the processor then prefetches the rest.
_PREFETCHED = 2048


@njit(cache=True, nogil=True)
def fill_offsets(rows, center, Y, result):
    """Fill the last column with the distances from rows (n, d) to the space of the axes; Y has their coordinates."""
    for i in range(rows.shape[0]):
        square = np.float32(0.0)
        for j in range(rows.shape[1]):
            square += (rows[i, j] - center[j]) ** 2
        for j in range(Y.shape[1]):
            square -= Y[i, j] * Y[i, j]
        result[i, -1] = np.sqrt(max(square, np.float32(0.0)))


@njit(cache=True, nogil=True)
def lay_out(groups, ends, items):
    """Put rows into consecutive slots of their group, starting at `ends`; replace each row's group with its slot."""
    for i in range(groups.shape[0]):
        group = groups[i]
        items[ends[group]] = i
        groups[i] = ends[group]
        ends[group] += 1


@njit(cache=True, nogil=True)
def put_codes(codes, slots, Y, step):
    for i in range(slots.shape[0]):
        put_code(codes, slots[i], Y[i], step)


@njit(cache=True, nogil=True)
def hold_each_once(leaves, items, n):
    """Return whether the leaves, whose slots are valid, contain each of n rows exactly once."""
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
    """Append rows, numbered starting at `first`, to their cells; return the arrays that may have grown."""
    size = code_size(Y.shape[1])
    for i in range(Y.shape[0]):
        cell = cells[i]
        if leaves[cell, 1] == leaves[cell, 2]:
            items, codes = enlarge_leaf(cell, leaves, items, codes, size, sizes)
        slot = leaves[cell, 0] + leaves[cell, 1]
        items[slot] = first + i
        put_code(codes, slot, Y[i], step)
        leaves[cell, 1] += 1
    return items, codes


@njit(cache=True, nogil=True)
def _partition(keys, numbers, low, high, pivot, may_equal):
    """Move the pairs below the pivot (or equal to it, with `may_equal`) to the front; return the end of these pairs."""
    end = low
    for i in range(low, high):  # branch-free, because a branch would be mispredicted half of the time
        key, number = keys[i], numbers[i]
        keys[i], numbers[i] = keys[end], numbers[end]
        keys[end], numbers[end] = key, number
        end += (key < pivot) | (may_equal & (key == pivot))
    return end


@njit(cache=True, nogil=True)
def move_least_first(keys, numbers, n, fewest, most):
    """Move from `fewest` to `most` pairs with the smallest keys to the front, in any order; return how many."""
    low, high = 0, n
    while high > most:
        first, middle, last = keys[low], keys[(low + high) >> 1], keys[high - 1]
        pivot = max(min(first, middle), min(max(first, middle), last))
        end = _partition(keys, numbers, low, high, pivot, False)
        if end == low:  # no key is below the pivot
            end = _partition(keys, numbers, low, high, pivot, True)
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
    largest = keys[0]
    for i in range(1, n):
        largest = max(largest, keys[i])
    return largest


@njit(cache=True, nogil=True)
def _scan(leaf, leaves, items, codes, query, unit, shown, block_keys, n_best, keys, numbers, n_found, limit):
    """Collect the rows of a leaf that are nearer than the limit; return their number and the new limit.

    `keys` and `numbers` have room for ``2 * n_best + BLOCK`` rows.
    """
    first, one = leaves[leaf, 0], np.uint64(1)
    end = first + leaves[leaf, 1]
    for slot in range(first, end, BLOCK):
        bits = find_below(codes, slot, end - slot, query, unit, limit, block_keys)
        while bits:
            place = lowest_bit(bits)
            bits &= bits - one
            number = items[slot + place]
            if shown.shape[0] == 0 or shown[number]:
                keys[n_found], numbers[n_found] = block_keys[place], number
                n_found += 1
        if n_found >= 2 * n_best:
            # an exact selection would take several times as long
            n_found = move_least_first(keys, numbers, n_found, n_best, n_best + n_best // 2)
            limit = _largest(keys, n_found)
    return n_found, limit


@njit(cache=True, nogil=True)
def _prefetch_cell(cell, leaves, items, codes, size_of_code):
    start, size = leaves[cell, 0], leaves[cell, 1]
    prefetch(items, start)
    first = start * size_of_code
    for place in range(first, first + min(size * size_of_code, _PREFETCHED), 4 * LINE):
        prefetch(codes, place)


@njit(cache=True, nogil=True)
def _scan_cells(query, unit, n_probes, leaves, items, codes, shown, block_keys, n_best, keys, best_ids):
    """Scan the cells with the nearest centers; return the number of best rows in `keys` and `best_ids`."""
    room, endless = 2 * n_probes + BLOCK, np.float32(np.inf)
    distances, near = np.empty(room, np.float32), np.empty(room, np.int32)
    n_near, _ = _scan(
        0, leaves, items, codes, query, unit, shown[:0], block_keys, n_probes, distances, near, 0, endless
    )
    n_near = move_least_first(distances, near, n_near, n_probes, n_probes)
    n_found, limit = 0, endless
    for place in range(n_near):
        if place + 1 < n_near:
            _prefetch_cell(near[place + 1], leaves, items, codes, query.shape[0] + GROUP)
        n_found, limit = _scan(
            near[place], leaves, items, codes, query, unit, shown, block_keys, n_best, keys, best_ids, n_found, limit
        )
    return move_least_first(keys, best_ids, n_found, n_best, n_best)


@njit(cache=True, nogil=True)
def probe_cells(X, Q, center, axes, leaves, items, codes, step, shown, n_probes, n_best, distances, ids):
    """Find the nearest rows in the cells with the nearest centers; results are sorted by distance.

    Scans `n_probes` cells; if they hold fewer than `n_best` rows, scans four times as many until there are enough. The
    best rows by code are ranked by exact distance. The parameters are as in
    :func:`musicsim.search._query_kernels.probe`. Codes have an additional column, the row's distance from the space of
    the axes; for a query, it is 0. The query's own offset from this space is ignored: it would add the same number to
    all squared distances if it were orthogonal to the offsets of the rows.
    """
    d, n_cells = axes.shape[1], leaves[0, 1]
    query, code = np.zeros(d + 1, np.float32), np.empty(code_size(d + 1) - GROUP, np.int8)
    room = 2 * n_best + BLOCK
    best_ids, keys, block_keys = np.empty(room, np.int32), np.empty(room, np.float32), np.empty(BLOCK, np.float32)
    for q in range(Q.shape[0]):
        project(Q[q], center, axes, query[:d])
        unit = round_query(query, np.float32(step), code)
        n, n_found = min(n_probes, n_cells), 0
        while True:
            n_found = _scan_cells(code, unit, n, leaves, items, codes, shown, block_keys, n_best, keys, best_ids)
            if n_found == n_best or n == n_cells:
                break
            n = min(4 * n, n_cells)
        rank_rows(X, Q[q], best_ids[:n_found], distances[q], ids[q])
