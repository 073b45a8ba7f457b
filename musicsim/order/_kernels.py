"""Compiled loops over comparisons: acyclic subgraphs, transitive reduction, distances of pairs."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def _find_reachable(root, limit, other, position, start, size, neighbors, sign, seen, waiting, reached):
    """Find the vertices that can be reached from `root` through positions before `limit`.

    `sign` is 1 to follow edges forward, and -1 to follow them backward. Fills `reached`, and returns the number of
    vertices, or -1 if `other` is reached. `seen` and `waiting` are work arrays.
    """
    waiting[0] = root
    seen[root] = True
    n_waiting, n_found = 1, 0
    while n_waiting:
        n_waiting -= 1
        vertex = waiting[n_waiting]
        reached[n_found] = vertex
        n_found += 1
        for place in range(start[vertex], start[vertex] + size[vertex]):
            neighbor = neighbors[place]
            if neighbor == other:
                for i in range(n_found):
                    seen[reached[i]] = False
                for i in range(n_waiting):
                    seen[waiting[i]] = False
                return -1
            if not seen[neighbor] and sign * position[neighbor] < sign * limit:
                seen[neighbor] = True
                waiting[n_waiting] = neighbor
                n_waiting += 1
    for i in range(n_found):
        seen[reached[i]] = False
    return n_found


@njit(cache=True, nogil=True)
def acyclic_edges(tails, heads, position):
    """Return a mask of the edges in a greedy acyclic subgraph (thesis, algorithm 2.1).

    Edges from `tails` to `heads`, int64 (n_edges,), are added in the given order; no edge may connect a vertex with
    itself. A topological order is updated edge by edge (Pearce and Kelly, 2006). An edge that contradicts the order
    requires a search among the vertices between its ends. `position`, int64 (n_vertices,), contains the initial
    position of each vertex, which does not affect the result. It is changed to a topological order of the subgraph.
    """
    n, m = position.shape[0], tails.shape[0]
    out_start, in_start = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
    for e in range(m):
        out_start[tails[e] + 1] += 1
        in_start[heads[e] + 1] += 1
    for v in range(n):
        out_start[v + 1] += out_start[v]
        in_start[v + 1] += in_start[v]
    out_size, in_size = np.zeros(n, np.int64), np.zeros(n, np.int64)
    successors, predecessors = np.empty(m, np.int32), np.empty(m, np.int32)
    seen, waiting = np.zeros(n, np.bool_), np.empty(n, np.int64)
    ahead, behind = np.empty(n, np.int64), np.empty(n, np.int64)
    is_kept = np.ones(m, np.bool_)
    for e in range(m):
        tail, head = tails[e], heads[e]
        low, high = position[head], position[tail]
        if low < high:
            n_ahead = _find_reachable(
                head, high, tail, position, out_start, out_size, successors, 1, seen, waiting, ahead
            )
            if n_ahead < 0:
                is_kept[e] = False
                continue
            n_behind = _find_reachable(
                tail, low, -1, position, in_start, in_size, predecessors, -1, seen, waiting, behind
            )
            # predecessors move before successors, within the positions that both groups occupied
            first, last = behind[:n_behind], ahead[:n_ahead]
            places = np.sort(np.concatenate((position[first], position[last])))
            first, last = first[np.argsort(position[first])], last[np.argsort(position[last])]
            position[first] = places[:n_behind]
            position[last] = places[n_behind:]
        successors[out_start[tail] + out_size[tail]] = head
        predecessors[in_start[head] + in_size[head]] = tail
        out_size[tail] += 1
        in_size[head] += 1
    return is_kept


@njit(cache=True, nogil=True)
def redundant_edges(order, start, heads, columns, n_columns, n_words):
    """Return a mask of an acyclic graph's redundant edges: those whose ends are also connected by other paths.

    Each vertex has a row of bits for the vertices reachable from it: its successors, and the union of their rows. Bits
    are computed for 64 `n_words` columns at a time. `order`, int64 (n_vertices,), contains the vertices in topological
    order. The edges of v end in ``heads[start[v] : start[v + 1]]``. `columns`, int64 (n_vertices,), numbers the
    `n_columns` vertices that a redundant edge can end in; it is -1 for all others.
    """
    redundant = np.zeros(heads.shape[0], np.bool_)
    reach = np.empty((order.shape[0], n_words), np.uint64)
    one = np.uint64(1)
    for first in range(0, n_columns, 64 * n_words):
        reach[:] = 0
        for i in range(order.shape[0] - 1, -1, -1):
            row = reach[order[i]]
            ends = heads[start[order[i]] : start[order[i] + 1]]
            for head in ends:
                further = reach[head]
                for w in range(n_words):
                    row[w] |= further[w]
            for e in range(ends.shape[0]):
                bit = columns[ends[e]] - first
                if 0 <= bit < 64 * n_words and (row[bit >> 6] >> np.uint64(bit & 63)) & one:
                    redundant[start[order[i]] + e] = True
            for head in ends:
                bit = columns[head] - first
                if 0 <= bit < 64 * n_words:
                    row[bit >> 6] |= one << np.uint64(bit & 63)
    return redundant


@njit(cache=True, nogil=True, fastmath=True)
def pair_distances(Y, pairs):
    """Return the squared distances between rows of Y, float64 (n_pairs,), for int64 pairs (n_pairs, 2)."""
    squares = np.empty(pairs.shape[0])
    for p in range(pairs.shape[0]):
        a, b = Y[pairs[p, 0]], Y[pairs[p, 1]]
        total = 0.0
        for j in range(Y.shape[1]):
            total += (a[j] - b[j]) ** 2
        squares[p] = total
    return squares
