"""The two songs of :mod:`musicsim.explorer.search.why`, as a library knows them."""

from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from musicsim.audio import derivative_blocks
from musicsim.errors import AudioTooShortError, FeatureVersionError, NotFoundError
from musicsim.explorer.search.query import Example
from musicsim.explorer.search.why import Side
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library import Library, Song
from musicsim.library.stores.models import Vectors

__all__ = ["sides_of"]


def sides_of(snapshot: Snapshot, query: int | Example, other_id: int) -> tuple[Side, Side]:
    """A query and an answer to it, ready to be explained.

    Parameters
    ----------
    snapshot : Snapshot
        With a model of codeword histograms in use.
    query : int or Example
        A song id, or sound from outside.

    Raises
    ------
    NotFoundError
        If a song is not in the library or has not been compared yet.
    """
    if isinstance(query, int):
        first, second = _songs(snapshot, [query, other_id])
        return first, second
    (other,) = _songs(snapshot, [other_id])
    return _outside(snapshot, query), other


def _outside(snapshot: Snapshot, example: Example) -> Side:
    """Sound from outside; what listeners say is known when the library has the same sound."""
    known = next(iter(snapshot.songs_by_id([example.song_id] if example.song_id is not None else [])), None)
    return Side(
        histogram=example.features,
        frame_blocks=None if example.mfcc is None else derivative_blocks(example.mfcc),
        peaks=example.peaks,
        duration_s=example.duration_s,
        title=example.name,
        song_id=example.song_id,
        tags=_tags(snapshot, known) if known else (),
        listeners=snapshot.library.listening.listeners_of([known.id])[known.id] if known else frozenset(),
    )


def _songs(snapshot: Snapshot, song_ids: list[int]) -> list[Side]:
    histograms = _histograms(snapshot, song_ids)
    listeners = snapshot.library.listening.listeners_of(song_ids)
    sides = []
    for song, histogram in zip(snapshot.songs_by_id(song_ids), histograms, strict=True):
        sides.append(
            Side(
                histogram=histogram,
                frame_blocks=_frame_blocks(snapshot.library, song),
                peaks=snapshot.library.outline(song.id),
                duration_s=song.duration_s,
                title=song.title,
                sub=song.by,
                song_id=song.id,
                tags=_tags(snapshot, song),
                listeners=listeners[song.id],
            )
        )
    return sides


def _histograms(snapshot: Snapshot, song_ids: Sequence[int]) -> npt.NDArray[np.float32]:
    """Histograms under the model in use, float32 (n_songs, n_codewords); a copy has those of the song shown."""
    stored = _features(snapshot.library, snapshot.record.id if snapshot.record else None, snapshot.revision)
    rows = []
    for song_id, row in zip(song_ids, snapshot.rows_of(song_ids).tolist(), strict=True):
        if row < 0:
            song = snapshot.library.song(song_id)  # raises when there is no such song at all
            raise NotFoundError(
                f"{song.label} has not been compared yet: wait until the running job has finished."
            )
        rows.append(int(np.flatnonzero(stored.song_ids == snapshot.row_ids[row])[0]))
    return np.asarray(stored.X[rows])


@lru_cache(maxsize=4)
def _features(library: Library, model_id: str | None, revision: int) -> Vectors:
    """The memory map and its song ids, 8 bytes a song; to list them takes longer than to explain two songs."""
    return library.models.features(model_id)


def _frame_blocks(library: Library, song: Song) -> Iterator[npt.NDArray[np.float32]] | None:
    try:
        return library.frame_files.blocks(song.content_hash)
    except (FeatureVersionError, AudioTooShortError):  # not kept, or not written by this program
        return None


def _tags(snapshot: Snapshot, song: Song) -> tuple[str, ...]:
    """Tags, heaviest first; without any, the genre."""
    tags = tuple(tag for tag, _ in snapshot.tags_of([song.id]).get(song.id, ()))
    return tags or ((song.genre,) if song.genre else ())
