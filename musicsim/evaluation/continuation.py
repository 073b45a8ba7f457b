"""Measures of playlist continuation, as in the RecSys Challenge 2018, and the hit rate.

See C. W. Chen, P. Lamere, M. Schedl, H. Zamani, RecSys Challenge 2018: Automatic Music Playlist Continuation. NDCG
differs from the challenge's definition in two ways. Gains are discounted by log2(rank + 1), so the second rank is worth
less than the first. The ideal order contains every held-out song, so missing songs reduce the score.
"""

from collections.abc import Collection, Sequence

import numpy as np

from musicsim._arrays import Float64Array, IntegerArray

SONGS_PER_CLICK = 10
MAX_CLICKS = 51
"""Number of clicks for a playlist with no held-out song among 500 recommendations."""


def continuation_scores(
    recommended: Sequence[IntegerArray | Sequence[int]],
    held_out: Sequence[Collection[int]],
    ks: Sequence[int] = (10, 100),
) -> dict[str, Float64Array]:
    """Return the scores of the recommendations for each playlist.

    Parameters
    ----------
    recommended : sequence of sequences of int; songs per playlist, best first, distinct (500 in the challenge)
    held_out : sequence of collections of int; the held-out songs of each playlist, at least one
    ks : sequence of int, each at least 1

    Returns
    -------
    dict of float64 ndarrays of shape (n_lists,)
        - ``r_precision``: share of the n held-out songs that are among the first n recommendations
        - ``ndcg`` of all recommendations
        - ``clicks``: number of requests for ten more songs until one is held-out; 51 if none of the first 500 is
        - ``hit@k`` for each k: 1 if one of the first k recommendations is held-out, else 0

    Examples
    --------
    >>> from musicsim.evaluation import continuation_scores
    >>> scores = continuation_scores([[7, 1, 4, 9], [2, 3, 5, 8]], [{1, 9}, {6}], ks=(2,))
    >>> scores["r_precision"], scores["clicks"], scores["hit@2"]  # no recommendation for the second is right
    (array([0.5, 0. ]), array([ 0., 51.]), array([1., 0.]))
    """
    if len(recommended) != len(held_out):
        raise ValueError(
            f"recommended has {len(recommended)} entries, but held_out has {len(held_out)}: pass one per playlist."
        )
    if min(ks, default=1) < 1:
        raise ValueError(f"ks={tuple(ks)}: each must be at least 1.")
    names = ("r_precision", "ndcg", "clicks", *(f"hit@{k}" for k in ks))
    scores = {name: np.zeros(len(held_out)) for name in names}
    for i, (songs, removed) in enumerate(zip(recommended, held_out, strict=True)):
        if np.ndim(songs) != 1 or not isinstance(removed, Collection):
            raise ValueError(f"playlist {i}: recommended and held_out must contain a list of songs per playlist.")
        ranked, relevant = np.asarray(songs), np.unique(np.asarray(list(removed)))
        if not len(relevant):
            raise ValueError(f"held_out: playlist {i} has no songs.")
        if len(np.unique(ranked)) < len(ranked):
            raise ValueError(f"recommended: playlist {i} contains a song twice.")
        hits = np.flatnonzero(np.isin(ranked, relevant))
        first = hits[0] if len(hits) else np.inf
        clicks = first // SONGS_PER_CLICK
        scores["r_precision"][i] = (hits < len(relevant)).sum() / len(relevant)
        scores["ndcg"][i] = (1 / np.log2(hits + 2)).sum() / (1 / np.log2(np.arange(len(relevant)) + 2)).sum()
        scores["clicks"][i] = clicks if clicks < MAX_CLICKS - 1 else MAX_CLICKS
        for k in ks:
            scores[f"hit@{k}"][i] = first < k
    return scores
