"""Genres of songs that have none, guessed from the nearest songs that have one, with the votes of these.

Nearest neighbours that vote, as in the paper on bit vectors (WWW 2012, 3.5.1), on the vectors of the model in use.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from musicsim.explorer.snapshot import Snapshot
from musicsim.library import Song

__all__ = ["N_VOTES", "Guess", "Guesses", "guess_genres"]

N_VOTES = 10
"""Songs that vote."""

_MOST_JUDGED = 2_000
_REACH = 100  # neighbours among which those of other artists are sought
_SEED = 0

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Guess:
    """The genre that most of a song's nearest neighbours have, and how many of them."""

    song: Song
    genre: str
    votes: int
    n_voters: int


@dataclass(frozen=True, slots=True)
class Guesses:
    """Guesses, and how often such guesses are right.

    Attributes
    ----------
    guesses : list of Guess
        Most votes first.
    right : dict of int to float
        Of songs whose genre is known, each left out in turn: the share that is right among guesses with at least so
        many votes; only where there was one.
    right_without_artist : float or None
        The share of all that is right when songs of the same artist do not vote; None where nobody else could.
    n_judged : int
        How many songs that was found on.
    """

    guesses: list[Guess]
    right: dict[int, float]
    right_without_artist: float | None
    n_judged: int


def guess_genres(snapshot: Snapshot, n_votes: int = N_VOTES) -> Guesses:
    """Guess the genre of every song that has none.

    Parameters
    ----------
    snapshot : Snapshot
    n_votes : int
        Nearest songs with a genre that vote; with equal votes the genre of the nearest among them counts.

    Returns
    -------
    Guesses

    Raises
    ------
    ValueError
        If `n_votes` is less than 1.

    Notes
    -----
    One search a song. How often guesses are right is found on at most 2 000 songs, drawn with a fixed seed.
    """
    if n_votes < 1:
        raise ValueError(f"n_votes={n_votes!r} should be at least 1.")
    column = snapshot.columns.genre
    codes = column.codes.astype(np.int64)
    labelled = codes >= 0
    unknown, known = np.flatnonzero(~labelled), np.flatnonzero(labelled)
    if not len(known):
        return Guesses([], {}, None, 0)
    guesses = []
    for row, voters in zip(unknown, _nearest(snapshot, unknown, n_votes, labelled), strict=True):
        winner, votes = _winner(codes[voters])
        guesses.append((int(row), str(column.names[winner]), votes, len(voters)))
    guesses.sort(key=lambda g: -g[2])
    songs = {s.id: s for s in snapshot.songs_by_id(snapshot.row_ids[[g[0] for g in guesses]].tolist())}
    judged = np.sort(np.random.default_rng(_SEED).permutation(known)[:_MOST_JUDGED])
    right, without_artist = _judged(snapshot, judged, codes, labelled, n_votes)
    return Guesses(
        [
            Guess(songs[i], genre, votes, n)
            for row, genre, votes, n in guesses
            if (i := int(snapshot.row_ids[row])) in songs
        ],
        right, without_artist, len(judged),
    )  # fmt: skip


def _nearest(snapshot: Snapshot, rows: Rows, k: int, labelled: npt.NDArray[np.bool_]) -> list[Rows]:
    """The k nearest labelled rows of each row, itself left out, nearest first."""
    found = []
    for row in rows.tolist():
        _, near = snapshot.index.query(snapshot.vectors_at([row]), k + 1, allowed=labelled)
        found.append(near[0][near[0] != row][:k])
    return found


def _winner(codes: Rows) -> tuple[int, int]:
    """The code that most have, the first of them where several do, and how many have it."""
    names, first, counts = np.unique(codes, return_index=True, return_counts=True)
    best = np.lexsort((first, -counts))[0]
    return int(names[best]), int(counts[best])


def _judged(
    snapshot: Snapshot, rows: Rows, codes: Rows, labelled: npt.NDArray[np.bool_], n_votes: int
) -> tuple[dict[int, float], float | None]:
    """How often songs with a genre would get their own, by votes at least, and where their artist's do not vote."""
    group = snapshot.columns.group.codes
    votes, is_right, is_right_without = [], [], []
    for row, near in zip(rows, _nearest(snapshot, rows, max(_REACH, n_votes), labelled), strict=True):
        if not len(near):
            continue
        winner, n = _winner(codes[near[:n_votes]])
        votes.append(n)
        is_right.append(winner == codes[row])
        others = near[group[near] != group[row]][:n_votes]
        if len(others):
            is_right_without.append(_winner(codes[others])[0] == codes[row])
    right = {}
    for least in range(1, n_votes + 1):
        enough = [r for n, r in zip(votes, is_right, strict=True) if n >= least]
        if enough:
            right[least] = float(np.mean(enough))
    return right, float(np.mean(is_right_without)) if is_right_without else None
