"""Labels of songs that have none, guessed from near songs that have one, with the votes of these.

Nearest neighbours that vote, level by level where labels have several (WWW 2012, 3.5.1 and 3.5.3).
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from musicsim._arrays import Int64Array
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.extensions.guessing.judging import Judged, judge
from musicsim.extensions.guessing.label_levels import LEVELS_OF, Levels
from musicsim.extensions.guessing.voters import CodeVoters, VectorVoters, Voters, elected
from musicsim.library import Library, Song
from musicsim.library.stores.tag_edits import TagChange

N_VOTES = {"genre": 10, "artist": 3}
"""Songs that vote, by what is guessed: of an artist a library has few."""

USUAL_VOTES = {"genre": 6, "artist": 2}
"""Votes that a guess should have to be worth a look."""

TARGETS = tuple(LEVELS_OF)
"""What is guessed: "genre" with its sub-genres, "artist" with the album."""

MIN_RIGHT = 0.8
"""Share of guesses that should be right before all of them can be accepted at once."""

VOTERS = ("vectors", "codes")
"""Who votes: what the model finds near, or what shares most bits of codes learned from the labels."""


@dataclass(frozen=True, slots=True)
class Guess:
    """What most of a song's nearest neighbours are labelled with."""

    song: Song
    # from the widest class to the narrowest: the name that most voters have who agree on the wider ones, and
    # how many these are
    names: tuple[str, ...]
    votes: tuple[int, ...]
    n_voters: int
    tags: tuple[str, ...]  # the tag that each name is entered as

    def entered(self, least: int) -> dict[str, str]:
        """Tags to enter when at least so many votes are asked for: only such as the song is without."""
        said = (name for name, votes in zip(self.names, self.votes, strict=True) if votes >= least)
        found = dict(zip(self.tags, said, strict=False))
        return {tag: name for tag, name in found.items() if getattr(self.song, tag) is None}


@dataclass(frozen=True, slots=True)
class Guesses:
    """Guesses, and how often such guesses are right."""

    target: str  # what was guessed
    guesses: list[Guess]  # most votes first
    judged: Judged
    n_known: int  # how many songs have a label

    def kept(self, least: int) -> list[Guess]:
        """Guesses with so many votes at least."""
        return [guess for guess in self.guesses if guess.votes[0] >= least]

    def can_accept_all(self, least: int) -> bool:
        """Whether guesses with so many votes at least are right often enough to be accepted without looking."""
        return self.judged.right.get(least, 0.0) >= MIN_RIGHT

    def summary(self, least: int) -> str:
        """What is found with so many votes at least, and how often it is right, for people."""
        one = {"genre": "a genre", "artist": "an artist"}[self.target]
        if not self.n_known:
            return f"No analysed song has {one}: there is nothing to guess from."
        if not self.guesses:
            return f"Every analysed song already has {one}."
        words = (
            f"{len(self.kept(least)):,} of {len(self.guesses):,} songs without {one} get a guess with at "
            f"least {least} votes."
        )
        judged = self.judged
        if not judged.n_judged:
            return f"{words} Too few songs have {one} to measure how often such guesses are right."
        if least not in judged.right:
            return f"{words} No song with {one} has enough votes to check this."
        right = f"{judged.right[least]:.0%} of such guesses are right."
        words += f" Of {judged.n_judged:,} songs whose {self.target} is known, {right}"
        if judged.right_apart is None:
            return words
        alike = {"genre": "artist", "artist": "album"}[self.target]
        return (
            f"{words} When songs of the same {alike} may not vote, {judged.right_apart:.0%} of all guesses are right."
        )


def enter_guesses(library: Library, guesses: Iterable[Guess], least: int) -> list[TagChange]:
    """Enter what guesses say with so many votes at least, into songs that are still without it.

    Gives back what :meth:`TagEdits.change` takes it back with.
    """
    entered = ((guess.song.id, guess.entered(least)) for guess in guesses)
    return library.edits.change(TagChange(i, dict.fromkeys(tags), tags) for i, tags in entered if tags)


def guess_labels(
    snapshot: Snapshot, target: str = "genre", *, by: str = "vectors", n_votes: int | None = None
) -> Guesses:
    """Guess the label of every row that has none; songs without a row, such as copies, get no guess.

    Parameters
    ----------
    target : "genre" or "artist"
        An artist's guess has an album, too, as far as voters agree.
    by : "vectors" or "codes"
        Codes are learned from the labels, three times in about 3 s each, and judged on songs that they were not learned
        from; where the others have too few labels, they are not judged.
    n_votes : int, optional
        Nearest labelled songs that vote, :data:`N_VOTES` by default; with equal votes the label of the nearest among
        them counts.

    Raises
    ------
    ValueError
        If `n_votes` is less than 1, or `target` or `by` is none of the above.
    ModelError
        If there are too few labels to learn codes from.

    Notes
    -----
    One search a song, some hundred at once. How often guesses are right is found on at most 1 000 songs, drawn with a
    fixed seed.
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
        return Guesses(target, [], Judged({}, None, 0), len(known))

    def voters_of(rows: Int64Array) -> Voters:
        return CodeVoters(snapshot, rows, levels.codes[rows]) if by == "codes" else VectorVoters(snapshot, rows)

    judged = judge(voters_of, levels, known, n_votes, learned=by == "codes")
    return Guesses(target, _guessed(snapshot, voters_of(known), unknown, levels, n_votes), judged, len(known))


def _guessed(snapshot: Snapshot, voters: Voters, unknown: Int64Array, levels: Levels, n_votes: int) -> list[Guess]:
    ids = snapshot.row_ids[unknown].tolist()
    songs = {song.id: song for song in snapshot.songs_by_id(ids)}
    guesses = []
    for song_id, near in zip(ids, voters.nearest(unknown, n_votes), strict=True):
        if song_id not in songs:  # it has just been forgotten
            continue
        codes, votes = elected(levels.codes[near])
        names = tuple(of_level[code] for of_level, code in zip(levels.names, codes, strict=False))
        guesses.append(Guess(songs[song_id], names, votes, len(near), levels.tags[: len(names)]))
    return sorted(guesses, key=lambda guess: guess.votes, reverse=True)
