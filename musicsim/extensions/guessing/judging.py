"""Accuracy of guessed labels, measured on songs with known labels."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from musicsim._arrays import Int64Array
from musicsim.errors import ModelError
from musicsim.extensions.guessing.label_levels import Levels
from musicsim.extensions.guessing.voters import Voters, elect

_MAX_JUDGED = 1_000
_JUDGED = 0.2  # held-out share of the labeled songs, if voters learn from the others
_REACH = 100  # neighbors to search for songs of other groups
_SEED = 0


@dataclass(frozen=True, slots=True)
class Judged:
    """Shares of guesses whose levels with the minimum number of votes all match the song's known labels."""

    right: dict[int, float]  # by minimum number of votes; minimums that no guess reaches are missing
    # for the widest level, without votes by songs of the same artist (for genres) or album (for artists); None without
    # other voters
    right_apart: float | None
    n_judged: int  # number of songs for `right`; 0 if too few have a label


def judge(
    voters_of: Callable[[Int64Array], Voters], levels: Levels, known: Int64Array, n_votes: int, *, learned: bool
) -> Judged:
    """Measure the accuracy of guesses.

    `voters_of` makes voters from labeled rows. Voters that are `learned` from the labels are judged on held-out songs;
    the result lacks scores if it raises ModelError, because too few songs have labels.
    """
    rows = np.random.default_rng(_SEED).permutation(known)
    judged, others = _split(levels, rows, learned=learned, apart=False)
    voters = _make_voters(voters_of, judged, others)
    right = {} if voters is None else _right(voters, judged, levels, n_votes)
    n_judged = 0 if voters is None else len(judged)
    judged, others = _split(levels, rows, learned=learned, apart=True)
    voters = _make_voters(voters_of, judged, others)
    return Judged(right, None if voters is None else _right_apart(voters, judged, levels, n_votes), n_judged)


def _split(levels: Levels, rows: Int64Array, *, learned: bool, apart: bool) -> tuple[Int64Array, Int64Array]:
    """Split labeled rows randomly into judged rows and voters.

    Vectors do not depend on labels, so every row may be judged, without its own vote. For learned voters a fifth of the
    songs is held out; if songs of the same group must not vote, a fifth in whole groups.
    """
    if not learned:
        return rows[:_MAX_JUDGED], rows
    if not apart:
        n_judged = min(_MAX_JUDGED, int(_JUDGED * len(rows)))
        return rows[:n_judged], rows[n_judged:]
    _, first, group = np.unique(levels.apart[rows], return_index=True, return_inverse=True)
    order = np.argsort(first)  # groups in the random order of their first rows
    sizes = np.bincount(group)[order]
    is_held_out = np.isin(group, order[np.cumsum(sizes) - sizes < _JUDGED * len(rows)])
    return rows[is_held_out][:_MAX_JUDGED], rows[~is_held_out]


def _make_voters(voters_of: Callable[[Int64Array], Voters], judged: Int64Array, others: Int64Array) -> Voters | None:
    if not len(judged):
        return None
    try:
        return voters_of(others)
    except ModelError:
        return None


def _right(voters: Voters, judged: Int64Array, levels: Levels, n_votes: int) -> dict[int, float]:
    outcomes: dict[int, list[bool]] = {least: [] for least in range(1, n_votes + 1)}
    for row, near in zip(judged, voters.nearest(judged, n_votes), strict=True):
        codes, votes = elect(levels.codes[near])
        own = levels.codes[row][levels.codes[row] >= 0]
        for least, is_right in outcomes.items():
            # levels without a label of the song cannot be judged
            guess = codes[: sum(n >= least for n in votes)][: len(own)]
            if guess:
                is_right.append(guess == tuple(own[: len(guess)].tolist()))
    return {least: float(np.mean(is_right)) for least, is_right in outcomes.items() if is_right}


def _right_apart(voters: Voters, judged: Int64Array, levels: Levels, n_votes: int) -> float | None:
    is_right = []
    for row, near in zip(judged, voters.nearest(judged, max(_REACH, n_votes)), strict=True):
        others = near[levels.apart[near] != levels.apart[row]][:n_votes]
        if len(others):
            is_right.append(elect(levels.codes[others])[0][0] == levels.codes[row, 0])
    return float(np.mean(is_right)) if is_right else None
