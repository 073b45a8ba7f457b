"""Compiled loops that split nodes of spill trees: directions and thresholds.

Random numbers come from a hashed counter (splitmix64) that starts with the tree's seed and the node's path. Therefore,
the tree is the same no matter which thread grows which part.
"""

import numpy as np
from numba import njit

RULES = ("pca", "kd", "2means", "random")

# Power iterations end when the direction turns by less than this (1 - cosine). The first iterations are exempt, because
# the direction also turns slowly near an eigenvector of smaller variance.
_TURN = np.float32(1e-4)
_MIN_ITERATIONS = 4
_SMALL, _LARGE = np.float32(1e-30), np.float32(1e30)  # Range of sums of squares that float32 represents precisely


@njit(cache=True, nogil=True, fastmath=True)
def dot(a, b):
    total = np.float32(0.0)
    for j in range(a.shape[0]):
        total += a[j] * b[j]
    return total


@njit(cache=True, nogil=True)
def _hash(z):
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@njit(cache=True, nogil=True)
def _uniform(state):
    """Return the next random number in [0, 1); `state` is a uint64 array with one entry."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    return (_hash(state[0]) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@njit(cache=True, nogil=True)
def _normal(state, out):
    """Fill `out` with standard normal numbers (Box-Muller method)."""
    for j in range(0, out.shape[0], 2):
        radius = np.sqrt(-2.0 * np.log(1.0 - _uniform(state)))
        angle = 2.0 * np.pi * _uniform(state)
        out[j] = radius * np.cos(angle)
        if j + 1 < out.shape[0]:
            out[j + 1] = radius * np.sin(angle)


@njit(cache=True, nogil=True)
def _normalize(v):
    """Scale `v` to length 1 in place; return False if its length is 0 or out of range."""
    square = dot(v, v)
    if not _SMALL < square < _LARGE:
        return False
    scale = np.float32(1.0 / np.sqrt(square))
    for j in range(v.shape[0]):
        v[j] *= scale
    return True


@njit(cache=True, nogil=True, fastmath=True)
def _pca_direction(A, n_iterations, state, w):
    """Set `w` to the leading eigenvector of the covariance of the centered rows `A` (6.2), by power iterations."""
    m, d = A.shape
    _normal(state, w)
    if not _normalize(w):
        return False
    following = np.empty(d, np.float32)
    for iteration in range(n_iterations):
        following[:] = np.float32(0.0)
        for i in range(m):
            row = A[i]
            projection = dot(row, w)
            for j in range(d):
                following[j] += projection * row[j]
        if not _normalize(following):
            return False
        turned = np.float32(1.0) - abs(dot(following, w))
        for j in range(d):
            w[j] = following[j]
        if turned < _TURN and iteration + 1 >= _MIN_ITERATIONS:
            break
    return True


@njit(cache=True, nogil=True, fastmath=True)
def _kd_direction(A, w):
    """Set `w` to the coordinate in which the centered rows have the greatest variance (6.1)."""
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
    """Set `w` to the difference between two centroids (6.3), found by one random pass of Hartigan k-means (B.1)."""
    m, d = A.shape
    order = np.arange(m)
    centers, sizes = np.zeros((2, d), np.float32), np.zeros(2, np.float32)
    for t in range(m):
        drawn = t + int(_uniform(state) * (m - t))
        i, order[drawn] = order[drawn], order[t]
        first, second = np.float32(0.0), np.float32(0.0)
        for j in range(d):
            first += (A[i, j] - centers[0, j]) ** 2
            second += (A[i, j] - centers[1, j]) ** 2
        nearer = 0
        if second * sizes[1] / (sizes[1] + 1) < first * sizes[0] / (sizes[0] + 1):
            nearer = 1
        sizes[nearer] += 1
        step = np.float32(1.0) / sizes[nearer]
        for j in range(d):
            centers[nearer, j] += step * (A[i, j] - centers[nearer, j])
    if sizes[1] == 0:  # all rows are equal
        return False
    for j in range(d):
        w[j] = centers[0, j] - centers[1, j]
    return _normalize(w)


@njit(cache=True, nogil=True, fastmath=True)
def _random_direction(A, n_directions, state, w):
    """Set `w` to the random direction with the largest projected diameter (6.5)."""
    candidates = np.empty((n_directions, A.shape[1]), np.float32)
    for c in range(n_directions):
        _normal(state, candidates[c])
        _normalize(candidates[c])
    low, high = np.full(n_directions, np.inf, np.float32), np.full(n_directions, -np.inf, np.float32)
    for row in A:  # a single pass over the rows, because a large node does not fit into the cache
        for c in range(n_directions):
            projection = dot(row, candidates[c])
            low[c], high[c] = min(low[c], projection), max(high[c], projection)
    best = np.argmax(high - low)
    w[:] = candidates[best]
    return high[best] > low[best]


@njit(cache=True, nogil=True)
def select(values, place):
    """Return the value that sorting would put at `place`; reorders `values` (Hoare's selection algorithm)."""
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
def count_sides(projections, b_r, b_l):
    """Count the rows that go left and right; a projection equal to a threshold goes left."""
    n_left = n_right = 0
    for projection in projections:
        n_left += projection <= b_l
        n_right += projection > b_r
    return n_left, n_right


@njit(cache=True, nogil=True)
def _thresholds(projections, scratch, spill, whole):
    """Return (b_r, b_l, n_left, n_right): the (1/2 - spill) and (1/2 + spill) quantiles (algorithm 6.2), and counts.

    Without spill, and with `whole` > 0, the left side gets about half of the rows, rounded to a multiple of `whole`, so
    that leaves of that size are full. If ties leave a side empty or as large as the node, the split is between two
    different values next to the median, without spill. If all values are equal, n_right is 0.
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
    n_left, n_right = count_sides(projections, b_r, b_l)
    if 0 < n_left < n and 0 < n_right < n:
        return b_r, b_l, n_left, n_right
    middle = select(scratch, (n - 1) >> 1)
    below = np.float32(-np.inf)
    for projection in projections:
        if projection < middle:
            below = max(below, projection)
    n_upto, n_above = count_sides(projections, middle, middle)
    n_below, n_rest = count_sides(projections, below, below)
    if n_below > 0 and (n_above == 0 or abs(n_below - n_rest) < abs(n_upto - n_above)):
        return below, below, n_below, n_rest
    return middle, middle, n_upto, n_above


@njit(cache=True, nogil=True)
def _direction(A, rule, n_iterations, n_directions, state, w):
    """Set the direction `w` of centered rows; return False if they are equal, or too large or small to be squared."""
    if rule == 0:
        return _pca_direction(A, n_iterations, state, w)
    if rule == 1:
        return _kd_direction(A, w)
    if rule == 2:
        return _two_means_direction(A, state, w)
    return _random_direction(A, n_directions, state, w)


@njit(cache=True, nogil=True)
def _rescale(A):
    """Divide `A` by its largest entry in place; return False if all entries are 0."""
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
    """Set a node's direction `w` and the projections of its rows; return the result of `_thresholds`."""
    n, d = ids.shape[0], X.shape[1]
    state = np.array([_hash(seed)], np.uint64)
    m = n if n_sample <= 0 else min(n, n_sample)
    A, mean = np.empty((m, d), np.float32), np.zeros(d, np.float64)
    for i in range(m):
        # take one row from each of m equal parts, so that no row is drawn twice
        low, high = i * n // m, (i + 1) * n // m
        row = X[ids[low + int(_uniform(state) * (high - low))]]
        for j in range(d):
            A[i, j] = row[j]
            mean[j] += row[j]
    center = (mean / m).astype(np.float32)
    for i in range(m):
        for j in range(d):
            A[i, j] -= center[j]
    has_direction = _direction(A, rule, n_iterations, n_directions, state, w)
    if not has_direction and _rescale(A):
        has_direction = _direction(A, rule, n_iterations, n_directions, state, w)
    if not has_direction and m == n:
        return np.float32(0.0), np.float32(0.0), n, 0
    if not has_direction:  # all sampled rows are equal, but other rows may differ
        _normal(state, w)
        _normalize(w)
    for i in range(n):
        projections[i] = dot(X[ids[i]], w)
    return _thresholds(projections[:n], scratch[:n], spill, whole)
