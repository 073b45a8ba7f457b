"""Compiled loops over the pairs of documents of a query.

The probability that two documents are in the wrong order, ``1 / (1 + exp(b - a))``, equals ``e^a / (e^a + e^b)``.
Exponentials are computed once per document, so a pair costs only one division.
"""

import numpy as np
from numba import njit

MAX_BITS = 1024
"""Maximum number of bits in a code."""

MAX_SCORE = 700.0
"""Largest score at which sums of two exponentials are finite; scores are at most n_bits / (2 temperature)."""


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "nsz"})
def _add_pairs(powers, gains, others, other_gains, graded, pulls, other_pulls):
    """For each pair of a document and one of the `others`, add the lambdas to `pulls` and `other_pulls`.

    Returns two sums over the pairs: their weights, and their weights times the probability of the wrong order.
    """
    weights, wrong = 0.0, 0.0
    for i in range(len(powers)):
        a, gain = powers[i], gains[i]
        pull, weight_of_i, wrong_of_i = 0.0, 0.0, 0.0
        for j in range(len(others)):
            b, lead = others[j], gain - other_gains[j]
            weight = abs(lead) if graded else 1.0
            # the document with the higher gain should be nearer: its score decreases, and the other score increases
            share = weight * (a if lead > 0 else b) / (a + b)
            signed = share if lead > 0 else -share
            weight_of_i += weight
            wrong_of_i += share
            pull += signed
            other_pulls[j] -= signed
        pulls[i] += pull
        weights += weight_of_i
        wrong += wrong_of_i
    return weights, wrong


@njit(cache=True, nogil=True, error_model="numpy")
def order_lambdas(scores, gains, order, n_known, lambdas, totals):
    """RankNet: all pairs of known documents with different gains have equal weights (equations 3 and 4).

    Arrays are (n_queries, n_documents). In a pair, the document with the higher gain should have the lower score. In
    row q of `order`, the first ``n_known[q]`` entries are the known documents by descending gain. Sets `lambdas` to the
    derivatives of the cost with respect to the scores. Sets `totals`, (n_queries, 2), to two sums over the pairs: their
    weights, and their weights times the probability of the wrong order.
    """
    for q in range(len(scores)):
        places = order[q, : n_known[q]]
        powers, gain = np.exp(scores[q][places]), gains[q][places]
        pulls = np.zeros(len(places))
        totals[q] = 0.0
        start = 0
        while start < len(places):
            end = start + 1
            while end < len(places) and gain[end] == gain[start]:
                end += 1
            weights, wrong = _add_pairs(
                powers[start:end], gain[start:end], powers[end:], gain[end:], False, pulls[start:end], pulls[end:]
            )
            totals[q, 0] += weights
            totals[q, 1] += wrong
            start = end
        lambdas[q] = 0.0
        for place in range(len(places)):
            lambdas[q, places[place]] = pulls[place]


@njit(cache=True, nogil=True, error_model="numpy")
def swap_lambdas(scores, gains, distances, inner, outer, lambdas, totals):
    """LambdaRank: pairs of a neighbor and a document just outside the neighborhood, weighted by |Delta S| (equation 5).

    A document's gain is its contribution to the score S if it is a neighbor. `distances`, int16 (n_queries,
    n_documents), contains the distances between codes, or -1 for ignored documents. `inner`, int64 (n_queries,), is the
    largest distance of a neighbor. `outer`, int64 (n_queries,), is the largest distance of a document that can be
    swapped with a neighbor. The other arrays are as in :func:`order_lambdas`.
    """
    for q in range(len(scores)):
        near = np.flatnonzero((distances[q] >= 0) & (distances[q] <= inner[q]))
        far = np.flatnonzero((distances[q] > inner[q]) & (distances[q] <= outer[q]))
        powers, gain = np.exp(scores[q]), gains[q]
        pulls, other_pulls = np.zeros(len(near)), np.zeros(len(far))
        totals[q, 0], totals[q, 1] = _add_pairs(
            powers[near], gain[near], powers[far], gain[far], True, pulls, other_pulls
        )
        lambdas[q] = 0.0
        lambdas[q][near] = pulls
        lambdas[q][far] = other_pulls
