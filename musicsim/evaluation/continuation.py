"""Measures of how well lists are continued: those of the RecSys Challenge 2018, and hit rate.

C. W. Chen, P. Lamere, M. Schedl, H. Zamani, RecSys Challenge 2018: Automatic Music Playlist Continuation. Two things
are as elsewhere and not as there: gains are discounted by log2(rank + 1), which makes the second rank worth less than
the first, and the ideal order has every song that was taken away, so that missing one costs.
"""

from collections.abc import Collection, Sequence

import numpy as np

from musicsim._arrays import Float64Array, IntegerArray

SONGS_A_CLICK = 10
MAX_CLICKS = 51
"""Of a list without a hit among 500 recommendations."""


def continuation_scores(
    recommended: Sequence[IntegerArray | Sequence[int]],
    held_out: Sequence[Collection[int]],
    ks: Sequence[int] = (10, 100),
) -> dict[str, Float64Array]:
    """How good recommendations are for each list.

    Parameters
    ----------
    recommended : sequence of sequences of int
        Songs for each list, best first, each once. The challenge asks for 500.
    held_out : sequence of collections of int
        The songs that were taken away from each list; at least one.
    ks : sequence of int, each at least 1

    Returns
    -------
    dict of float64 ndarrays of shape (n_lists,)
        ``r_precision``: the share of the first n recommendations that were taken away, n how many these are; ``ndcg``,
        of all recommendations; ``clicks``: how often ten more have to be asked for until one was taken away, 51 where
        none was among the first 500; ``hit@k`` for each k: 1 where one of the first k was taken away, else 0.

    Raises
    ------
    ValueError
        If sizes differ, a list has nothing taken away, a song is recommended twice, or a k is below 1.
    """
    if len(recommended) != len(held_out):
        raise ValueError(f"{len(recommended)} recommendations for {len(held_out)} lists: give one for each.")
    if min(ks, default=1) < 1:
        raise ValueError(f"ks={tuple(ks)} should be at least 1.")
    names = ("r_precision", "ndcg", "clicks", *(f"hit@{k}" for k in ks))
    found = {name: np.zeros(len(held_out)) for name in names}
    for at, (songs, taken) in enumerate(zip(recommended, held_out, strict=True)):
        given, wanted = np.asarray(songs), np.unique(np.asarray(list(taken)))
        if not len(wanted):
            raise ValueError(f"held_out: list {at} has nothing taken away.")
        if len(np.unique(given)) < len(given):
            raise ValueError(f"recommended: list {at} has a song twice.")
        places = np.flatnonzero(np.isin(given, wanted))
        first = places[0] if len(places) else np.inf
        clicks = first // SONGS_A_CLICK
        found["r_precision"][at] = (places < len(wanted)).sum() / len(wanted)
        found["ndcg"][at] = (1 / np.log2(places + 2)).sum() / (1 / np.log2(np.arange(len(wanted)) + 2)).sum()
        found["clicks"][at] = clicks if clicks < MAX_CLICKS - 1 else MAX_CLICKS
        for k in ks:
            found[f"hit@{k}"][at] = first < k
    return found
