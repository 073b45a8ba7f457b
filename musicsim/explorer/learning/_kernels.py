"""Compiled scores of a ranking in resampled databases."""

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def score_weighted(
    distances: Any, is_relevant: Any, groups: Any, own_group: int, weights: Any, k: int, scores: Any
) -> None:
    """Set scores (4, r), AUC, MAP, MRR and precision at `k`, of a query in databases with several copies of songs.

    The songs are in the order of their distances; among ties, irrelevant songs come first. Database b has
    ``weights[groups[j], b]`` copies of song j, but one copy of each song of the query's own group. Scores are nan in
    databases without a relevant or without an irrelevant song.
    """
    n_databases = weights.shape[1]
    ones = np.ones(n_databases, dtype=weights.dtype)
    n_irrelevant, n_tied = np.zeros(n_databases), np.zeros(n_databases)
    n_relevant, n_hits = np.zeros(n_databases), np.zeros(n_databases)
    auc, precision, first = np.zeros(n_databases), np.zeros(n_databases), np.zeros(n_databases)
    last = -np.inf
    for j in range(len(distances)):
        copies = ones if groups[j] == own_group else weights[groups[j]]
        if distances[j] != last:
            n_tied[:] = 0.0
            last = distances[j]
        if not is_relevant[j]:
            n_irrelevant += copies
            n_tied += copies
            continue
        for b in range(n_databases):
            auc[b] += copies[b] * (n_irrelevant[b] - 0.5 * n_tied[b])
            for _ in range(copies[b]):
                n_relevant[b] += 1.0
                rank = n_relevant[b] + n_irrelevant[b]
                precision[b] += n_relevant[b] / rank
                n_hits[b] += rank <= k
                if first[b] == 0.0:
                    first[b] = 1.0 / rank
    for b in range(n_databases):
        if n_relevant[b] and n_irrelevant[b]:
            scores[0, b] = 1.0 - auc[b] / (n_relevant[b] * n_irrelevant[b])
            scores[1, b] = precision[b] / n_relevant[b]
            scores[2, b] = first[b]
            scores[3, b] = n_hits[b] / k
        else:
            scores[:, b] = np.nan
