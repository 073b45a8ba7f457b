"""How often guessed labels are right, found on songs whose label is known."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from musicsim._arrays import Int64Array
from musicsim.errors import ModelError
from musicsim.extensions.guessing.label_levels import Levels
from musicsim.extensions.guessing.voters import Voters, elected

_MAX_JUDGED = 1_000
_JUDGED = 0.2  # of the labelled songs, where others are learned from
_REACH = 100  # neighbours among which those that are not alike for other reasons are sought
_SEED = 0


@dataclass(frozen=True, slots=True)
class Judged:
    """How often guesses are right."""

    # Dict of int to float: of labelled songs, each left out: the share that is right among guesses with at
    # least so many votes; only where there was one. A guess is right where all levels are that it says with
    # so many votes and that the song has a label of.
    right: dict[int, float]
    # the share of the widest levels that are right when songs of the same artist (of a genre), or album (of
    # an artist), do not vote; None where nobody else could
    right_apart: float | None
    n_judged: int  # how many songs `right` was found on; 0 where too few have a label


def judge(
    voters_of: Callable[[Int64Array], Voters], levels: Levels, known: Int64Array, n_votes: int, *, learned: bool
) -> Judged:
    """How often guesses are right.

    `voters_of` makes voters of labelled rows, or raises ModelError where these have too few labels to learn from.
    Voters that are `learned` from the labels are judged on songs that they were not made of.

    There are no figures where the songs that are not kept out have too few labels to learn from.
    """
    rows = np.random.default_rng(_SEED).permutation(known)
    judged, others = _split(levels, rows, learned=learned, apart=False)
    voters = _voters(voters_of, judged, others)
    right = {} if voters is None else _right(voters, judged, levels, n_votes)
    n_judged = 0 if voters is None else len(judged)
    judged, others = _split(levels, rows, learned=learned, apart=True)
    voters = _voters(voters_of, judged, others)
    return Judged(right, None if voters is None else _right_apart(voters, judged, levels, n_votes), n_judged)


def _split(levels: Levels, rows: Int64Array, *, learned: bool, apart: bool) -> tuple[Int64Array, Int64Array]:
    """Of labelled rows in a random order those that guesses are judged on, and those that vote.

    Vectors know nothing of the labels: each row is judged, and does not vote on itself. Of what is learned from labels
    a fifth is kept out; where songs of an artist do not vote for each other, a fifth of the artists.
    """
    if not learned:
        return rows[:_MAX_JUDGED], rows
    if not apart:
        n_judged = min(_MAX_JUDGED, int(_JUDGED * len(rows)))
        return rows[:n_judged], rows[n_judged:]
    _, first, group = np.unique(levels.apart[rows], return_index=True, return_inverse=True)
    order = np.argsort(first)  # groups as they come in the random order
    n_before = np.cumsum(np.bincount(group)[order]) - np.bincount(group)[order]
    is_out = np.isin(group, order[n_before < _JUDGED * len(rows)])
    return rows[is_out][:_MAX_JUDGED], rows[~is_out]


def _voters(voters_of: Callable[[Int64Array], Voters], judged: Int64Array, others: Int64Array) -> Voters | None:
    """Voters to judge some rows by; None where nobody is judged, or others have too few labels to learn from."""
    if not len(judged):
        return None
    try:
        return voters_of(others)
    except ModelError:
        return None


def _right(voters: Voters, judged: Int64Array, levels: Levels, n_votes: int) -> dict[int, float]:
    """How often labelled songs would get their own label, by votes at least."""
    found: dict[int, list[bool]] = {least: [] for least in range(1, n_votes + 1)}
    for row, near in zip(judged, voters.nearest(judged, n_votes), strict=True):
        codes, votes = elected(levels.codes[near])
        own = levels.codes[row][levels.codes[row] >= 0]
        for least, is_right in found.items():
            # of what the song has no label for nobody knows whether it is right
            said = codes[: sum(n >= least for n in votes)][: len(own)]
            if said:
                is_right.append(said == tuple(own[: len(said)].tolist()))
    return {least: float(np.mean(is_right)) for least, is_right in found.items() if is_right}


def _right_apart(voters: Voters, judged: Int64Array, levels: Levels, n_votes: int) -> float | None:
    """How often the widest label would be the own one if those apart did not vote."""
    is_right = []
    for row, near in zip(judged, voters.nearest(judged, max(_REACH, n_votes)), strict=True):
        others = near[levels.apart[near] != levels.apart[row]][:n_votes]
        if len(others):
            is_right.append(elected(levels.codes[others])[0][0] == levels.codes[row, 0])
    return float(np.mean(is_right)) if is_right else None
