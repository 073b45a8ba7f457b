"""Compiled loops of the AUC oracle that goes through pairs of songs; see :mod:`musicsim.metric._pairs`."""

import numpy as np
from numba import njit

from musicsim.metric._kernels import count_below, dot

TILE = 128
"""Number of columns processed together; a tile with the same number of rows fits into the second-level cache."""
_FEW_ABOVE = 8  # If at most 1 in `_FEW_ABOVE` scores is above a threshold, these scores are processed one by one
_PADDING = 8  # Extra columns; rows whose length is a power of two would compete for the same cache lines


@njit(cache=True, nogil=True)
def rank_relevant(left, right, norms, first, last, begins, relevant, ranked, scores):
    """Sort the relevant songs of each row by descending score; write the songs and their scores."""
    for row in range(first, last):
        songs = relevant[begins[row] : begins[row + 1]]
        song_scores = np.empty(len(songs))
        for a in range(len(songs)):
            song_scores[a] = dot(left[row], right[songs[a]]) - norms[songs[a]]
        order = np.argsort(-song_scores, kind="mergesort")
        for rank in range(len(order)):
            ranked[begins[row] + rank] = songs[order[rank]]
            scores[begins[row] + rank] = song_scores[order[rank]]


@njit(cache=True, nogil=True)
def _count(s, row, column, begins, thresholds, barred_begins, barred, values, counts, lows, placed):
    """Count the thresholds of a row below the score of each song from `column` on; 0 for songs in `barred`.

    Returns the sum of score times count; ``placed[c]`` is the number of songs with count c.
    """
    n, p = len(s), begins[row + 1] - begins[row]
    counts[:n] = 0.0
    if p == 0:
        return 0.0
    values[:n] = s
    low, high = barred_begins[row], barred_begins[row + 1]
    last = high
    while low < high:
        middle = (low + high) // 2
        if barred[middle] < column:
            low = middle + 1
        else:
            high = middle
    while low < last and barred[low] < column + n:
        values[barred[low] - column] = -np.inf
        low += 1
    row_thresholds = thresholds[begins[row] : begins[row + 1]]
    lowest, n_above = row_thresholds[p - 1], 0
    for j in range(n):
        n_above += 1 if values[j] > lowest else 0
    if n_above <= n // _FEW_ABOVE:  # true for most tiles if the metric has little loss
        placed[0] += n - n_above
        total = 0.0
        for j in range(n):
            if values[j] > lowest:
                c = 1
                while c < p and values[j] > row_thresholds[p - 1 - c]:
                    c += 1
                counts[j] = c
                placed[c] += 1
                total += c * values[j]
        return total
    count_below(values[:n], row_thresholds, p, counts[:n], lows)
    for j in range(n):
        placed[np.int64(counts[j])] += 1
    return dot(counts[:n], s)


@njit(cache=True, nogil=True)
def weigh_pairs(scores, first, norms, begins, thresholds, barred_begins, barred, units, sums, totals, placed):
    """Turn scores of a block of rows into weights; for songs after the block, sum the weights of both directions.

    `scores`, (n_rows, n_songs - first), hold 2 q^T W x for the songs from `first` on; they are overwritten. `begins`
    and `barred_begins`, (n_songs + 1,), are the offsets of each song's descending thresholds, and of the songs not
    ranked for it. `units`, (n_songs,), are 2 / (p m). Adds each song's weights for all other songs to `sums`, and the
    sums of score times count to `totals`, both (n_songs - first,). Adds the number of songs with each count to
    `placed`, (n_thresholds + n_songs - first,). Returns the number of nonzero weights; both weights of a pair count.
    """
    n_rows, width = scores.shape
    transposed = np.zeros((TILE, n_rows + _PADDING))
    s, values, counts = np.empty(TILE), np.empty(TILE), np.empty(TILE)
    lows = np.empty(TILE, np.int64)
    n_weights = start = 0
    while start < width:
        stop = n_rows if start == 0 else min(start + TILE, width)  # the first tile contains the rows' own songs
        n, column = stop - start, first + start
        norms_here, sums_here = norms[column : first + stop], sums[start:stop]
        if start > 0:
            for i in range(n_rows):
                row_scores, norm = scores[i, start:stop], norms[first + i]
                for j in range(n):
                    transposed[j, i] = row_scores[j] - norm
            for j in range(n):
                row, row_scores = column + j, transposed[j, :n_rows]
                totals[start + j] += _count(
                    row_scores, row, first, begins, thresholds, barred_begins, barred, values, counts, lows,
                    placed[begins[row] - begins[first] + start + j :],
                )  # fmt: skip
                unit = -units[row]
                for i in range(n_rows):
                    row_scores[i] = unit * counts[i]
                    sums[i] += row_scores[i]
                    n_weights += 1 if counts[i] > 0.0 else 0
        for i in range(n_rows):
            row, row_scores = first + i, scores[i, start:stop]
            for j in range(n):
                s[j] = row_scores[j] - norms_here[j]
            totals[i] += _count(
                s[:n], row, column, begins, thresholds, barred_begins, barred, values, counts, lows,
                placed[begins[row] - begins[first] + i :],
            )  # fmt: skip
            unit = -units[row]
            for j in range(n):
                row_scores[j] = unit * counts[j]
                sums_here[j] += row_scores[j]
                n_weights += 1 if counts[j] > 0.0 else 0
            if start > 0:
                for j in range(n):
                    row_scores[j] += transposed[j, i]
        start = stop
    return n_weights


@njit(cache=True, nogil=True)
def combine_few(weights, X, result):
    for i in range(weights.shape[0]):
        result[i] = 0.0
        for j in range(weights.shape[1]):
            weight = weights[i, j]
            if weight != 0.0:
                for c in range(X.shape[1]):
                    result[i, c] += weight * X[j, c]


@njit(cache=True, nogil=True)
def place_relevant(X, first, last, begins, ranked, scores, placed, units, totals, folded, sums, lost, inner):
    """Add the weights of relevant songs to the rows of `folded` and to `sums`; fill the rows' `lost` and `inner`."""
    for row in range(first, last):
        begin, p = begins[row], begins[row + 1] - begins[row]
        before, lost_pairs, value = 0, 0.0, 0.0
        for a in range(p):
            before += placed[begin + row + p - a]
            lost_pairs += before
            value += before * scores[begin + a]
            weight, song = units[row] * before, ranked[begin + a]
            sums[song] += weight
            for c in range(X.shape[1]):
                folded[row, c] += weight * X[song, c]
        lost[row] = 0.5 * units[row] * lost_pairs
        inner[row] = units[row] * (value - totals[row])
