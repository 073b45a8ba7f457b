"""Guesses of missing labels: the nearest labeled songs vote, level by level (WWW 2012, 3.5.1 and 3.5.3)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from musicsim._arrays import Int64Array
from musicsim.errors import ModelError
from musicsim.explorer import Snapshot
from musicsim.extensions.guessing.label_levels import LEVELS_OF, Levels
from musicsim.extensions.guessing.voters import CodeVoters, VectorVoters, Voters, elect
from musicsim.library import Library, Song, TagChange

N_VOTES = {"genre": 10, "artist": 3}  # number of voters for each target; libraries have few songs per artist
USUAL_VOTES = {"genre": 6, "artist": 2}  # default minimum number of votes for each target
TARGETS = tuple(LEVELS_OF)  # labels that can be guessed: "genre" with its sub-genres, "artist" with the album
MIN_RIGHT = 0.8  # share of correct guesses above which all guesses can be accepted together
VOTERS = ("vectors", "codes")  # kinds of voters: nearest by the model's vectors, or by codes learned from the labels
_MAX_JUDGED = 1_000
_JUDGED = 0.2  # share of the labeled songs that is held out if codes are learned from the labels
_REACH = 100  # number of neighbors to search for songs by a different artist or from a different album
_SEED = 0


@dataclass(frozen=True, slots=True)
class GuessShares:
    """Shares of correct guesses. A guess is correct if all levels with enough votes match the song's known labels."""

    right: dict[int, float]  # maps each minimum number of votes that a guess reaches to the share
    # share at the broadest level if songs by the same artist (for genres) or from the same album (for artists) do not
    # vote; None if there are no other voters
    right_apart: float | None
    n_judged: int  # number of songs used for `right`; 0 if too few songs have a label


def judge(
    voters_of: Callable[[Int64Array], Voters], levels: Levels, known: Int64Array, n_votes: int, *, learned: bool
) -> GuessShares:
    """Measure the accuracy of guesses; use held-out songs if the voters' codes are `learned` from the labels."""
    rows = np.random.default_rng(_SEED).permutation(known)
    result = GuessShares({}, None, 0)
    for apart in (False, True):
        judged, others = _split(levels, rows, learned=learned, apart=apart)
        if not len(judged):
            continue
        try:
            voters = voters_of(others)
        except ModelError:  # there are too few labels to learn from
            continue
        if apart:
            result = replace(result, right_apart=_right_apart(voters, judged, levels, n_votes))
        else:
            result = replace(result, right=_right(voters, judged, levels, n_votes), n_judged=len(judged))
    return result


def _split(levels: Levels, rows: Int64Array, *, learned: bool, apart: bool) -> tuple[Int64Array, Int64Array]:
    """Return the rows to evaluate and the rows that vote; with `learned`, a fifth of the rows do not vote."""
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


def _right(voters: Voters, judged: Int64Array, levels: Levels, n_votes: int) -> dict[int, float]:
    outcomes: dict[int, list[bool]] = {min_votes: [] for min_votes in range(1, n_votes + 1)}
    for row, near in zip(judged, voters.nearest(judged, n_votes), strict=True):
        codes, votes = elect(levels.codes[near])
        own = levels.codes[row][levels.codes[row] >= 0]
        for min_votes, is_right in outcomes.items():
            # levels at which the song has no label cannot be evaluated
            guess = codes[: sum(n >= min_votes for n in votes)][: len(own)]
            if guess:
                is_right.append(guess == tuple(own[: len(guess)].tolist()))
    return {min_votes: float(np.mean(is_right)) for min_votes, is_right in outcomes.items() if is_right}


def _right_apart(voters: Voters, judged: Int64Array, levels: Levels, n_votes: int) -> float | None:
    is_right = []
    for row, near in zip(judged, voters.nearest(judged, max(_REACH, n_votes)), strict=True):
        others = near[levels.apart[near] != levels.apart[row]][:n_votes]
        if len(others):
            is_right.append(elect(levels.codes[others])[0][0] == levels.codes[row, 0])
    return float(np.mean(is_right)) if is_right else None


@dataclass(frozen=True, slots=True)
class Guess:
    """The most frequent label among a song's nearest labeled songs, at levels from broad to narrow."""

    song: Song
    names: tuple[str, ...]  # most frequent label at each level, among voters who agree at the broader levels
    votes: tuple[int, ...]
    n_voters: int
    tags: tuple[str, ...]  # tag that stores the label of each level

    def new_tags(self, min_votes: int) -> dict[str, str]:
        names = (name for name, votes in zip(self.names, self.votes, strict=True) if votes >= min_votes)
        tags = dict(zip(self.tags, names, strict=False))
        return {tag: name for tag, name in tags.items() if getattr(self.song, tag) is None}


@dataclass(frozen=True, slots=True)
class Guesses:
    target: str
    guesses: list[Guess]  # guesses, in descending order of votes
    judged: GuessShares
    n_known: int  # number of songs with a label

    def select(self, min_votes: int) -> list[Guess]:
        return [guess for guess in self.guesses if guess.votes[0] >= min_votes]

    def can_accept_all(self, min_votes: int) -> bool:
        """Return True if guesses with at least `min_votes` votes are accurate enough to be accepted without review."""
        return self.judged.right.get(min_votes, 0.0) >= MIN_RIGHT

    def summary(self, min_votes: int) -> str:
        """Describe the guesses with at least `min_votes` votes, and their accuracy."""
        label = {"genre": "a genre", "artist": "an artist"}[self.target]
        if not self.n_known:
            return f"Guesses need songs with {label}; none of the analyzed songs has one."
        if not self.guesses:
            return f"Every analyzed song already has {label}."
        text = (
            f"{len(self.select(min_votes)):,} of {len(self.guesses):,} songs without {label} get a guess with at "
            f"least {min_votes} votes."
        )
        judged = self.judged
        if not judged.n_judged:
            return f"{text} Too few songs have {label} to measure how often such guesses are right."
        if min_votes not in judged.right:
            return f"{text} Their accuracy is unknown, because no song with {label} gets that many votes."
        right = f"{judged.right[min_votes]:.0%} of such guesses are right."
        text += f" On {judged.n_judged:,} songs whose {self.target} is known, {right}"
        if judged.right_apart is None:
            return text
        group = {"genre": "by the same artist", "artist": "from the same album"}[self.target]
        return f"{text} Without votes from songs {group}, {judged.right_apart:.0%} of all guesses are right."


def enter_guesses(library: Library, guesses: Iterable[Guess], min_votes: int) -> list[TagChange]:
    """Save guesses with enough votes for songs that still have no label; return the changes that undo this."""
    entries = ((guess.song.id, guess.new_tags(min_votes)) for guess in guesses)
    return library.edits.change(TagChange(i, dict.fromkeys(tags), tags) for i, tags in entries if tags)


def guess_labels(snapshot: Snapshot, target: str = "genre", *, by: str = "vectors") -> Guesses:
    """Guess the label of every row without a label; songs without a row, such as duplicates, get no guess.

    A guessed artist includes the album if voters agree on it. Codes are learned three times, in about 3 s each time:
    once for the guesses, and twice to measure their accuracy on at most 1,000 held-out songs.
    """
    n_votes = N_VOTES[target]
    levels = LEVELS_OF[target](snapshot)
    is_known = levels.codes[:, 0] >= 0
    unknown, known = np.flatnonzero(~is_known), np.flatnonzero(is_known)
    if not len(unknown) or not len(known):
        return Guesses(target, [], GuessShares({}, None, 0), len(known))

    def voters_of(rows: Int64Array) -> Voters:
        return CodeVoters(snapshot, rows, levels.codes[rows]) if by == "codes" else VectorVoters(snapshot, rows)

    judged = judge(voters_of, levels, known, n_votes, learned=by == "codes")
    return Guesses(target, _guess(snapshot, voters_of(known), unknown, levels, n_votes), judged, len(known))


def _guess(snapshot: Snapshot, voters: Voters, unknown: Int64Array, levels: Levels, n_votes: int) -> list[Guess]:
    ids = snapshot.row_ids[unknown].tolist()
    songs = {song.id: song for song in snapshot.songs_by_id(ids)}
    guesses = []
    for song_id, near in zip(ids, voters.nearest(unknown, n_votes), strict=True):
        if song_id not in songs:  # the song was just removed
            continue
        codes, votes = elect(levels.codes[near])
        names = tuple(labels[code] for labels, code in zip(levels.names, codes, strict=False))
        guesses.append(Guess(songs[song_id], names, votes, len(near), levels.tags[: len(names)]))
    return sorted(guesses, key=lambda guess: guess.votes, reverse=True)
