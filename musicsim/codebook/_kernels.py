"""Compiled loops for the codebook: distances from frames to codewords, four frames at a time.

``packed`` is a float32 array of shape (n_blocks, depth, BLOCK). Column ``j`` of its block ``b`` is codeword
``b * BLOCK + j``, stored as ``[-2 c_1, ..., -2 c_d, |c|^2, 0, ...]``. A frame is ``[x_1, ..., x_d, 1, 0, ...]``. So
their product is ``|x - c|^2 - |x|^2``. ``|x|^2`` is the same for all codewords, and is added only when needed.
``depth`` is d + 1, rounded up to a multiple of four, because :func:`_products` processes four rows together. Columns
after the last codeword contain `FAR`. The products of a tile have shape (n_blocks, TILE, BLOCK). The products of a
block fill one page of memory. If they straddled pages, the loops would often be half as fast.

All codewords and all frames pass through the same sequence of operations. So equal codewords get bitwise equal
products, and results do not depend on partitions or threads.
"""

import numpy as np
from numba import njit

TILE = 4
"""Number of frames per tile. The inner loop of :func:`_products` keeps four coordinates of each frame in registers."""

FAR = np.float32(3e38)
"""Squared norm of codewords that must never be chosen; it is finite, because it is added to other numbers."""

BLOCK = 256
"""Number of codewords per block; a block and its sums fit into the first-level cache."""

_LIMIT = 1e15  # z-scores are clipped to this value, so that their float32 squares stay far below `FAR`
_LANES = BLOCK // 4  # four products of a block that are `_LANES` apart share a minimum, which narrows the search
# Minima whose positions differ by a multiple of this are reduced to one minimum, like the lanes of a SIMD register.
_GROUPS = 16


@njit(cache=True, nogil=True)
def _load_tile(frames, rows, start, stop, mean, inverse_scale, tile):
    """Fill `tile` with z-scores of ``frames[rows[start:stop]]``, or of ``frames[start:stop]`` if `rows` is empty."""
    n_features = frames.shape[1]
    for f in range(TILE):
        if start + f >= stop:
            tile[f, :] = 0.0
            continue
        row = rows[start + f] if rows.shape[0] > 0 else start + f
        for p in range(n_features):
            x = (np.float64(frames[row, p]) - mean[p]) * inverse_scale[p]
            tile[f, p] = min(max(x, -_LIMIT), _LIMIT)
        tile[f, n_features] = 1.0


@njit(cache=True, nogil=True, fastmath={"contract", "nsz"})
def _products(tile, packed, products):
    """Write the product of each frame in `tile` and each codeword to `products`."""
    for b in range(packed.shape[0]):
        products[b] = 0.0
        for p in range(0, packed.shape[1], 4):
            a0, a1, a2, a3 = tile[0, p], tile[0, p + 1], tile[0, p + 2], tile[0, p + 3]
            b0, b1, b2, b3 = tile[1, p], tile[1, p + 1], tile[1, p + 2], tile[1, p + 3]
            c0, c1, c2, c3 = tile[2, p], tile[2, p + 1], tile[2, p + 2], tile[2, p + 3]
            d0, d1, d2, d3 = tile[3, p], tile[3, p + 1], tile[3, p + 2], tile[3, p + 3]
            for j in range(BLOCK):
                q0, q1, q2, q3 = (packed[b, p, j], packed[b, p + 1, j], packed[b, p + 2, j], packed[b, p + 3, j])
                products[b, 0, j] += a0 * q0 + a1 * q1 + a2 * q2 + a3 * q3
                products[b, 1, j] += b0 * q0 + b1 * q1 + b2 * q2 + b3 * q3
                products[b, 2, j] += c0 * q0 + c1 * q1 + c2 * q2 + c3 * q3
                products[b, 3, j] += d0 * q0 + d1 * q1 + d2 * q2 + d3 * q3


@njit(cache=True, nogil=True, fastmath={"nnan", "nsz"})
def _minima_of_four(products, f, minima):
    """Fill `minima` with the smallest of every four products of frame `f` that are `_LANES` apart.

    Comparing four products together is faster than a running minimum, which would be stored in memory.
    """
    for b in range(products.shape[0]):
        to = b * _LANES
        for lane in range(_LANES):
            v0, v1 = products[b, f, lane], products[b, f, _LANES + lane]
            v2, v3 = products[b, f, 2 * _LANES + lane], products[b, f, 3 * _LANES + lane]
            v0 = v0 if v0 < v1 else v1
            v2 = v2 if v2 < v3 else v3
            minima[to + lane] = v0 if v0 < v2 else v2


@njit(cache=True, nogil=True, fastmath={"nnan", "nsz"})
def _minima_of_groups(minima, groups):
    """Fill `groups` with the smallest value of each group in `minima`."""
    for g in range(_GROUPS):
        groups[g] = minima[g]
    for start in range(_GROUPS, minima.shape[0], _GROUPS):
        for g in range(_GROUPS):
            value = minima[start + g]
            groups[g] = value if value < groups[g] else groups[g]


@njit(cache=True, nogil=True)
def _bound(groups, tau, smallest):
    """Return the `tau`-th smallest of `groups`, which is an upper bound on the `tau`-th smallest product."""
    smallest[:] = np.inf
    for g in range(groups.shape[0]):
        value = groups[g]
        for t in range(tau):  # no branches on values, because half of them would be mispredicted
            kept = smallest[t]
            smallest[t] = min(kept, value)
            value = max(kept, value)
    return smallest[tau - 1]


@njit(cache=True, nogil=True)
def _list_candidates(products, f, minima, groups, bound, listed):
    """Fill `listed` with the codewords whose product with frame `f` is at most `bound`; return their number.

    Every compared index is written; if it does not qualify, it is overwritten. Branches would be mispredicted.
    """
    n_groups = 0
    for g in range(_GROUPS):
        listed[n_groups] = g
        n_groups += groups[g] <= bound
    n_places = 0
    for i in range(n_groups):
        for m in range(listed[i], minima.shape[0], _GROUPS):
            listed[_GROUPS + n_places] = m
            n_places += minima[m] <= bound
    n_listed = 0
    first = _GROUPS + n_places
    for i in range(_GROUPS, first):
        b, lane = listed[i] // _LANES, listed[i] % _LANES
        for column in range(lane, BLOCK, _LANES):
            listed[first + n_listed] = b * BLOCK + column
            n_listed += products[b, f, column] <= bound
    listed[:n_listed] = listed[first : first + n_listed]
    return n_listed


@njit(cache=True, nogil=True)
def _select(products, f, listed, n_listed, best, nearest):
    """Fill `nearest` with the `tau` listed codewords whose products with frame `f` are smallest.

    Ties go to the lower index.
    """
    tau = nearest.shape[0]
    n_kept = 0
    for j in listed[:n_listed]:
        value = products[j // BLOCK, f, j % BLOCK]
        if n_kept < tau:
            t = n_kept
            n_kept += 1
        elif value > best[tau - 1] or (value == best[tau - 1] and j > nearest[tau - 1]):
            continue
        else:
            t = tau - 1
        while t > 0 and (best[t - 1] > value or (best[t - 1] == value and nearest[t - 1] > j)):
            best[t] = best[t - 1]
            nearest[t] = nearest[t - 1]
            t -= 1
        best[t] = value
        nearest[t] = j


@njit(cache=True, nogil=True)
def add_top_tau(frames, mean, inverse_scale, packed, tile, products, tau, counts, result):
    """Add one to `counts` at each of the `tau` nearest codewords of each frame.

    `result` (n_frames, tau) receives these codewords, nearest first, unless it is empty. `tile` (TILE, depth) and
    `products` (n_blocks, TILE, BLOCK) are work space.
    """
    every_row = np.empty(0, np.int64)
    best = np.empty(tau, np.float32)
    nearest = np.arange(tau)
    minima = np.empty(products.shape[0] * _LANES, np.float32)
    groups = np.empty(_GROUPS, np.float32)
    # room for groups, positions in `minima`, codewords, and one extra entry that is overwritten
    listed = np.empty(_GROUPS + minima.shape[0] + products.shape[0] * BLOCK + 1, np.int64)
    for start in range(0, frames.shape[0], TILE):
        _load_tile(frames, every_row, start, frames.shape[0], mean, inverse_scale, tile)
        _products(tile, packed, products)
        for f in range(min(TILE, frames.shape[0] - start)):
            _minima_of_four(products, f, minima)
            _minima_of_groups(minima, groups)
            if tau <= _GROUPS:
                bound = _bound(groups, tau, best)
            else:  # the codewords of the previous frame give a bound, because adjacent frames are similar
                bound = products[nearest[0] // BLOCK, f, nearest[0] % BLOCK]
                for t in range(1, tau):
                    bound = max(bound, products[nearest[t] // BLOCK, f, nearest[t] % BLOCK])
            n_listed = _list_candidates(products, f, minima, groups, bound, listed)
            if n_listed == tau and result.shape[0] == 0:
                nearest[:] = listed[:tau]  # their order does not matter
            else:
                _select(products, f, listed, n_listed, best, nearest)
            for t in range(tau):
                counts[nearest[t]] += 1
                if result.shape[0] > 0:
                    result[start + f, t] = nearest[t]


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def _dot(left, right):
    """Return the inner product; the fastmath flags let the compiler sum in SIMD lanes."""
    total = np.float32(0.0)
    for p in range(left.shape[0]):
        total += left[p] * right[p]
    return total


@njit(cache=True, nogil=True)
def _move(codewords, counts, i, frame, packed, column):
    """Move codeword `i` to the mean of its frames and `frame` (step 4 of B.1); store its packed form in `column`."""
    counts[i] += 1
    rate = 1.0 / counts[i]
    n_features = codewords.shape[1]
    norm = 0.0
    for p in range(n_features):
        codewords[i, p] += rate * (frame[p] - codewords[i, p])
        c = np.float32(codewords[i, p])
        column[p] = np.float32(-2.0) * c
        norm += np.float64(c) * np.float64(c)
    column[n_features] = norm
    block, j = i // BLOCK, i % BLOCK
    for p in range(n_features + 1):
        packed[block, p, j] = column[p]


@njit(cache=True, nogil=True)
def _seed(frame, codewords, n_used):
    """Return the used codeword that equals the frame; otherwise, return the first unused one."""
    for i in range(n_used):
        for p in range(codewords.shape[1]):
            if np.float32(codewords[i, p]) != frame[p]:
                break
        else:
            return i
    return n_used


@njit(cache=True, nogil=True)
def _weigh(products, f, weights, square):
    """Change the products of frame `f` to n/(n+1) |x - c|^2 in place; this vectorizes better as a separate function."""
    for b in range(products.shape[0]):
        for j in range(BLOCK):
            products[b, f, j] = weights[b, j] * (square + products[b, f, j])


@njit(cache=True, nogil=True)
def _cheapest(costs, f, minima):
    """Return the index of the smallest cost; ties go to the lowest index (step 3 of algorithm B.1)."""
    _minima_of_four(costs, f, minima)
    least = minima.min()
    cheapest = costs.shape[0] * BLOCK
    for m in range(minima.shape[0]):
        if minima[m] == least:
            b, column = m // _LANES, m % _LANES
            while costs[b, f, column] != least:
                column += _LANES
            cheapest = min(cheapest, b * BLOCK + column)
    return cheapest


@njit(cache=True, nogil=True)
def hartigan_pass(frames, order, mean, inverse_scale, packed, tile, products, codewords, counts):
    """Run algorithm B.1 over ``frames[order]``, changing `codewords`, `counts` and `packed`.

    Codewords are float64; distances are float32. The products of four frames are computed together. When a frame moves
    a codeword, later products with it are recomputed, so the result is the same as for one frame at a time.
    """
    n_codewords, n_features = codewords.shape
    minima = np.empty(products.shape[0] * _LANES, np.float32)
    column = np.zeros(packed.shape[1], np.float32)
    weights = np.ones((packed.shape[0], BLOCK), np.float32)
    n_used = 0
    for i in range(n_codewords):
        weights[i // BLOCK, i % BLOCK] = counts[i] / (counts[i] + 1.0)
        n_used += counts[i] > 0
    n_frames = order.shape[0]
    start = 0
    while n_used < n_codewords and start < n_frames:
        _load_tile(frames, order, start, start + 1, mean, inverse_scale, tile)
        i = _seed(tile[0], codewords, n_used)
        _move(codewords, counts, i, tile[0], packed, column)
        weights[i // BLOCK, i % BLOCK] = counts[i] / (counts[i] + 1.0)
        n_used = max(n_used, i + 1)
        start += 1
    while start < n_frames:
        _load_tile(frames, order, start, n_frames, mean, inverse_scale, tile)
        _products(tile, packed, products)
        for f in range(min(TILE, n_frames - start)):
            square = _dot(tile[f, :n_features], tile[f, :n_features])
            _weigh(products, f, weights, square)
            i = _cheapest(products, f, minima)
            _move(codewords, counts, i, tile[f], packed, column)
            weights[i // BLOCK, i % BLOCK] = counts[i] / (counts[i] + 1.0)
            for later in range(f + 1, TILE):
                products[i // BLOCK, later, i % BLOCK] = _dot(tile[later], column)
        start += TILE
