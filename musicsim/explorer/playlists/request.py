"""What a listener asks of a playlist, as masks and weights over the songs of a snapshot."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from musicsim.explorer.search.query import Filters
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library.importing.spelling import plain_artist, plain_title

__all__ = ["ARTIST_SPACING", "PREFERENCES", "SURPRISE", "Preference", "Wish", "temperature_of", "works_of"]

FloatArray = npt.NDArray[np.float64]

ARTIST_SPACING = 5
SURPRISE = 0.3
_RESTED = 0.1  # what a song of the last lists weighs
_WIDEST = 4.0  # the temperature at the end of "surprising", and its inverse at the end of "smooth"

Preference = Literal["any", "familiar", "unheard"]
PREFERENCES = get_args(Preference)


@dataclass(frozen=True, slots=True)
class Wish:
    """What is asked of a playlist; ids are of songs.

    Attributes
    ----------
    length : int
        Songs, where no `minutes` are asked for.
    minutes : float or None
        How long the list should be; as near to it as whole songs come.
    dialect : str or None
        Category whose walk is followed; None for the walk of all playlists.
    through : tuple of int
        Songs to pass through in this order; the last one is where the list ends.
    keep : mapping of place (0 is the first) to id
        Songs that stand where they are.
    seeds : tuple of int
        Songs whose neighbourhood is wanted throughout; they need not come themselves.
    exclude : frozenset of int
    spacing : int
        How many songs lie between two of one artist (fewer where that cannot be, which is said).
    surprise : float in [0, 1]
        0 goes by what few songs share, 0.5 as people go from song to song on the playlists it was learned from, 1 by
        what many share, or nothing at all.
    only : Filters
        What songs must be.
    tags, no_tags, no_artists : frozenset of str
        A song must have one of `tags`, and none of the others.
    rested : frozenset of int
        Songs of the last lists: they weigh less.
    prefer : "any", "familiar" or "unheard"
        Whether what is played often comes more, or less.
    versions_apart : bool
        At most one version (live, remaster, ...) of a song.
    """

    length: int = 12
    minutes: float | None = None
    dialect: str | None = None
    first: int | None = None
    through: tuple[int, ...] = ()
    keep: Mapping[int, int] = field(default_factory=dict)
    seeds: tuple[int, ...] = ()
    exclude: frozenset[int] = frozenset()
    spacing: int = ARTIST_SPACING
    surprise: float = SURPRISE
    only: Filters = field(default_factory=Filters)
    tags: frozenset[str] = frozenset()
    no_tags: frozenset[str] = frozenset()
    no_artists: frozenset[str] = frozenset()
    rested: frozenset[int] = frozenset()
    prefer: Preference = "any"
    versions_apart: bool = True

    def __post_init__(self) -> None:
        if not 0.0 <= self.surprise <= 1.0:
            raise ValueError(f"surprise={self.surprise} should be between 0 and 1.")
        if self.minutes is not None and not 0 < self.minutes < 1e5:
            raise ValueError(f"minutes={self.minutes} should be positive.")
        if self.length < 1:
            raise ValueError(f"length={self.length} should be at least 1.")

    def excluded(self, snapshot: Snapshot) -> list[int]:
        """Rows of songs that must not come."""
        return [row for row, song in enumerate(snapshot.indexed) if not self._allows(snapshot, row, song.id)]

    def _allows(self, snapshot: Snapshot, row: int, song_id: int) -> bool:
        song = snapshot.indexed[row]
        if song_id in self.exclude or not self.only.allow(song) or song.artist in self.no_artists:
            return False
        if not self.tags and not self.no_tags:
            return True
        has = {tag for tag, _ in snapshot.tags.get(song_id, ())} | ({song.genre} if song.genre else set())
        return (not self.tags or bool(has & self.tags)) and not has & self.no_tags

    def weights(self, snapshot: Snapshot, plays: FloatArray) -> FloatArray | None:
        """What each song weighs beside what leads to it; None where all weigh the same.

        `plays` counts the plays of each row.
        """
        rested = [snapshot.row_of[i] for i in self.rested if i in snapshot.row_of]
        if not rested and self.prefer == "any":
            return None
        weights = np.ones(len(snapshot.indexed))
        if self.prefer != "any":
            weights = np.sqrt(plays + 0.5)
            weights = weights if self.prefer == "familiar" else 1.0 / weights
        weights[rested] *= _RESTED
        return weights / weights.max()


def temperature_of(surprise: float) -> float:
    """The walk's temperature: 1/4 where smooth, 1 in the middle, 4 where surprising."""
    return float(_WIDEST ** (2.0 * surprise - 1.0))


def works_of(snapshot: Snapshot) -> list[tuple[str, str] | None]:
    """What a song is a version of: artist and title in their plainest spelling; None for an unknown artist."""
    return [
        (plain_artist(song.artist), plain_title(song.title)[0]) if song.artist else None
        for song in snapshot.indexed
    ]
