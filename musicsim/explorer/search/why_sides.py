"""The two songs of :mod:`musicsim.explorer.search.why`, as a library knows them, explained."""

from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np

from musicsim._arrays import Float32Array
from musicsim.errors import AudioTooShortError, FeatureVersionError, NotFoundError
from musicsim.explorer.models.schema import SOUNDS
from musicsim.explorer.models.similarity_model import SimilarityModel
from musicsim.explorer.search.query import Example, model_to_compare_with
from musicsim.explorer.search.why import Side, Why, explain_pair
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library import Library, Song
from musicsim.library.stores.models import Vectors

_SAMPLE = 300
"""Songs that say what is usual: 1 MB."""


def explained(snapshot: Snapshot, query: int | Example, other_id: int) -> tuple[Side, Side, Why]:
    """A query and an answer to it, and why they are alike under the model in use.

    The query is a song id, or sound from outside. Raises NotFoundError if a song is not in the library or has not been
    compared yet; ModelError if the library has no model yet, or the one in use compares something else than sound.
    """
    model = model_to_compare_with(snapshot)
    one, other = sides_of(snapshot, query, other_id)
    if model.representation not in SOUNDS:
        return one, other, explain_pair(one, other, model)
    stored = _features(snapshot.library, snapshot.record.id if snapshot.record else None, snapshot.revision)
    rows = np.random.default_rng(0).permutation(len(stored.X))[:_SAMPLE]
    why = explain_pair(one, other, model, codewords=_codewords(snapshot), sample=stored.X[np.sort(rows)])
    return one, other, why


def sides_of(snapshot: Snapshot, query: int | Example, other_id: int) -> tuple[Side, Side]:
    """A query and an answer to it, ready to be explained; parameters and errors as of :func:`explained`."""
    if isinstance(query, int):
        first, second = _songs(snapshot, [query, other_id])
        return first, second
    (other,) = _songs(snapshot, [other_id])
    return _outside(snapshot, query), other


def _outside(snapshot: Snapshot, example: Example) -> Side:
    """Sound from outside; what listeners say is known when the library has the same sound."""
    known = next(iter(snapshot.songs_by_id([example.song_id] if example.song_id is not None else [])), None)
    histogram: Float32Array | None = example.features
    features: Float32Array | None = None
    if _compares_gaussians(snapshot):
        codewords, features = _codewords(snapshot), example.features
        histogram = None if codewords is None else codewords.features([example.frames])[0]
    return Side(
        histogram=histogram,
        frame_blocks=example.frames.blocks(),
        peaks=example.peaks,
        duration_s=example.duration_s,
        title=example.name,
        song_id=example.song_id,
        starts_s=example.starts_s,
        tags=_tags(snapshot, known) if known else (),
        listeners=snapshot.library.listening.listeners_of([known.id])[known.id] if known else frozenset(),
        features=features,
    )


def _songs(snapshot: Snapshot, song_ids: list[int]) -> list[Side]:
    shown = [_shown_id(snapshot, song_id) for song_id in song_ids]
    of_model = _rows(snapshot, snapshot.record.id if snapshot.record else None, shown)
    histograms: Sequence[Float32Array | None] = of_model
    features: Sequence[Float32Array | None] = [None] * len(song_ids)
    if _compares_gaussians(snapshot):
        record = snapshot.library.models.codewords()
        histograms, features = features, of_model
        if record is not None:
            histograms = _rows(snapshot, record.id, shown)
    listeners = snapshot.library.listening.listeners_of(song_ids)
    sides = []
    songs = snapshot.songs_by_id(song_ids)
    for song, histogram, own in zip(songs, histograms, features, strict=True):
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
                features=own,
            )
        )
    return sides


def _compares_gaussians(snapshot: Snapshot) -> bool:
    return snapshot.model is not None and snapshot.model.representation in SOUNDS


def _codewords(snapshot: Snapshot) -> SimilarityModel | None:
    """The library's model of codewords, which says what sounds alike where."""
    record = snapshot.library.models.codewords()
    return None if record is None else _loaded(snapshot.library, record.id)


@lru_cache(maxsize=4)
def _loaded(library: Library, model_id: str) -> SimilarityModel:
    return SimilarityModel.load(library.models.path(model_id))


def _shown_id(snapshot: Snapshot, song_id: int) -> int:
    """The song whose features are those of a song: its own, or of a copy that of the song shown."""
    row = int(snapshot.rows_of([song_id])[0])
    if row < 0:
        song = snapshot.library.song(song_id)  # raises when there is no such song at all
        raise NotFoundError(
            f"{song.label} has not been compared yet: wait until the running job has finished."
        )
    return int(snapshot.row_ids[row])


def _rows(snapshot: Snapshot, model_id: str | None, song_ids: list[int]) -> list[Float32Array | None]:
    """Features of songs under a model; None where it has none."""
    stored = _features(snapshot.library, model_id, snapshot.revision)
    found = [np.flatnonzero(stored.song_ids == song_id) for song_id in song_ids]
    return [np.asarray(stored.X[rows[0]]) if len(rows) else None for rows in found]


@lru_cache(maxsize=4)
def _features(library: Library, model_id: str | None, revision: int) -> Vectors:
    """The memory map and its song ids, 8 bytes a song; to list them takes longer than to explain two songs."""
    return library.models.features(model_id)


def _frame_blocks(library: Library, song: Song) -> Iterator[Float32Array] | None:
    try:
        return library.frame_files.blocks(song.content_hash)
    except (FeatureVersionError, AudioTooShortError):  # not kept, or not written by this program
        return None


def _tags(snapshot: Snapshot, song: Song) -> tuple[str, ...]:
    """Tags, heaviest first; without any, the genre."""
    tags = tuple(tag for tag, _ in snapshot.tags_of([song.id]).get(song.id, ()))
    return tags or ((song.genre,) if song.genre else ())
