"""Compiled loops over pairs of documents of a query.

The probability that two documents stand in the wrong order, ``1 / (1 + exp(b - a))``, is ``e^a / (e^a + e^b)``: the
exponentials are taken once a document, and a pair costs one division.
"""

import numpy as np
from numba import njit

MAX_BITS = 1024
"""Of a code."""

MAX_SCORE = 700.0
"""exp of scores from minus this to this, and the sum of two, are floats; scores reach half the bits / temperature."""


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "nsz"})
def _add_pairs(powers, gains, others, other_gains, graded, pulls, other_pulls):
    """Add the lambdas of all pairs of a document and another one to `pulls` and `other_pulls`; returns the sums of
    the weights of pairs, and of their weights times the probability that they are in the wrong order."""
    weights, wrong = 0.0, 0.0
    for i in range(len(powers)):
        a, gain = powers[i], gains[i]
        pull, weight_of_i, wrong_of_i = 0.0, 0.0, 0.0
        for j in range(len(others)):
            b, lead = others[j], gain - other_gains[j]
            weight = abs(lead) if graded else 1.0
            # the one of higher gain should be nearer: its score is pulled down, the other's up
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
def order_lambdas(scores, gains, order, known, lambdas, totals):
    """RankNet: every pair of known documents of different gain counts the same (equations 3 and 4).

    Parameters
    ----------
    scores : ndarray of shape (n_queries, n_documents)
        Less half the number of bits; the least is nearest.
    gains : ndarray of this shape
        The higher one of a pair should be nearer.
    order : int64 ndarray of this shape
        Places of each row in the order of falling gain.
    known : int64 ndarray of shape (n_queries,)
        How many of the places in `order` count.
    lambdas : ndarray of the shape of scores
        Set to the slopes of the cost by the scores.
    totals : ndarray of shape (n_queries, 2)
        Set to the sum of weights of each query's pairs, and of weights times probabilities to be wrong.
    """
    for q in range(len(scores)):
        places = order[q, : known[q]]
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
        lambdas[q][places] = pulls


@njit(cache=True, nogil=True, error_model="numpy")
def swap_lambdas(scores, gains, distances, inner, outer, lambdas, totals):
    """LambdaRank: pairs of one document among the neighbours and one just outside, each times |Delta S| (equation 5).

    Parameters
    ----------
    scores, gains : ndarrays of shape (n_queries, n_documents)
        As of :func:`order_lambdas`; a gain is what the document adds to the score S as a neighbour.
    distances : int16 ndarray of this shape
        Of the codes; -1 of documents that do not count.
    inner, outer : int64 ndarrays of shape (n_queries,)
        Neighbours have distances up to `inner`; swaps reach to `outer`.
    lambdas, totals
        As of :func:`order_lambdas`.
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
