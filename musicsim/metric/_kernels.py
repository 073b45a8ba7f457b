"""Compiled loops of the separation oracles: the most violated ranking of each query.

Notation: a query has p relevant items with scores r_1 >= ... >= r_p, and m irrelevant items with scores
t_1 >= ... >= t_m. Each class is in the order of its scores, so a ranking is a non-decreasing vector ``before``: c_a
irrelevant items come before the a-th relevant item. With T(c) = t_1 + ... + t_c,

    Delta - <W, psi(y*) - psi(y)> = Delta(c) + sum over a of base_a(c_a),
    base_a(c) = -2 / (p m) (c r_a - T(c)).

base_a is concave, and its maximum is at the natural position, the number of t_j > r_a. In a most violated ranking, c_a
is never below it: irrelevant items with higher scores come first at no cost, and every loss grows with c_a. Arrays
are 0-based: ``before[a - 1]`` is c_a. Among equally violated rankings, the one that puts fewer irrelevant items
first is preferred.
"""

import numpy as np
from numba import njit

AUC, MAP, MRR, NDCG, PRECISION = range(5)
_FEW = 64  # With fewer thresholds, all are compared: with 37, this took 40% of the time of a binary search


@njit(cache=True, nogil=True)
def gather_irrelevant(scores, slots, start, items, inverted, columns, negated):
    """Write the irrelevant columns of each row and their negated scores, padded with infinity.

    Query ``slots[row]`` lists its relevant columns in ``items[start[slot, 0] : start[slot, 1]]``. The entries up to
    ``start[slot, 2]`` are its irrelevant columns. If `inverted`, they are the columns that are neither relevant nor
    irrelevant.
    """
    n = scores.shape[1]
    keep = np.ones(n, np.bool_)
    for row in range(scores.shape[0]):
        slot = slots[row]
        first, middle, last = start[slot, 0], start[slot, 1], start[slot, 2]
        m = 0
        if inverted[slot]:
            for e in range(first, last):
                keep[items[e]] = False
            for j in range(n):
                columns[row, m] = j
                m += keep[j]
            for e in range(first, last):
                keep[items[e]] = True
        else:
            for e in range(middle, last):
                columns[row, m] = items[e]
                m += 1
        for j in range(m):
            negated[row, j] = -scores[row, columns[row, j]]
        negated[row, m:] = np.inf


@njit(cache=True, nogil=True)
def _count_above(values, n_values, threshold):
    """Count the values above `threshold` among the first `n_values`, which are in descending order."""
    low, high = 0, n_values
    while low < high:
        middle = (low + high) // 2
        if values[middle] > threshold:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def _fill_naturals(r, p, t, T, m, natural, R, N):
    """Write the natural positions, and prefix sums of r_a and of the maxima of base_a (without factor 2 / (p m))."""
    for a in range(p):
        natural[a] = _count_above(t, m, r[a])
        R[a + 1] = R[a] + r[a]
        N[a + 1] = N[a] + T[natural[a]] - natural[a] * r[a]


@njit(cache=True, nogil=True)
def _tail_sum(u, v, x, T, R, N, p):
    """Return the sum of base_a (without the factor 2 / (p m)) over a > u, where c_a = max(natural_a, v).

    `x`, at least `u`, is the number of relevant items whose natural position is at most `v`.
    """
    return (x - u) * T[v] - v * (R[x] - R[u]) + N[p] - N[x]


@njit(cache=True, nogil=True)
def _rank_precision(p, m, k, T, R, N, natural, before):
    """P@k: if u relevant items are among the first k, the later ones have c_a >= k - u; try each u."""
    k_real = min(k, p + m)
    best, best_u, x = -np.inf, 0, 0
    for u in range(min(k_real, p), max(0, k_real - m) - 1, -1):
        v = k_real - u
        while x < p and natural[x] <= v:
            x += 1
        if x < u:
            continue  # item u naturally comes after v irrelevant items
        value = 2.0 / (p * m) * (N[u] + _tail_sum(u, v, x, T, R, N, p)) - u / k
        if value > best:
            best, best_u = value, u
    for a in range(p):
        before[a] = natural[a] if a < best_u else max(natural[a], k_real - best_u)


@njit(cache=True, nogil=True)
def _rank_mrr(r, p, m, T, R, N, natural, before):
    """MRR: if the first relevant item has position c_1 = v, the others have c_a >= v; try each v."""
    best, best_v, x = -np.inf, 0, 1
    for v in range(natural[0], m + 1):
        while x < p and natural[x] <= v:
            x += 1
        value = 2.0 / (p * m) * (T[v] - v * r[0] + _tail_sum(1, v, x, T, R, N, p)) - 1.0 / (1 + v)
        if value > best:
            best, best_v = value, v
    before[0] = best_v
    for a in range(1, p):
        before[a] = max(natural[a], best_v)


@njit(cache=True, nogil=True)
def _rank_ndcg(r, p, m, k, T, R, N, gains, natural, before):
    """NDCG@k: run a dynamic program over the first k ranks; later items have c_a >= k - u.

    ``value[a, c]`` is the best value of the first a relevant items with c_a <= c; ``moved[a, c]`` is True if c_a = c
    reaches this value. The discount is not convex (it is flat at ranks 1 and 2, and drops after k). So the exchange
    argument that makes average precision cheap does not hold.
    """
    k_real = min(k, p + m)
    top = min(k_real, p)
    scale = 2.0 / (p * m)
    total = gains.sum()
    wide = min(k_real, m)
    value = np.zeros(wide + 1)
    moved = np.zeros((top + 1, wide + 1), np.bool_)
    best, best_u, x = -np.inf, -1, 0
    tail = np.full(top + 1, -np.inf)
    for u in range(top, max(0, k_real - m) - 1, -1):
        v = k_real - u
        while x < p and natural[x] <= v:
            x += 1
        if x >= u:
            tail[u] = scale * _tail_sum(u, v, x, T, R, N, p)
    for u in range(top + 1):
        if u > 0:
            last = min(wide, k_real - u)
            for c in range(last + 1):
                here = value[c] + scale * (T[c] - c * r[u - 1]) - gains[u + c - 1] / total
                moved[u, c] = c == 0 or here > value[c - 1]
                value[c] = here if moved[u, c] else value[c - 1]
        if k_real - u <= m and value[k_real - u] + tail[u] > best:
            best, best_u = value[k_real - u] + tail[u], u
    v = k_real - best_u
    for a in range(best_u, p):
        before[a] = max(natural[a], v)
    c = v
    for a in range(best_u, 0, -1):
        while not moved[a, c]:
            c -= 1
        before[a - 1] = c


@njit(cache=True, nogil=True)
def _rank_map(p, m, t, R, harmonic, before, stack):
    """AP: each irrelevant item independently chooses its position among the relevant items.

    If the c-th irrelevant item is placed before the relevant items a, ..., p, the gain is

        1/p sum over a' >= a of [a' / (a' + c - 1) - a' / (a' + c) - 2/m (r_a' - t_c)],

    which does not depend on the other items' positions. Each term decreases with c, so the best a (the last
    of several) never decreases with c. Therefore, the choices form a valid ranking (Yue et al., 2007) and can be found
    by bisection. With harmonic numbers, a gain costs O(1), and ranges of c with only one possible choice are skipped.
    The total is O(p log m); the dynamic program in appendix A of the thesis takes O(p m).
    """
    before[:p] = 0
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = 1, m, 1, p + 1
    depth = 1
    while depth > 0:
        depth -= 1
        c_low, c_high, a_low, a_high = stack[depth]
        if a_low == a_high:
            if a_low <= p:
                before[a_low - 1] += c_high - c_low + 1
            continue
        c = (c_low + c_high) // 2
        best, best_a = -np.inf, a_low
        for a in range(a_low, a_high + 1):
            # sum of a' / ((a' + c - 1) (a' + c)), without subtracting two long sums
            gain = harmonic[p + c] - harmonic[a + c - 1] - (c - 1) * (1.0 / (a + c - 1) - 1.0 / (p + c))
            gain -= 2.0 / m * (R[p] - R[a - 1] - (p - a + 1) * t[c - 1])
            if a == p + 1:
                gain = 0.0
            if gain >= best:
                best, best_a = gain, a
        if best_a <= p:
            before[best_a - 1] += 1
        if c > c_low:
            stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3] = c_low, c - 1, a_low, best_a
            depth += 1
        if c < c_high:
            stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3] = c + 1, c_high, best_a, a_high
            depth += 1
    for a in range(1, p):
        before[a] += before[a - 1]


@njit(cache=True, nogil=True)
def _fill_before(loss, k, gains, harmonic, r, p, t, T, m, R, N, natural, before, stack):
    """Write the most violated ranking for any loss except AUC."""
    _fill_naturals(r, p, t, T, m, natural, R, N)
    if loss == MAP:
        _rank_map(p, m, t, R, harmonic, before, stack)
    elif loss == MRR:
        _rank_mrr(r, p, m, T, R, N, natural, before)
    elif loss == NDCG:
        _rank_ndcg(r, p, m, k, T, R, N, gains, natural, before)
    else:
        _rank_precision(p, m, k, T, R, N, natural, before)


@njit(cache=True, nogil=True)
def _loss(loss, before, p, m, k, gains):
    """Return Score(y*) - Score(y) for a ranking y, from the definition of the score."""
    lost = 0.0
    if loss == AUC:
        for a in range(p):
            lost += before[a]
        return lost / (p * m)
    if loss == MAP:
        for a in range(p):
            lost += before[a] / (a + 1.0 + before[a])
        return lost / p
    if loss == MRR:
        return before[0] / (1.0 + before[0])
    for a in range(p):
        if a < k:
            lost += gains[a]
        if a + before[a] < k:
            lost -= gains[a + before[a]]
    return lost / gains.sum()


@njit(cache=True, nogil=True)
def count_below(values, thresholds, p, counts, lows):
    """Write to `counts` how many of the `thresholds`, which are in descending order, are below each value."""
    n = len(values)
    if p < _FEW:  # comparing each threshold with all values vectorizes better than bisection
        for first in range(0, n, 512):  # blocks that stay in the first-level cache
            some = values[first : min(first + 512, n)]
            here = counts[first : min(first + 512, n)]
            here[:] = 0.0
            for a in range(0, p - 3, 4):
                one, two, three, four = thresholds[a], thresholds[a + 1], thresholds[a + 2], thresholds[a + 3]
                for j in range(len(some)):
                    s = some[j]
                    here[j] += (
                        (1.0 if s > one else 0.0)
                        + (1.0 if s > two else 0.0)
                        + (1.0 if s > three else 0.0)
                        + (1.0 if s > four else 0.0)
                    )
            for a in range(p - p % 4, p):
                last = thresholds[a]
                for j in range(len(some)):
                    here[j] += 1.0 if some[j] > last else 0.0
        return
    lows[:n] = 0
    size = p + 1
    while size > 1:
        half = size // 2
        for j in range(n):
            low = lows[j]
            lows[j] = low if thresholds[low + half - 1] < values[j] else low + half
        size -= half
    for j in range(n):
        counts[j] = p - lows[j]


@njit(cache=True, nogil=True, fastmath={"reassoc"})
def dot(a, b):
    total = 0.0
    for j in range(len(a)):
        total += a[j] * b[j]
    return total


@njit(cache=True, nogil=True)
def _weigh_by_score(s, others, left_out, thresholds, p, unit, weights, placed, values, lows):
    """Weight each irrelevant item by the number of descending `thresholds` below its score.

    The irrelevant items are `others` or, if `left_out`, all items except these. Returns the sum of score times this
    number; ``placed[c]`` counts the items for which the number is c.
    """
    if left_out:
        values[:] = s
        for e in others:
            values[e] = -np.inf
    else:
        values[:] = -np.inf
        for e in others:
            values[e] = s[e]
    count_below(values, thresholds, p, weights, lows)
    placed[: p + 1] = 0
    for j in range(len(s)):
        placed[np.int64(weights[j])] += 1
    total = dot(weights, s)
    for j in range(len(s)):
        weights[j] *= -unit
    return total


@njit(cache=True, nogil=True)
def _weigh_by_rank(scores, columns, m, t, before, p, unit, weights, seen):
    """Weight each irrelevant item by its rank, breaking ties by position; return the sum of score times weight."""
    seen[:m] = 0
    total = 0.0
    for e in range(m):
        s = scores[columns[e]]
        first = _count_above(t, m, s)
        rank = first + seen[first]
        seen[first] += 1
        low, high = 0, p  # bisection for the first relevant item with more than `rank` irrelevant items before it
        while low < high:
            middle = (low + high) // 2
            if before[middle] > rank:
                high = middle
            else:
                low = middle + 1
        total += (p - low) * s
        weights[columns[e]] = -unit * (p - low)
    return total


@njit(cache=True, nogil=True)
def separate(loss, k, gains, harmonic, scores, slots, start, items, inverted, columns, negated, lost, inner):
    """Turn each row of `scores` into the weights of psi(y*) - psi(y) over the items.

    `columns` comes from :func:`gather_irrelevant`, and `negated` contains its sorted scores; AUC uses neither. `lost`
    and `inner` receive Delta and <W, psi(y*) - psi(y)> of each row.
    """
    n = scores.shape[1]
    s, t, T = np.empty(n), np.empty(n), np.zeros(n + 1)
    R, N = np.zeros(n + 1), np.zeros(n + 1)
    natural, before, counter = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n + 1, np.int64)
    thresholds, values, lows = np.empty(n), np.empty(n), np.empty(n, np.int64)
    stack = np.empty((128, 4), np.int64)  # two entries per level; bisection takes fewer than 64 levels
    for row in range(scores.shape[0]):
        left_out = inverted[slots[row]]
        first, middle, last = start[slots[row], 0], start[slots[row], 1], start[slots[row], 2]
        p, m = middle - first, n - (last - first) if left_out else last - middle
        unit = 2.0 / (p * m)
        s[:] = scores[row]
        weights = scores[row]
        relevant = items[first:middle]
        order = np.argsort(-s[relevant], kind="mergesort")
        r = s[relevant][order]
        is_by_score = True
        if loss == AUC:
            # in the most violated ranking, a comes before j if and only if r_a - t_j >= 1/2
            for a in range(p):
                thresholds[a] = r[a] - 0.5
        else:
            for j in range(m):
                t[j] = -negated[row, j]
                T[j + 1] = T[j] + t[j]
            _fill_before(loss, k, gains, harmonic, r, p, t, T, m, R, N, natural, before, stack)
            for a in range(p):
                c = before[a]
                thresholds[a] = t[c] if c < m else -np.inf
                # this position separates items with equal scores, so ranks are needed instead of scores
                is_by_score &= c in (0, m) or t[c - 1] > t[c]
        if is_by_score:
            others = items[first:last] if left_out else items[middle:last]
            total = _weigh_by_score(s, others, left_out, thresholds, p, unit, weights, counter, values, lows)
        else:
            weights[:] = 0.0
            total = _weigh_by_rank(s, columns[row], m, t, before, p, unit, weights, counter)
        if loss == AUC:
            c = 0
            for a in range(p):
                c += counter[p - a]
                before[a] = c
        value = 0.0
        for a in range(p):
            value += before[a] * r[a]
            weights[relevant[order[a]]] = unit * before[a]
        lost[row] = _loss(loss, before, p, m, k, gains)
        inner[row] = unit * (value - total)
