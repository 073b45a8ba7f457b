"""Relevance feedback: answers that were said to fit, or not, bend the metric around what was searched with."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from musicsim import metric
from musicsim._arrays import FloatingArray
from musicsim.errors import NotFoundError
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library import Library, Song


@dataclass(frozen=True, slots=True)
class Thumbs:
    """What a listener said of the answers to one search."""

    # in the order in which it was said: 1 for a song that fits, -1 for one that does not, 0 takes it back
    said: tuple[tuple[int, int], ...] = ()
    earlier: "Thumbs | None" = None  # what had been said before it was started over

    @classmethod
    def of(cls, fitting: Iterable[int], unfitting: Iterable[int]) -> "Thumbs":
        """All said at once, by song ids."""
        return cls((*((song_id, 1) for song_id in fitting), *((song_id, -1) for song_id in unfitting)))

    @property
    def judged(self) -> dict[int, int]:
        """The last word on each song: 1 or -1 by song id."""
        return {song_id: value for song_id, value in dict(self.said).items() if value}

    @property
    def fitting(self) -> list[int]:
        """Ids of the songs that fit."""
        return [song_id for song_id, value in self.judged.items() if value > 0]

    @property
    def unfitting(self) -> list[int]:
        """Ids of the songs that do not."""
        return [song_id for song_id, value in self.judged.items() if value < 0]

    def saying(self, song_id: int, value: int) -> "Thumbs":
        """With one word more."""
        return replace(self, said=(*self.said, (song_id, value)))

    def of_songs(self, song_ids: Collection[int]) -> "Thumbs":
        """Without what was said of other songs."""
        return replace(self, said=tuple(word for word in self.said if word[0] in song_ids))

    def started_over(self) -> "Thumbs":
        """Nothing said, what was said before in reach."""
        return Thumbs(earlier=self)

    def undone(self) -> "Thumbs":
        """Without the last word; without any, as it was before it was started over."""
        if not self.said:
            return self.earlier or self
        return replace(self, said=self.said[:-1])


def thumbs_by_id(library: Library, fitting: Collection[int], unfitting: Collection[int]) -> Thumbs:
    """Thumbs on songs that somebody names by their ids, who may err.

    Raises NotFoundError if the library has no song of an id.
    """
    named = {*fitting, *unfitting}
    unknown = named - {song.id for song in library.songs(named, missing=True)}
    if unknown:
        raise NotFoundError(f"{library.folder.name}: there is no song {min(unknown)}. `musicsim list` shows the ids.")
    return Thumbs.of(fitting, unfitting)


def bent(snapshot: Snapshot, vector: FloatingArray, thumbs: Thumbs) -> "metric.Feedback | None":
    """The metric around a query: of the place where it lies, after what was said of answers to it.

    None where nothing was said of songs that have a vector, and the model's metric is the same everywhere: then it is
    plain distance.
    """
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
    """What became of a list of answers, in a sentence."""
    old = {song.id: place for place, song in enumerate(before, 1)}
    n_new = sum(song.id not in old for song in after)
    risen = [
        (old[song.id] - place, old[song.id], place, song.title) for place, song in enumerate(after, 1) if song.id in old
    ]
    words = []
    if n_new:
        words.append(f"{n_new} new {'song' if n_new == 1 else 'songs'} in the list")
    gain, was, now, title = max(risen, default=(0, 0, 0, ""))
    if gain > 1:
        words.append(f"“{title}” rose from place {was} to {now}")
    if not words:
        same = [song.id for song in before] == [song.id for song in after]
        return "The list stays as it was." if same else "The same songs, in another order."
    return "; ".join(words) + "."
