"""Labels of songs that have none, guessed from near songs that have one, with the votes of these.

Nearest neighbours that vote, level by level where labels have several (WWW 2012, 3.5.1 and 3.5.3).
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from musicsim.explorer.label_levels import LEVELS_OF, Levels
from musicsim.explorer.snapshot import Snapshot
from musicsim.explorer.voters import CodeVoters, VectorVoters, Voters
from musicsim.library import Song

__all__ = ["N_VOTES", "TARGETS", "USUAL_VOTES", "VOTERS", "Guess", "Guesses", "guess_labels"]

N_VOTES = {"genre": 10, "artist": 3}
"""Songs that vote, by what is guessed: of an artist a library has few."""

USUAL_VOTES = {"genre": 6, "artist": 2}
"""Votes that a guess should have to be worth a look."""

TARGETS = tuple(LEVELS_OF)
"""What is guessed: "genre" with its sub-genres, "artist" with the album."""

VOTERS = ("vectors", "codes")
"""Who votes: what the model finds near, or what shares most bits of codes learned from the labels."""

_MOST_JUDGED = 1_000
_JUDGED = 0.2  # of the labelled songs, where others are learned from
_REACH = 100  # neighbours among which those that are not alike for other reasons are sought
_SEED = 0

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Guess:
    """What most of a song's nearest neighbours are labelled with.

    Attributes
    ----------
    song : Song
    names, votes : tuples of one entry a level
        From the widest class to the narrowest: the name that most voters have who agree on the wider ones, and how
        many these are.
    n_voters : int
    tags : tuple of str
        The tag that each name is entered as.
    """

    song: Song
    names: tuple[str, ...]
    votes: tuple[int, ...]
    n_voters: int
    tags: tuple[str, ...]

    def entered(self, least: int) -> dict[str, str]:
        """Tags to enter when at least so many votes are asked for: only such as the song is without."""
        said = (name for name, votes in zip(self.names, self.votes, strict=True) if votes >= least)
        found = dict(zip(self.tags, said, strict=False))
        return {tag: name for tag, name in found.items() if getattr(self.song, tag) is None}


@dataclass(frozen=True, slots=True)
class Guesses:
    """Guesses, and how often such guesses are right.

    Attributes
    ----------
    guesses : list of Guess
        Most votes first.
    right : dict of int to float
        Of labelled songs, each left out: the share that is right among guesses with at least so many votes; only
        where there was one. A guess is right where all levels are that it says with so many votes.
    right_apart : float or None
        The share of the widest levels that are right when songs of the same artist (of a genre), or album (of an
        artist), do not vote; None where nobody else could.
    n_judged : int
        How many songs that was found on.
    n_known : int
        How many songs have a label.
    """

    guesses: list[Guess]
    right: dict[int, float]
    right_apart: float | None
    n_judged: int
    n_known: int


def guess_labels(
    snapshot: Snapshot, target: str = "genre", *, by: str = "vectors", n_votes: int | None = None
) -> Guesses:
    """Guess the label of every song that has none.

    Parameters
    ----------
    snapshot : Snapshot
    target : "genre" or "artist"
        An artist's guess has an album, too, as far as voters agree.
    by : "vectors" or "codes"
        Codes are learned from the labels, three times in about 3 s each, and judged on songs that they were not learned
        from.
    n_votes : int, optional
        Nearest labelled songs that vote, :data:`N_VOTES` by default; with equal votes the label of the nearest among
        them counts.

    Returns
    -------
    Guesses

    Raises
    ------
    ValueError
        If `n_votes` is less than 1, or `target` or `by` is none of the above.
    ModelError
        If there are too few labels to learn codes from.

    Notes
    -----
    One search a song. How often guesses are right is found on at most 1 000 songs, drawn with a fixed seed.
    """
    for name, value, legal in (("target", target, TARGETS), ("by", by, VOTERS)):
        if value not in legal:
            raise ValueError(f"{name}={value!r} should be one of {', '.join(legal)}.")
    n_votes = N_VOTES[target] if n_votes is None else n_votes
    if n_votes < 1:
        raise ValueError(f"n_votes={n_votes!r} should be at least 1.")
    levels = LEVELS_OF[target](snapshot)
    is_known = levels.codes[:, 0] >= 0
    unknown, known = np.flatnonzero(~is_known), np.flatnonzero(is_known)
    if not len(unknown) or not len(known):
        return Guesses([], {}, None, 0, len(known))
    rows = np.random.default_rng(_SEED).permutation(known)
    judged, others = _split(levels, rows, by, apart=False)
    right = _right(_voters(snapshot, levels, others, by), judged, levels, n_votes)
    judged_apart, others = _split(levels, rows, by, apart=True)
    right_apart = _right_apart(_voters(snapshot, levels, others, by), judged_apart, levels, n_votes)
    guesses = _guessed(snapshot, _voters(snapshot, levels, known, by), unknown, levels, n_votes)
    return Guesses(guesses, right, right_apart, len(judged), len(known))


def _voters(snapshot: Snapshot, levels: Levels, rows: Rows, by: str) -> Voters:
    return CodeVoters(snapshot, rows, levels.codes[rows]) if by == "codes" else VectorVoters(snapshot, rows)


def _split(levels: Levels, rows: Rows, by: str, *, apart: bool) -> tuple[Rows, Rows]:
    """Of labelled rows in a random order those that guesses are judged on, and those that vote.

    Vectors know nothing of the labels: each row is judged, and does not vote on itself. Of what is learned from labels
    a fifth is kept out; where songs of an artist do not vote for each other, a fifth of the artists.
    """
    if by == "vectors":
        return rows[:_MOST_JUDGED], rows
    if not apart:
        n_judged = min(_MOST_JUDGED, int(_JUDGED * len(rows)))
        return rows[:n_judged], rows[n_judged:]
    _, first, group = np.unique(levels.apart[rows], return_index=True, return_inverse=True)
    order = np.argsort(first)  # groups as they come in the random order
    n_before = np.cumsum(np.bincount(group)[order]) - np.bincount(group)[order]
    is_out = np.isin(group, order[n_before < _JUDGED * len(rows)])
    return rows[is_out][:_MOST_JUDGED], rows[~is_out]


def _guessed(snapshot: Snapshot, voters: Voters, unknown: Rows, levels: Levels, n_votes: int) -> list[Guess]:
    songs = {song.id: song for song in snapshot.songs_at(unknown)}
    guesses = []
    for row, song_id in zip(unknown.tolist(), snapshot.row_ids[unknown].tolist(), strict=True):
        if song_id not in songs:
            continue
        near = voters.nearest(row, n_votes)
        codes, votes = _elected(levels.codes[near])
        names = tuple(of_level[code] for of_level, code in zip(levels.names, codes, strict=False))
        guesses.append(Guess(songs[song_id], names, votes, len(near), levels.tags[: len(names)]))
    return sorted(guesses, key=lambda guess: guess.votes, reverse=True)


def _elected(ballots: Rows) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The code that most have, by level, among those that agree so far, and how many have it.

    Where several have equally many votes, the first of them; narrower levels than the last that is known are left out.
    """
    codes, votes = [], []
    for level in range(ballots.shape[1]):
        cast = ballots[:, level][ballots[:, level] >= 0]
        if not len(cast):
            break
        candidates, first, counts = np.unique(cast, return_index=True, return_counts=True)
        best = np.lexsort((first, -counts))[0]
        codes.append(int(candidates[best]))
        votes.append(int(counts[best]))
        ballots = ballots[ballots[:, level] == codes[-1]]
    return tuple(codes), tuple(votes)


def _right(voters: Voters, judged: Rows, levels: Levels, n_votes: int) -> dict[int, float]:
    """How often labelled songs would get their own label, by votes at least."""
    found: dict[int, list[bool]] = {least: [] for least in range(1, n_votes + 1)}
    for row in judged.tolist():
        codes, votes = _elected(levels.codes[voters.nearest(row, n_votes)])
        for least, is_right in found.items():
            n_said = sum(n >= least for n in votes)
            if n_said:
                is_right.append(codes[:n_said] == tuple(levels.codes[row, :n_said].tolist()))
    return {least: float(np.mean(is_right)) for least, is_right in found.items() if is_right}


def _right_apart(voters: Voters, judged: Rows, levels: Levels, n_votes: int) -> float | None:
    """How often the widest label would be the own one if those apart did not vote."""
    is_right = []
    for row in judged.tolist():
        near = voters.nearest(row, max(_REACH, n_votes))
        others = near[levels.apart[near] != levels.apart[row]][:n_votes]
        if len(others):
            is_right.append(_elected(levels.codes[others])[0][0] == levels.codes[row, 0])
    return float(np.mean(is_right)) if is_right else None
