"""Compiled queries on spill trees: defeatist search, best-first probing of many trees, exact distances.

:mod:`musicsim.search._trees` describes the arrays.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from musicsim.search.code_kernels import BLOCK, GROUP, code_size, find_below, lowest_bit, round_query
from musicsim.search.split_kernels import dot
from musicsim.search.tree_kernels import N_LINKS, larger

LINE = 16  # Number of float32 values in a cache line

_BATCH = 8  # Number of branches followed together, so that memory can be prefetched for all of them
_AHEAD = 4  # Number of rows prefetched ahead of the comparison
# Rounding error of an inner product, relative to the query's length. A query this close to a threshold is treated as
# being on both sides of the split.
_ROUNDING = np.float32(1e-6)
# A neighbor's margin is the query's margin plus a Gaussian step, so the neighbor is on the query's side of a split with
# probability Phi(z). Approximations: (_ROOT - _FALL z)^2 for -log Phi(z), _SLOPE z + _BEND z^2 for the log odds.
_ROOT, _FALL = np.float32(0.8326), np.float32(0.479)
_SLOPE, _BEND = np.float32(1.596), np.float32(0.2)


def _prefetch(typingctx, array, index):
    def generate(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, value=arguments[0]).data
        place = builder.bitcast(builder.gep(data, [arguments[1]]), ir.IntType(8).as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [place.type, ir.IntType(32), ir.IntType(32), ir.IntType(32)])
        function = builder.module.declare_intrinsic("llvm.prefetch", [place.type], kind)
        # arguments: read access, all cache levels, data cache
        builder.call(function, [place, *(ir.Constant(ir.IntType(32), number) for number in (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


prefetch: Any = intrinsic(_prefetch)  # numba passes the first argument


@njit(cache=True, nogil=True)
def push(keys, values, n, key, value):
    """Add a pair to a min-heap of n pairs."""
    i = n
    while i > 0:
        parent = (i - 1) >> 1
        if keys[parent] <= key:
            break
        keys[i], values[i] = keys[parent], values[parent]
        i = parent
    keys[i], values[i] = key, value


@njit(cache=True, nogil=True)
def sink(keys, values, n, key, value):
    """Replace the first pair of a min-heap of n pairs."""
    i = 0
    while True:
        child = 2 * i + 1
        if child >= n:
            break
        if child + 1 < n and keys[child + 1] < keys[child]:
            child += 1
        if keys[child] >= key:
            break
        keys[i], values[i] = keys[child], values[child]
        i = child
    keys[i], values[i] = key, value


@njit(cache=True, nogil=True)
def _enter(table, number):
    """Add a number to a hash set of 2^n slots (-1 marks a free slot); return False if it is already in the set."""
    mask = table.shape[0] - 1
    place = (number * 0x9E3779B1) & mask
    while table[place] >= 0:
        if table[place] == number:
            return False
        place = (place + 1) & mask
    table[place] = number
    return True


@njit(cache=True, nogil=True)
def _new_set(n):
    size = 64
    while size < 2 * n:
        size *= 2
    return np.full(size, -1, np.int32)


@njit(cache=True, nogil=True)
def _enlarge_set(table):
    result = np.full(2 * table.shape[0], -1, np.int32)
    for number in table:
        if number >= 0:
            _enter(result, number)
    return result


@njit(cache=True, nogil=True)
def _prefetch_node(flat, leaves, node, width):
    """Prefetch the row of an inner node, or the entry of a leaf."""
    if node >= 0:
        for place in range(node * width, (node + 1) * width, LINE):
            prefetch(flat, place)
        prefetch(flat, (node + 1) * width - 1)
    else:
        prefetch(leaves, 4 * (-1 - node))


@njit(cache=True, nogil=True)
def _take_first(front, front_nodes, n_front, at, keys, n, flat, entries, width):
    """Move the n most promising branches from the queue to `at` and `keys`; return how many remain."""
    for b in range(n):
        keys[b], at[b] = front[0], front_nodes[0]
        n_front -= 1
        if n_front:
            sink(front, front_nodes, n_front, front[n_front], front_nodes[n_front])
        _prefetch_node(flat, entries, at[b], width)
    return n_front


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _descend(query, flat, links, entries, sharpness, at, keys, doubts, n, front, front_nodes, owners, n_front):
    """Follow n branches to their leaves in parallel; append the sides not taken to the queue, in any order.

    The key of a side not taken is its branch's key plus the log odds against this side. `doubts` sums, for each branch,
    the uncertainty about the sides taken. `owners` contains the branch of each side not taken.
    """
    d = query.shape[0]
    width = d + N_LINKS
    going = True
    while going:
        going = False
        if n_front + n > front.shape[0]:
            front, front_nodes = larger(front, n_front + n), larger(front_nodes, n_front + n)
            owners = larger(owners, n_front + n)
        for b in range(n):
            node = at[b]
            if node < 0:
                continue
            # index the flat array: creating a view of the row costs a quarter of the product
            base = node * width
            margin = np.float32(-0.5) * (flat[base + d] + flat[base + d + 1])
            for j in range(d):
                margin += flat[base + j] * query[j]
            side = 1 if margin > 0.0 else 0
            at[b] = links[base + d + 2 + side]
            going = going or at[b] >= 0
            _prefetch_node(flat, entries, at[b], width)
            z = abs(margin) * sharpness
            front[n_front] = keys[b] + z * (_SLOPE + _BEND * z)
            front_nodes[n_front], owners[n_front] = links[base + d + 3 - side], b
            n_front += 1
            doubt = max(_ROOT - _FALL * z, np.float32(0.0))
            doubts[b] += doubt * doubt
    return front, front_nodes, owners, n_front


@njit(cache=True, nogil=True)
def _descend_all(query, flat, links, entries, sharpness, roots, at, keys, doubts, front, front_nodes, owners):
    """Descend every tree once; the queue then holds the first leaves and the sides not taken, most certain first."""
    width = query.shape[0] + N_LINKS
    n_front = 0
    for first in range(0, roots.shape[0], _BATCH):
        n = min(_BATCH, roots.shape[0] - first)
        for b in range(n):
            at[b], keys[b], doubts[b] = roots[first + b], np.float32(0.0), np.float32(0.0)
            _prefetch_node(flat, entries, at[b], width)
        start = n_front
        front, front_nodes, owners, n_front = _descend(
            query, flat, links, entries, sharpness, at, keys, doubts, n, front, front_nodes, owners, n_front
        )
        for i in range(start, n_front):
            front[i] += doubts[owners[i]]
        front, front_nodes = larger(front, n_front + n), larger(front_nodes, n_front + n)
        owners = larger(owners, n_front + n)
        for b in range(n):
            front[n_front], front_nodes[n_front] = doubts[b], at[b]
            n_front += 1
    for i in range(n_front):
        push(front, front_nodes, i, front[i], front_nodes[i])
    return front, front_nodes, owners, n_front


@njit(cache=True, nogil=True)
def keep_best(best, best_ids, n_found, distance, number):
    """Add a row, replacing the worst one if the heap is full; return the number of rows."""
    if n_found < best.shape[0]:
        push(best, best_ids, n_found, -distance, number)
        return n_found + 1
    sink(best, best_ids, n_found, -distance, number)
    return n_found


@njit(cache=True, nogil=True)
def _scan(leaf, leaves, items, codes, query, unit, shown, table, n_entered, keys, numbers, n_found):
    """Collect the rows of a leaf that are among the best so far, each once; return the hash set and both counts."""
    n_best, block_keys, one = keys.shape[0], np.empty(BLOCK, np.float32), np.uint64(1)
    worst = -keys[0] if n_found == n_best else np.float32(np.inf)
    end = leaves[leaf, 0] + leaves[leaf, 1]
    for slot in range(leaves[leaf, 0], end, BLOCK):
        bits = find_below(codes, slot, end - slot, query, unit, worst, block_keys)
        while bits:
            place = lowest_bit(bits)
            bits &= bits - one
            number = items[slot + place]
            if block_keys[place] >= worst or (shown.shape[0] and not shown[number]):
                continue
            if 2 * n_entered >= table.shape[0]:
                table = _enlarge_set(table)
            if not _enter(table, number):
                continue
            n_entered += 1
            n_found = keep_best(keys, numbers, n_found, block_keys[place], number)
            if n_found == n_best:
                worst = -keys[0]
    return table, n_entered, n_found


@njit(cache=True, nogil=True, fastmath=True)
def _compute_squares(X, query, candidates):
    squares = np.empty(candidates.shape[0], np.float32)
    flat, d = X.reshape(-1), X.shape[1]
    for i in range(min(_AHEAD, candidates.shape[0])):
        for place in range(candidates[i] * d, (candidates[i] + 1) * d, LINE):
            prefetch(flat, place)
    for i in range(candidates.shape[0]):
        if i + _AHEAD < candidates.shape[0]:
            following = candidates[i + _AHEAD]
            for place in range(following * d, (following + 1) * d, LINE):
                prefetch(flat, place)
        row = X[candidates[i]]
        total = np.float32(0.0)
        for j in range(query.shape[0]):
            total += (row[j] - query[j]) ** 2
        squares[i] = total
    return squares


@njit(cache=True, nogil=True)
def _sink_pair(distances, ids, n, distance, number):
    """Replace the first pair of a max-heap of n pairs."""
    i = 0
    while True:
        child = 2 * i + 1
        if child >= n:
            break
        if child + 1 < n and _is_after(distances[child + 1], ids[child + 1], distances[child], ids[child]):
            child += 1
        if not _is_after(distances[child], ids[child], distance, number):
            break
        distances[i], ids[i] = distances[child], ids[child]
        i = child
    distances[i], ids[i] = distance, number


@njit(cache=True, nogil=True)
def _is_after(distance, number, other, other_number):
    """Return whether a row ranks after another row: it is farther away, or equally far with a higher number."""
    return distance > other or (distance == other and number > other_number)


@njit(cache=True, nogil=True)
def rank_rows(X, query, candidates, distances, ids):
    """Fill (k,) arrays with the k nearest of at least k rows by exact distance; the lower id wins ties."""
    all_distances, k = np.sqrt(_compute_squares(X, query, candidates)), ids.shape[0]
    distances[:], ids[:] = np.float32(np.inf), np.iinfo(np.int64).max
    for i in range(candidates.shape[0]):
        if _is_after(distances[0], ids[0], all_distances[i], candidates[i]):
            _sink_pair(distances, ids, k, all_distances[i], candidates[i])
    for n in range(k - 1, 0, -1):  # the farthest remaining row moves to the end
        distance, number = distances[0], ids[0]
        _sink_pair(distances, ids, n, distances[n], ids[n])
        distances[n], ids[n] = distance, number


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def project(query, center, axes, result):
    """Fill `result` with the coordinates of a query along axes (d, n_axes)."""
    result[:] = 0.0
    d = query.shape[0]
    # process four columns at a time, so that the sums are read and written a quarter as often
    for i in range(0, d - 3, 4):
        a, b = query[i] - center[i], query[i + 1] - center[i + 1]
        c, e = query[i + 2] - center[i + 2], query[i + 3] - center[i + 3]
        for j in range(result.shape[0]):
            result[j] += a * axes[i, j] + b * axes[i + 1, j] + c * axes[i + 2, j] + e * axes[i + 3, j]
    for i in range(d // 4 * 4, d):
        difference = query[i] - center[i]
        for j in range(result.shape[0]):
            result[j] += difference * axes[i, j]


@njit(cache=True, nogil=True)
def probe(
    X, Q, center, axes, nodes, leaves, items, codes, step, sharpness, roots, shown, n_probes, n_best, distances, ids
):
    """Find the nearest rows in the most promising leaves of all trees; results are sorted by distance.

    One queue holds leaves and branches, most certain first. The search ends when `n_probes` leaves are scanned and
    `n_best` rows are found, or when no leaf is left. The best rows by code are then ranked by exact distance.

    `center`, float32 (d,), and `axes`, float32 (d, n_axes), define the space of the trees and codes; codes are in units
    of `step`. `sharpness` is the inverse of the standard deviation of neighbors from the query along an axis. `shown`,
    uint8 (n,), masks the rows that may be results; an empty mask allows all rows. Fills `distances` and `ids`, float32
    and int64 (n_queries, k), with k <= `n_best`.
    """
    d = axes.shape[1]
    flat, entries = nodes.reshape(-1), leaves.reshape(-1)
    links = flat.view(np.int32)
    size_of_code = code_size(d)
    query, code = np.empty(d, np.float32), np.empty(size_of_code - GROUP, np.int8)
    front, front_nodes, owners = np.empty(1024, np.float32), np.empty(1024, np.int32), np.empty(1024, np.int8)
    best_ids, best = np.empty(n_best, np.int32), np.empty(n_best, np.float32)
    at, keys, doubts = np.empty(_BATCH, np.int64), np.empty(_BATCH, np.float32), np.empty(_BATCH, np.float32)
    empty = _new_set(4 * n_best)
    for q in range(Q.shape[0]):
        project(Q[q], center, axes, query)
        unit = round_query(query, step, code)
        table, n_entered = empty.copy(), 0
        n_found = n_seen = 0
        front, front_nodes, owners, n_front = _descend_all(
            query, flat, links, entries, sharpness, roots, at, keys, doubts, front, front_nodes, owners
        )
        while n_front and (n_seen < n_probes or n_found < n_best):
            n = min(_BATCH, n_front, max(n_probes - n_seen, 1))
            n_front = _take_first(front, front_nodes, n_front, at, keys, n, flat, entries, d + N_LINKS)
            start = n_front
            front, front_nodes, owners, n_front = _descend(
                query, flat, links, entries, sharpness, at, keys, doubts, n, front, front_nodes, owners, n_front
            )
            for i in range(start, n_front):
                push(front, front_nodes, i, front[i], front_nodes[i])
            for b in range(n):
                start, size = leaves[-1 - at[b], 0], leaves[-1 - at[b], 1]
                for place in range(start * size_of_code, (start + size) * size_of_code, 4 * LINE):
                    prefetch(codes, place)
            for b in range(n):
                table, n_entered, n_found = _scan(
                    -1 - at[b], leaves, items, codes, code, unit, shown, table, n_entered, best, best_ids, n_found
                )
            n_seen += n
        rank_rows(X, Q[q], best_ids[:n_found], distances[q], ids[q])


@njit(cache=True, nogil=True)
def _collect_rows(node, links, d, leaves, items, shown, waiting, table, ids, n):
    """Append allowed rows below a node that are not in the hash set; return the (possibly enlarged) arrays and n."""
    waiting[0] = node
    n_waiting = 1
    while n_waiting:
        n_waiting -= 1
        here = waiting[n_waiting]
        if here >= 0:
            waiting = larger(waiting, n_waiting + 2)
            waiting[n_waiting], waiting[n_waiting + 1] = links[here, d + 3], links[here, d + 2]
            n_waiting += 2
            continue
        start = leaves[-1 - here, 0]
        for slot in range(start, start + leaves[-1 - here, 1]):
            number = items[slot]
            if shown.shape[0] and not shown[number]:
                continue
            if 2 * n >= table.shape[0]:
                table = _enlarge_set(table)
            if _enter(table, number):
                ids = larger(ids, n + 1)
                ids[n] = number
                n += 1
    return waiting, table, ids, n


@njit(cache=True, nogil=True)
def retrieve(query, nodes, leaves, items, root, shown, depth, fewest):
    """Return a query's retrieval set (algorithm 6.3): the rows of all leaves, or nodes at `depth`, that it reaches.

    If there are fewer than `fewest` rows, nodes are replaced by their parents until there are enough. Rows are unique.
    """
    d = query.shape[0]
    links = nodes.view(np.int32)
    slack = _ROUNDING * np.sqrt(dot(query, query))
    waiting, depths = np.empty(64, np.int64), np.empty(64, np.int64)
    reached = np.empty(64, np.int64)
    waiting[0], depths[0] = root, 0
    n_waiting, n_reached = 1, 0
    while n_waiting:
        n_waiting -= 1
        node, level = waiting[n_waiting], depths[n_waiting]
        if node < 0 or level == depth:
            reached = larger(reached, n_reached + 1)
            reached[n_reached] = node
            n_reached += 1
            continue
        row = nodes[node]
        projection = dot(row[:d], query)
        waiting, depths = larger(waiting, n_waiting + 2), larger(depths, n_waiting + 2)
        if projection > row[d] - slack:
            waiting[n_waiting], depths[n_waiting] = links[node, d + 3], level + 1
            n_waiting += 1
        if projection <= row[d + 1] + slack:
            waiting[n_waiting], depths[n_waiting] = links[node, d + 2], level + 1
            n_waiting += 1
    ids, table, n = np.empty(1024, np.int32), _new_set(1024), 0
    while True:
        for r in range(n_reached):
            waiting, table, ids, n = _collect_rows(reached[r], links, d, leaves, items, shown, waiting, table, ids, n)
        if n >= fewest or (n_reached == 1 and reached[0] == root):
            return ids[:n].copy()
        n_parents = 0
        for r in range(n_reached):
            parent = links[reached[r], d + 4] if reached[r] >= 0 else leaves[-1 - reached[r], 3]
            if parent < 0:
                parent = root
            is_listed = False
            for other in range(n_parents):
                is_listed = is_listed or reached[other] == parent
            if not is_listed:
                reached[n_parents] = parent
                n_parents += 1
        n_reached = n_parents


@njit(cache=True, nogil=True)
def search_defeatist(X, Q, nodes, leaves, items, root, shown, distances, ids):
    """Fill (n_queries, k) arrays with the nearest rows in each query's retrieval set of at least k rows."""
    for q in range(Q.shape[0]):
        candidates = retrieve(Q[q], nodes, leaves, items, root, shown, -1, ids.shape[1])
        rank_rows(X, Q[q], candidates, distances[q], ids[q])
