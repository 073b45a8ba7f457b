"""Separation oracles as slow dynamic programs over all positions."""

import math

import numpy as np


def delta(loss, ranked, k):
    return score(loss, sorted(ranked, reverse=True), k) - score(loss, ranked, k)


def slow_programme(loss, s, p, k):
    """Find the most violated ranking by a program over (relevant item, irrelevant items before it).

    Every loss is a sum over relevant items of a function of their rank, for MRR of the first only.
    """
    r, t = np.sort(s[:p])[::-1], np.sort(s[p:])[::-1]
    m = len(t)
    T, c = np.concatenate([[0.0], np.cumsum(t)]), np.arange(m + 1)
    gain = [1.0 if i <= 2 else 1 / math.log2(i) for i in range(1, k + 1)]
    gain = np.array(gain if loss == "ndcg" else [1.0] * k) / sum(gain if loss == "ndcg" else [1.0] * k)
    gain = np.concatenate([gain, np.zeros(p + m + 1)])
    best = np.zeros(m + 1)
    for a in range(p):
        part = {
            "auc": 1 / p - c / (p * m),
            "map": (a + 1) / (a + 1 + c) / p,
            "mrr": (a == 0) / (1 + c),
            "ndcg": gain[a + c],
            "precision": gain[a + c],
        }[loss]
        best = np.maximum.accumulate(best - part - 2 / (p * m) * (c * r[a] - T))
    return best[-1] + score(loss, [True] * p + [False] * m, k)


def score(loss, ranked, k):
    """Score a ranking from the definition. The ranking is a list of relevance by position."""
    places = [i + 1 for i, hit in enumerate(ranked) if hit]
    if loss == "auc":
        wrong = sum(not ranked[j] for place in places for j in range(place - 1))
        return 1 - wrong / (len(places) * (len(ranked) - len(places)))
    if loss == "map":
        return sum((a + 1) / place for a, place in enumerate(places)) / len(places)
    if loss == "mrr":
        return 1 / places[0]
    if loss == "precision":
        return sum(place <= k for place in places) / k
    gain = [1.0 if i <= 2 else 1 / math.log2(i) for i in range(1, k + 1)]
    return sum(gain[place - 1] for place in places if place <= k) / sum(gain)
