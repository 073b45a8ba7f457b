"""Relevance feedback: thumbs on results change the metric around the query."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from musicsim import metric
from musicsim._arrays import FloatingArray
from musicsim.errors import NotFoundError
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library import Library, Song
from musicsim.wording import count


@dataclass(frozen=True, slots=True)
class Thumbs:
    """A listener's thumbs on the results of one search."""

    # pairs of a song id and 1 (fits), -1 (does not fit) or 0 (no thumb), in the order in which they were given
    votes: tuple[tuple[int, int], ...] = ()

    @classmethod
    def from_ids(cls, fitting: Iterable[int], unfitting: Iterable[int]) -> "Thumbs":
        """Return thumbs from song ids."""
        return cls((*((song_id, 1) for song_id in fitting), *((song_id, -1) for song_id in unfitting)))

    @property
    def judged(self) -> dict[int, int]:
        """The last thumb on each song, 1 or -1, keyed by song id."""
        return {song_id: value for song_id, value in dict(self.votes).items() if value}

    @property
    def fitting(self) -> list[int]:
        """Ids of the songs that fit."""
        return [song_id for song_id, value in self.judged.items() if value > 0]

    @property
    def unfitting(self) -> list[int]:
        """Ids of the songs that do not fit."""
        return [song_id for song_id, value in self.judged.items() if value < 0]

    def add(self, song_id: int, value: int) -> "Thumbs":
        """Return these thumbs and a new one."""
        return replace(self, votes=(*self.votes, (song_id, value)))

    def select(self, song_ids: Collection[int]) -> "Thumbs":
        """Return the thumbs on these songs."""
        return replace(self, votes=tuple(thumb for thumb in self.votes if thumb[0] in song_ids))


def thumbs_by_id(library: Library, fitting: Collection[int], unfitting: Collection[int]) -> Thumbs:
    """Return thumbs from song ids; raise NotFoundError if one of the songs is not in the library."""
    check_songs(library, {*fitting, *unfitting})
    return Thumbs.from_ids(fitting, unfitting)


def check_songs(library: Library, song_ids: Iterable[int]) -> None:
    """Raise NotFoundError if one of the songs is not in the library."""
    ids = set(song_ids)
    unknown = ids - {song.id for song in library.songs(ids, missing=True)}
    if unknown:
        raise NotFoundError(f"{library.folder.name}: song {min(unknown)} does not exist. `musicsim list` shows ids.")


def query_metric(snapshot: Snapshot, vector: FloatingArray, thumbs: Thumbs) -> "metric.Feedback | None":
    """Return the metric around a query, adapted to the thumbs; None for plain distance."""
    up, down = (rows[rows >= 0] for rows in (snapshot.rows_of(thumbs.fitting), snapshot.rows_of(thumbs.unfitting)))
    local = snapshot.local_metrics
    if not len(up) and not len(down) and local is None:
        return None
    liked, disliked = snapshot.vectors_at(up), snapshot.vectors_at(down)
    if local is None:
        return metric.feedback_metric(vector, liked, disliked)
    weights = metric.adapt_weights(vector, liked, disliked, local.metrics, local.weights_at(vector))
    return metric.feedback_metric(vector, liked, disliked, np.tensordot(weights, local.metrics, 1), weights=weights)


def what_changed(before: Sequence[Song], after: Sequence[Song]) -> str:
    """Return a sentence about the differences between two lists of results."""
    old = {song.id: place for place, song in enumerate(before, 1)}
    n_new = sum(song.id not in old for song in after)
    moves = [
        (old[song.id] - place, old[song.id], place, song.title) for place, song in enumerate(after, 1) if song.id in old
    ]
    changes = []
    if n_new:
        changes.append(f"{count(n_new, 'new song')} in the list")
    gain, old_place, new_place, title = max(moves, default=(0, 0, 0, ""))
    if gain > 1:
        changes.append(f"“{title}” rose from position {old_place} to {new_place}")
    if not changes:
        same = [song.id for song in before] == [song.id for song in after]
        return "The list did not change." if same else "The same songs, in a different order."
    return "; ".join(changes) + "."
