"""Compiled loops that ask spill trees: defeatist search, best-first probing of many trees, exact distances.

How trees lie in flat arrays is said in :mod:`musicsim.search._trees`.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from musicsim.search._code_kernels import BLOCK, GROUP, below, code_size, lowest, rounded
from musicsim.search._kernels import N_LINKS, dot, larger

LINE = 16  # float32 numbers of a cache line

# Branches that are followed at once: memory is fetched for all of them while one is worked on.
_BATCH = 8

# Rows whose numbers are asked for before they are compared.
_AHEAD = 4

# Of a query's length: rounding of an inner product, for which a query counts as being on both sides.
_ROUNDING = np.float32(1e-6)

# A neighbour's margin is the query's plus a Gaussian step, so it lies on the query's side of a split with probability
# Phi(z). Of its logarithm: (_ROOT - _FALL z)^2 for -log Phi(z), and _SLOPE z + _BEND z^2 for the odds of both sides.
_ROOT, _FALL = np.float32(0.8326), np.float32(0.479)
_SLOPE, _BEND = np.float32(1.596), np.float32(0.2)


def _fetch(typingctx, array, index):
    """Ask for the memory at an index of a flat array, to be there when it is read."""

    def generate(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, value=arguments[0]).data
        place = builder.bitcast(builder.gep(data, [arguments[1]]), ir.IntType(8).as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [place.type, ir.IntType(32), ir.IntType(32), ir.IntType(32)])
        function = builder.module.declare_intrinsic("llvm.prefetch", [place.type], kind)
        # to read, to keep in all caches, data
        builder.call(function, [place, *(ir.Constant(ir.IntType(32), number) for number in (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


prefetch: Any = intrinsic(_fetch)  # called without its first argument


@njit(cache=True, nogil=True)
def push(keys, values, n, key, value):
    """Put a pair into a heap of n whose least key stands first."""
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
    """Put a pair in the place of the first of a heap of n whose least key stands first."""
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
    """Enter a number into a hash table of a power of two places, -1 where free; False if it is there."""
    mask = table.shape[0] - 1
    place = (number * 0x9E3779B1) & mask
    while table[place] >= 0:
        if table[place] == number:
            return False
        place = (place + 1) & mask
    table[place] = number
    return True


@njit(cache=True, nogil=True)
def _table_for(n):
    """An empty hash table for n numbers."""
    size = 64
    while size < 2 * n:
        size *= 2
    return np.full(size, -1, np.int32)


@njit(cache=True, nogil=True)
def _rehashed(table):
    """The same numbers in twice the room."""
    result = np.full(2 * table.shape[0], -1, np.int32)
    for number in table:
        if number >= 0:
            _enter(result, number)
    return result


@njit(cache=True, nogil=True)
def _prefetch_node(flat, leaves, node, width):
    """Ask for the row of an inner node, or for the entry of a leaf."""
    if node >= 0:
        for place in range(node * width, (node + 1) * width, LINE):
            prefetch(flat, place)
        prefetch(flat, (node + 1) * width - 1)
    else:
        prefetch(leaves, 4 * (-1 - node))


@njit(cache=True, nogil=True)
def _take_first(front, front_nodes, n_front, at, keys, n, flat, entries, width):
    """Move the n most promising branches from the queue to `at` and `keys`; returns how many are left."""
    for b in range(n):
        keys[b], at[b] = front[0], front_nodes[0]
        n_front -= 1
        if n_front:
            sink(front, front_nodes, n_front, front[n_front], front_nodes[n_front])
        _prefetch_node(flat, entries, at[b], width)
    return n_front


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _descend(query, flat, links, entries, sharpness, at, keys, doubts, n, front, front_nodes, owners, n_front):
    """Follow n branches to their leaves side by side; the sides not taken are appended to the queue, unordered.

    A side's key is that of its branch and the odds against it. `doubts` adds up, branch by branch, how unsure the sides
    are that were taken; `owners` says whose branch a side left.
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
            # rows of the flat array, not views: making a view costs as much as a quarter of the product
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
def _begin(query, flat, links, entries, sharpness, roots, at, keys, doubts, front, front_nodes, owners):
    """Descend every tree once; the queue then holds each first leaf, surest first, and the sides not taken."""
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
def hold(best, best_ids, n_kept, distance, number):
    """Keep a row, in the place of the worst where there is no room; returns how many are kept."""
    if n_kept < best.shape[0]:
        push(best, best_ids, n_kept, -distance, number)
        return n_kept + 1
    sink(best, best_ids, n_kept, -distance, number)
    return n_kept


@njit(cache=True, nogil=True)
def _scan(leaf, leaves, items, codes, query, unit, shown, table, n_entered, keys, numbers, n_kept):
    """Keep the rows of a leaf that are among the best so far, each once; returns the table and both counts."""
    n_best, of_block, one = keys.shape[0], np.empty(BLOCK, np.float32), np.uint64(1)
    worst = -keys[0] if n_kept == n_best else np.float32(np.inf)
    end = leaves[leaf, 0] + leaves[leaf, 1]
    for slot in range(leaves[leaf, 0], end, BLOCK):
        bits = below(codes, slot, end - slot, query, unit, worst, of_block)
        while bits:
            place = lowest(bits)
            bits &= bits - one
            number = items[slot + place]
            if of_block[place] >= worst or (shown.shape[0] and not shown[number]):
                continue
            if 2 * n_entered >= table.shape[0]:
                table = _rehashed(table)
            if not _enter(table, number):
                continue
            n_entered += 1
            n_kept = hold(keys, numbers, n_kept, of_block[place], number)
            if n_kept == n_best:
                worst = -keys[0]
    return table, n_entered, n_kept


@njit(cache=True, nogil=True, fastmath=True)
def _squares(X, query, candidates):
    """Squared distances of a query to some rows."""
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
    """Put a pair in the place of the first of a heap of n pairs whose greatest one stands first."""
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
    """Whether a row comes after another one: it is farther, or as far with a higher number."""
    return distance > other or (distance == other and number > other_number)


@njit(cache=True, nogil=True)
def nearest_of(X, query, candidates, distances, ids):
    """The k nearest of k or more rows by exact distance, equal ones by the lower id; fills (k,) arrays."""
    distances_of_all, k = np.sqrt(_squares(X, query, candidates)), ids.shape[0]
    distances[:], ids[:] = np.float32(np.inf), np.iinfo(np.int64).max
    for i in range(candidates.shape[0]):
        if _is_after(distances[0], ids[0], distances_of_all[i], candidates[i]):
            _sink_pair(distances, ids, k, distances_of_all[i], candidates[i])
    for n in range(k - 1, 0, -1):  # the farthest of those that are left goes to the end
        distance, number = distances[0], ids[0]
        _sink_pair(distances, ids, n, distances[n], ids[n])
        distances[n], ids[n] = distance, number


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def along(query, centre, axes, result):
    """Coordinates of a query along axes (d, n_axes)."""
    result[:] = 0.0
    d = query.shape[0]
    # four at a time: the sums are read and written a quarter as often
    for i in range(0, d - 3, 4):
        a, b = query[i] - centre[i], query[i + 1] - centre[i + 1]
        c, e = query[i + 2] - centre[i + 2], query[i + 3] - centre[i + 3]
        for j in range(result.shape[0]):
            result[j] += a * axes[i, j] + b * axes[i + 1, j] + c * axes[i + 2, j] + e * axes[i + 3, j]
    for i in range(d // 4 * 4, d):
        difference = query[i] - centre[i]
        for j in range(result.shape[0]):
            result[j] += difference * axes[i, j]


@njit(cache=True, nogil=True)
def probe(
    X, Q, centre, axes, nodes, leaves, items, codes, step, sharpness, roots, shown, n_probes, n_best, distances, ids
):
    """The nearest rows in the leaves that are most likely to hold neighbours, over all trees, nearest first.

    One queue holds the leaves and branches that were not looked into, surest first. Leaves are looked into until
    `n_probes` have been and as many rows were met as there is room for, or none is left. The best by their codes are
    ranked by their exact distance.

    Parameters
    ----------
    X : float32 (n, d)
    Q : float32 (n_queries, d)
    centre : float32 (d,), axes : float32 (d, n_axes)
        Where the trees and codes live.
    codes : int8, in units of `step`
    sharpness : float32
        One over the deviation of a neighbour's difference from the query, along an axis.
    shown : uint8 (n,) or (0,)
        Rows that may be answers; all if it is empty.
    n_best : int
        Rows that are ranked; at least k.
    distances : float32 (n_queries, k), ids : int64 (n_queries, k)
        The answers.
    """
    d = axes.shape[1]
    flat, entries = nodes.reshape(-1), leaves.reshape(-1)
    links = flat.view(np.int32)
    size_of_code = code_size(d)
    query, code = np.empty(d, np.float32), np.empty(size_of_code - GROUP, np.int8)
    front, front_nodes, owners = np.empty(1024, np.float32), np.empty(1024, np.int32), np.empty(1024, np.int8)
    found, best = np.empty(n_best, np.int32), np.empty(n_best, np.float32)
    at, keys, doubts = np.empty(_BATCH, np.int64), np.empty(_BATCH, np.float32), np.empty(_BATCH, np.float32)
    empty = _table_for(4 * n_best)
    for q in range(Q.shape[0]):
        along(Q[q], centre, axes, query)
        unit = rounded(query, step, code)
        table, n_entered = empty.copy(), 0
        n_kept = n_seen = 0
        front, front_nodes, owners, n_front = _begin(
            query, flat, links, entries, sharpness, roots, at, keys, doubts, front, front_nodes, owners
        )
        while n_front and (n_seen < n_probes or n_kept < n_best):
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
                table, n_entered, n_kept = _scan(
                    -1 - at[b], leaves, items, codes, code, unit, shown, table, n_entered, best, found, n_kept
                )
            n_seen += n
        nearest_of(X, Q[q], found[:n_kept], distances[q], ids[q])


@njit(cache=True, nogil=True)
def _gather(node, links, d, leaves, items, shown, waiting, table, ids, n):
    """Append the rows below a node that are shown and were not entered yet; returns the arrays that grew, and n."""
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
                table = _rehashed(table)
            if _enter(table, number):
                ids = larger(ids, n + 1)
                ids[n] = number
                n += 1
    return waiting, table, ids, n


@njit(cache=True, nogil=True)
def retrieve(query, nodes, leaves, items, root, shown, depth, fewest):
    """The retrieval set of a query (algorithm 6.3): all rows of the nodes at `depth`, or leaves, that it reaches.

    Where fewer than `fewest` are met, every node gives way to its parent until they are enough. Each row is there
    once.
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
    ids, table, n = np.empty(1024, np.int32), _table_for(1024), 0
    while True:
        for r in range(n_reached):
            waiting, table, ids, n = _gather(reached[r], links, d, leaves, items, shown, waiting, table, ids, n)
        if n >= fewest or (n_reached == 1 and reached[0] == root):
            return ids[:n].copy()
        n_parents = 0
        for r in range(n_reached):
            parent = links[reached[r], d + 4] if reached[r] >= 0 else leaves[-1 - reached[r], 3]
            if parent < 0:
                parent = root
            known = False
            for other in range(n_parents):
                known = known or reached[other] == parent
            if not known:
                reached[n_parents] = parent
                n_parents += 1
        n_reached = n_parents


@njit(cache=True, nogil=True)
def defeat(X, Q, nodes, leaves, items, root, shown, distances, ids):
    """Nearest first in the retrieval set of each query, which has k rows or more; fills (n_queries, k) arrays."""
    for q in range(Q.shape[0]):
        candidates = retrieve(Q[q], nodes, leaves, items, root, shown, -1, ids.shape[1])
        nearest_of(X, Q[q], candidates, distances[q], ids[q])
