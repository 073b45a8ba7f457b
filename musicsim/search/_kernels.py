"""Compiled loops that grow spill trees: directions, thresholds, whole subtrees, rows that come later.

How trees lie in flat arrays is said in :mod:`musicsim.search._trees`. Random numbers come from a hashed counter
(splitmix64) that starts from the tree's seed and the node's place in the tree, so that a tree does not depend on
which thread grows which part of it.
"""

import numpy as np
from numba import njit

from musicsim.search._code_kernels import BLOCK, code_size, copy_code, decode, put_code

RULES = ("pca", "kd", "2means", "random")

N_LINKS = 5
"""What follows the direction in a node's row: b_r, b_l, left child, right child, parent."""

# Power iterations end when the direction turns by less than this (1 - cosine), but not before they had time to leave
# a direction of smaller variance, where they turn slowly too.
_TURN = np.float32(1e-4)
_MIN_ITERATIONS = 4

# Sums of squares that float32 holds without loss.
_SMALL, _LARGE = np.float32(1e-30), np.float32(1e30)


@njit(cache=True, nogil=True, fastmath=True)
def dot(a, b):
    total = np.float32(0.0)
    for j in range(a.shape[0]):
        total += a[j] * b[j]
    return total


@njit(cache=True, nogil=True)
def _mixed(z):
    """A number's 64 bits, stirred."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@njit(cache=True, nogil=True)
def _uniform(state):
    """The next number in [0, 1); `state` is a uint64 array of one number."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    return (_mixed(state[0]) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@njit(cache=True, nogil=True)
def _normal(state, out):
    """Fill `out` with standard normal numbers (Box and Muller)."""
    for j in range(0, out.shape[0], 2):
        radius = np.sqrt(-2.0 * np.log(1.0 - _uniform(state)))
        angle = 2.0 * np.pi * _uniform(state)
        out[j] = radius * np.cos(angle)
        if j + 1 < out.shape[0]:
            out[j + 1] = radius * np.sin(angle)


@njit(cache=True, nogil=True)
def _normalised(v):
    """Scale `v` to length 1 in place; False if its length is 0 or out of range."""
    square = dot(v, v)
    if not _SMALL < square < _LARGE:
        return False
    scale = np.float32(1.0 / np.sqrt(square))
    for j in range(v.shape[0]):
        v[j] *= scale
    return True


@njit(cache=True, nogil=True, fastmath=True)
def _pca_direction(A, n_iterations, state, w):
    """Leading eigenvector of the covariance of the centred rows `A` (6.2), by power iterations."""
    m, d = A.shape
    _normal(state, w)
    if not _normalised(w):
        return False
    following = np.empty(d, np.float32)
    for iteration in range(n_iterations):
        following[:] = np.float32(0.0)
        for i in range(m):
            row = A[i]
            projection = dot(row, w)
            for j in range(d):
                following[j] += projection * row[j]
        if not _normalised(following):
            return False
        turned = np.float32(1.0) - abs(dot(following, w))
        w[:] = following
        if turned < _TURN and iteration + 1 >= _MIN_ITERATIONS:
            break
    return True


@njit(cache=True, nogil=True, fastmath=True)
def _kd_direction(A, w):
    """The coordinate of greatest variance of the centred rows (6.1)."""
    m, d = A.shape
    variance = np.zeros(d, np.float32)
    for i in range(m):
        for j in range(d):
            variance[j] += A[i, j] * A[i, j]
    w[:] = np.float32(0.0)
    best = np.argmax(variance)
    w[best] = np.float32(1.0)
    return _SMALL < variance[best] < _LARGE


@njit(cache=True, nogil=True, fastmath=True)
def _two_means_direction(A, state, w):
    """Difference of two centroids (6.3) after one pass of online k-means with Hartigan's rule (algorithm B.1).

    Rows come in random order, so that the centroids start at two rows that are drawn.
    """
    m, d = A.shape
    order = np.arange(m)
    centres, sizes = np.zeros((2, d), np.float32), np.zeros(2, np.float32)
    for t in range(m):
        drawn = t + int(_uniform(state) * (m - t))
        i, order[drawn] = order[drawn], order[t]
        first, second = np.float32(0.0), np.float32(0.0)
        for j in range(d):
            first += (A[i, j] - centres[0, j]) ** 2
            second += (A[i, j] - centres[1, j]) ** 2
        nearer = 0
        if second * sizes[1] / (sizes[1] + 1) < first * sizes[0] / (sizes[0] + 1):
            nearer = 1
        sizes[nearer] += 1
        step = np.float32(1.0) / sizes[nearer]
        for j in range(d):
            centres[nearer, j] += step * (A[i, j] - centres[nearer, j])
    if sizes[1] == 0:  # all rows are equal
        return False
    for j in range(d):
        w[j] = centres[0, j] - centres[1, j]
    return _normalised(w)


@njit(cache=True, nogil=True, fastmath=True)
def _random_direction(A, n_directions, state, w):
    """Of random directions the one with the largest projected diameter (6.5)."""
    candidates = np.empty((n_directions, A.shape[1]), np.float32)
    for c in range(n_directions):
        _normal(state, candidates[c])
        _normalised(candidates[c])
    low, high = np.full(n_directions, np.inf, np.float32), np.full(n_directions, -np.inf, np.float32)
    for row in A:  # once: a large node does not fit into a cache
        for c in range(n_directions):
            projection = dot(row, candidates[c])
            low[c], high[c] = min(low[c], projection), max(high[c], projection)
    best = np.argmax(high - low)
    w[:] = candidates[best]
    return high[best] > low[best]


@njit(cache=True, nogil=True)
def select(values, place):
    """The value that sorting would put at `place`; `values` are reordered (Hoare's selection)."""
    low, high = 0, values.shape[0] - 1
    while low < high:
        pivot = values[(low + high) >> 1]
        i, j = low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while pivot < values[j]:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if place <= j:
            high = j
        elif place >= i:
            low = i
        else:
            break
    return values[place]


@njit(cache=True, nogil=True)
def _count(projections, b_r, b_l):
    """How many go left and how many right; one that equals a threshold goes left."""
    n_left = n_right = 0
    for projection in projections:
        n_left += projection <= b_l
        n_right += projection > b_r
    return n_left, n_right


@njit(cache=True, nogil=True)
def _thresholds(projections, scratch, spill, whole):
    """(b_r, b_l, n_left, n_right) of a node: the (1/2 - spill) and (1/2 + spill) quantiles (algorithm 6.2).

    Without spill and with `whole` > 0 the left side gets the multiple of `whole` next to the half, so that leaves of
    that size are full. Where ties leave a side empty or as large as all, the split is made between two values
    that differ, next to the median and without spill; n_right is 0 where all are equal.
    """
    n = projections.shape[0]
    scratch[:] = projections
    if whole > 0 and spill == 0.0:
        half = ((n + whole - 1) // whole // 2) * whole
        lower = upper = min(max(half, 1), n) - 1
    else:
        lower = min(max(int(np.ceil((0.5 - spill) * n)) - 1, 0), n - 1)
        upper = min(max(int(np.ceil((0.5 + spill) * n)) - 1, 0), n - 1)
    b_r = select(scratch, lower)
    b_l = b_r if upper == lower else select(scratch, upper)
    n_left, n_right = _count(projections, b_r, b_l)
    if 0 < n_left < n and 0 < n_right < n:
        return b_r, b_l, n_left, n_right
    middle = select(scratch, (n - 1) >> 1)
    below = np.float32(-np.inf)
    for projection in projections:
        if projection < middle:
            below = max(below, projection)
    n_upto, n_above = _count(projections, middle, middle)
    n_below, n_rest = _count(projections, below, below)
    if n_below > 0 and (n_above == 0 or abs(n_below - n_rest) < abs(n_upto - n_above)):
        return below, below, n_below, n_rest
    return middle, middle, n_upto, n_above


@njit(cache=True, nogil=True)
def _direction(A, rule, n_iterations, n_directions, state, w):
    """Find the direction `w` of centred rows; False if they are all equal, or too large or small for their squares."""
    if rule == 0:
        return _pca_direction(A, n_iterations, state, w)
    if rule == 1:
        return _kd_direction(A, w)
    if rule == 2:
        return _two_means_direction(A, state, w)
    return _random_direction(A, n_directions, state, w)


@njit(cache=True, nogil=True)
def _rescaled(A):
    """Divide `A` by its largest entry in place; False if all are 0."""
    largest = np.float32(0.0)
    for row in A:
        for value in row:
            largest = max(largest, abs(value))
    if largest == 0.0:
        return False
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            A[i, j] /= largest
    return True


@njit(cache=True, nogil=True)
def split(X, ids, rule, spill, whole, n_sample, n_iterations, n_directions, seed, w, projections, scratch):
    """Find the direction `w` and the thresholds of a node; projections[: len(ids)] become those of its rows.

    Returns
    -------
    (b_r, b_l, n_left, n_right); n_right is 0 where the rows cannot be told apart
    """
    n, d = ids.shape[0], X.shape[1]
    state = np.array([_mixed(seed)], np.uint64)
    m = n if n_sample <= 0 else min(n, n_sample)
    A, mean = np.empty((m, d), np.float32), np.zeros(d, np.float64)
    for i in range(m):
        # one row of each of m equal parts: no row twice
        low, high = i * n // m, (i + 1) * n // m
        row = X[ids[low + int(_uniform(state) * (high - low))]]
        for j in range(d):
            A[i, j] = row[j]
            mean[j] += row[j]
    centre = (mean / m).astype(np.float32)
    for i in range(m):
        for j in range(d):
            A[i, j] -= centre[j]
    found = _direction(A, rule, n_iterations, n_directions, state, w)
    if not found and _rescaled(A):
        found = _direction(A, rule, n_iterations, n_directions, state, w)
    if not found and m == n:
        return np.float32(0.0), np.float32(0.0), n, 0
    if not found:  # a sample of copies: other rows may differ
        _normal(state, w)
        _normalised(w)
    for i in range(n):
        projections[i] = dot(X[ids[i]], w)
    return _thresholds(projections[:n], scratch[:n], spill, whole)


@njit(cache=True, nogil=True)
def larger(array, size):
    """`array`, or where it is shorter than `size` a copy with twice the room or more."""
    if array.shape[0] >= size:
        return array
    copy = np.empty((max(size, 2 * array.shape[0]), *array.shape[1:]), array.dtype)
    copy[: array.shape[0]] = array
    return copy


@njit(cache=True, nogil=True)
def _room(n):
    """Places a leaf of n rows gets: whole blocks, one at least."""
    return max((n + BLOCK - 1) // BLOCK, 1) * BLOCK


@njit(cache=True, nogil=True)
def grow(X, ids, depth, path, rule, spill, whole, max_depth, leaf_size, n_sample, n_iterations, n_directions, seed):
    """Build a tree over rows (algorithm 6.2), depth first.

    Parameters
    ----------
    X : float32 (n, d)
    ids : int32 (m,)
    depth, path : int, uint64
        Of the root: its distance from the root of the whole tree, and its number when nodes are counted level by
        level from 1.
    max_depth, leaf_size : int
        A node at `max_depth`, or with at most `leaf_size` rows, is a leaf.

    Returns
    -------
    nodes : float32 (n_inner, d + N_LINKS)
    leaves : int64 (n_leaves, 4)
    items : int32 (n_slots,)
        Numbered from 0; the root is inner node 0, or leaf 0 where there is none.
    """
    d = X.shape[1]
    nodes, leaves = np.empty((64, d + N_LINKS), np.float32), np.empty((64, 4), np.int64)
    items = np.full(_room(ids.shape[0]), -1, np.int32)
    n_inner = n_leaves = n_slots = 0
    w = np.empty(d, np.float32)
    projections, scratch = np.empty(ids.shape[0], np.float32), np.empty(ids.shape[0], np.float32)
    pool, top = ids.copy(), ids.shape[0]  # rows of the nodes that wait, the next one last
    waiting, paths = np.empty((64, 4), np.int64), np.empty(64, np.uint64)
    n_waiting = _wait(waiting, paths, 0, ids.shape[0], depth, -1, 0, path)
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
            _part(both, projections, b_r, b_l, pool[top - n_left - n_right : top - n_left], pool[top - n_left : top])
            waiting, paths = larger(waiting, n_waiting + 2), larger(paths, n_waiting + 2)
            twice = here * np.uint64(2)
            n_waiting = _wait(waiting, paths, n_waiting, n_right, level + 1, number, 1, twice + np.uint64(1))
            n_waiting = _wait(waiting, paths, n_waiting, n_left, level + 1, number, 0, twice)
        else:
            room = _room(n)
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
def _wait(waiting, paths, n_waiting, n, depth, parent, side, path):
    """Let a node of n rows wait for its turn; returns how many wait."""
    waiting[n_waiting, 0], waiting[n_waiting, 1] = n, depth
    waiting[n_waiting, 2], waiting[n_waiting, 3] = parent, side
    paths[n_waiting] = path
    return n_waiting + 1


@njit(cache=True, nogil=True)
def _set_node(nodes, number, w, b_r, b_l, parent):
    """Write an inner node whose children are not known yet."""
    d = w.shape[0]
    nodes[number, :d] = w
    nodes[number, d], nodes[number, d + 1] = b_r, b_l
    nodes.view(np.int32)[number, d + 4] = parent


@njit(cache=True, nogil=True)
def _part(ids, projections, b_r, b_l, right, left):
    """Put every row to its side or to both."""
    n_right = n_left = 0
    for i in range(ids.shape[0]):
        if projections[i] > b_r:
            right[n_right] = ids[i]
            n_right += 1
        if projections[i] <= b_l:
            left[n_left] = ids[i]
            n_left += 1


@njit(cache=True, nogil=True)
def beyond(rows, Y, centre, reach, largest):
    """How far rows lie from where axes and codes were made for.

    Parameters
    ----------
    rows : float32 (n, d), centre : float32 (d,)
    Y : float32 (n, n_axes)
        The rows along the axes.
    reach : float32
        The largest coordinate that codes can say.
    largest : float
        A row whose squared distance from the centre is larger counts as one of this: a single one far off is no reason
        to see all others along its direction.

    Returns
    -------
    n_cut : int
        Rows beyond the reach.
    kept, in_all : float
        Squared distances from the centre, summed: along the axes, and in all.
    """
    n_cut, kept, in_all = 0, 0.0, 0.0
    for i in range(rows.shape[0]):
        square = farthest = np.float32(0.0)
        for j in range(rows.shape[1]):
            square += (rows[i, j] - centre[j]) ** 2
        for j in range(Y.shape[1]):
            farthest = max(farthest, abs(Y[i, j]))
        n_cut += farthest > reach
        weight = largest / max(np.float64(square), largest)
        kept += weight * dot(Y[i], Y[i])
        in_all += weight * square
    return n_cut, kept, in_all


@njit(cache=True, nogil=True)
def insert(rows, first, X, root, nodes, leaves, items, codes, step, sizes, options, seed, most):
    """Put rows into one tree; a leaf that has twice `leaf_size` rows is split.

    Parameters
    ----------
    rows : float32 (n_new, d)
        In the space of the tree's directions; numbered from `first` on.
    X : float32 (n, d)
        All rows, the new ones too; of no row where leaves keep codes instead.
    codes : int8, step : float32
        8-bit codes of the leaves' rows and their unit.
    sizes : int64 (3,)
        Inner nodes, leaves and slots in use; changed.
    options : (rule, spill, max_depth, leaf_size, n_sample, n_iterations, n_directions)
    most : int
        Places in leaves that may be taken; once there are more, the other rows are left out.

    Returns
    -------
    root, nodes, leaves, items, codes : the arrays, larger where they had to be
    n_taken : int
        Places in leaves that were taken, by rows and by copies of rows.
    """
    max_depth, leaf_size = options[2], options[3]
    d = rows.shape[1]
    n_coded = 0 if X.shape[0] else code_size(d)  # bytes
    waiting, paths = np.empty((64, 4), np.int64), np.empty(64, np.uint64)  # of node, depth, parent, side
    n_taken = 0
    for i in range(rows.shape[0]):
        if n_taken > most:
            break
        n_waiting = _wait(waiting, paths, 0, root, 0, -1, 0, np.uint64(0))
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
                        n_waiting = _wait(waiting, paths, n_waiting, child, depth + 1, node, which, np.uint64(0))
                continue
            leaf = -1 - node
            if leaves[leaf, 1] == leaves[leaf, 2]:
                items, codes = moved(leaf, leaves, items, codes, n_coded, sizes)
            slot = leaves[leaf, 0] + leaves[leaf, 1]
            items[slot] = first + i
            if n_coded:
                put_code(codes, slot, rows[i], step)
            leaves[leaf, 1] += 1
            n_taken += 1
            n = leaves[leaf, 1]
            if n >= 2 * leaf_size and _has_doubled(n, leaf_size) and depth < max_depth:
                L = _rows_of(leaf, leaves, items, codes, step, X, d)
                number, nodes, leaves, items, codes = _split_leaf(
                    leaf, L, parent, nodes, leaves, items, codes, n_coded, sizes, options, seed + np.uint64(first + i)
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
    """Whether `n` is leaf_size times 2, 4, 8 ...: where rows cannot be told apart, not every one tries a split."""
    times = n // leaf_size
    return times * leaf_size == n and times & (times - 1) == 0


@njit(cache=True, nogil=True)
def _rows_of(leaf, leaves, items, codes, step, X, d):
    """The rows of a leaf, float32 (n, d): as they are, or as their codes have them."""
    start, n = leaves[leaf, 0], leaves[leaf, 1]
    L = np.empty((n, d), np.float32)
    if X.shape[0]:
        for i in range(n):
            L[i] = X[items[start + i]]
    else:
        decode(codes, start, step, L)
    return L


@njit(cache=True, nogil=True)
def _split_leaf(leaf, L, parent, nodes, leaves, items, codes, n_coded, sizes, options, seed):
    """Put an inner node in the place of a leaf; its number, -1 where the rows `L` cannot be told apart."""
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
    leaves, items, codes = _halved(leaf, number, projections, b_r, b_l, leaves, items, codes, n_coded, sizes)
    links = nodes.view(np.int32)
    links[number, d + 2], links[number, d + 3] = -1 - leaf, -sizes[1]
    return number, nodes, leaves, items, codes


@njit(cache=True, nogil=True)
def _new_slots(room, items, codes, n_coded, sizes):
    """Room at the end; returns where it begins, and the arrays."""
    start = sizes[2]
    sizes[2] += room
    items, codes = larger(items, sizes[2]), larger(codes, sizes[2] * n_coded)
    items[start : start + room] = -1
    return start, items, codes


@njit(cache=True, nogil=True)
def moved(leaf, leaves, items, codes, n_coded, sizes):
    """Give a full leaf a quarter more room at the end; its old slots stay unused."""
    old, n = leaves[leaf, 0], leaves[leaf, 1]
    room = leaves[leaf, 2] + _room(leaves[leaf, 2] // 4)
    start, items, codes = _new_slots(room, items, codes, n_coded, sizes)
    for i in range(n):
        items[start + i] = items[old + i]
        copy_code(codes, old + i, start + i, n_coded)
    leaves[leaf, 0], leaves[leaf, 2] = start, room
    return items, codes


@njit(cache=True, nogil=True)
def _halved(leaf, inner, projections, b_r, b_l, leaves, items, codes, n_coded, sizes):
    """Make two leaves of one: the left takes its number, the right the next new one."""
    old = leaves[leaf, 0]
    right = sizes[1]
    sizes[1] += 1
    leaves = larger(leaves, sizes[1])
    sides = _count(projections, b_r, b_l)
    for which in range(2):
        room = _room(sides[which])
        start, items, codes = _new_slots(room, items, codes, n_coded, sizes)
        slot = start
        for i in range(projections.shape[0]):
            if (projections[i] > b_r) if which else (projections[i] <= b_l):
                items[slot] = items[old + i]
                copy_code(codes, old + i, slot, n_coded)
                slot += 1
        target = right if which else leaf
        leaves[target, 0], leaves[target, 1], leaves[target, 2] = start, sides[which], room
        leaves[target, 3] = inner
    return leaves, items, codes
