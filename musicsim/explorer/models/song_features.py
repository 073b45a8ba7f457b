"""What models compare, read from a library: the features of songs, whatever they are made of."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from musicsim.errors import LibraryError
from musicsim.explorer.models.encoders import (
    FRAMES,
    TAGS,
    AspectRows,
    LyricVocabulary,
    OwnVectors,
    has_features,
)
from musicsim.explorer.models.joint_space import Sources
from musicsim.explorer.models.similarity_model import SimilarityModel
from musicsim.explorer.progress import Tell
from musicsim.library import Library, Song
from musicsim.library.scan.lyrics import read_lyrics

__all__ = ["BLOCK", "feature_blocks"]

BLOCK = 64

Floats = npt.NDArray[np.float32]
_Read = Callable[[Sequence[Song]], Floats]


def feature_blocks(
    library: Library, model: SimilarityModel, songs: Sequence[Song], tell: Tell
) -> Iterator[tuple[Sequence[Song], Floats]]:
    """The features of songs under a model, some songs at a time.

    Yields
    ------
    songs : sequence of Song
    features : float32 ndarray of shape (n, n_features)
        Rows of zeros, or NaN, of songs that lack what the model compares
        (:func:`musicsim.explorer.models.encoders.has_features`).
    """
    read = _reader(library, model, tell) if songs else None
    for start in range(0, len(songs), BLOCK):
        tell(f"describing songs by {model.kind.words}", start, len(songs))
        assert read is not None
        block = songs[start : start + BLOCK]
        yield block, read(block)


def _reader(library: Library, model: SimilarityModel, tell: Tell) -> _Read:
    """What gives the features of songs; what takes the same time for one song as for all is done before."""
    front = model.front_
    if model.kind.needs == FRAMES:
        return lambda songs: model.features(library.frame_files.blocks(s.content_hash) for s in songs)
    if model.kind.needs == TAGS:
        tags = library.tags()
        return lambda songs: model.features_of_tags([[tag for tag, _ in tags.get(s.id, ())] for s in songs])
    if isinstance(front, AspectRows):
        return partial(_aspect, library, front, library.frame_files.kept_aspects())
    if isinstance(front, LyricVocabulary):
        read_lyrics(library, tell=tell)
        return _known_rows(*_lyrics(library, front), model.n_features)
    if isinstance(front, OwnVectors):
        return _known_rows(*_own(library, front), model.n_features)
    assert isinstance(front, Sources)
    of_parts = [
        _part(library, part, model_id, tell)
        for part, model_id in zip(front.parts, front.model_ids, strict=True)
    ]
    return lambda songs: np.concatenate([read(songs) for read in of_parts], axis=1)


def _aspect(library: Library, front: AspectRows, kept: set[str], songs: Sequence[Song]) -> Floats:
    has_one = [song.content_hash in kept for song in songs]
    found = library.frame_files.aspects(
        [s.content_hash for s, has in zip(songs, has_one, strict=True) if has]
    )
    values: Floats = getattr(found, front.aspect)
    rows = np.full((len(songs), values.shape[1]), np.nan, dtype=np.float32)
    rows[has_one] = values
    return rows


def _known_rows(ids: npt.NDArray[np.int64], rows: Callable[[Any], Floats], width: int) -> _Read:
    """Rows of songs, NaN for those that are not among the ids."""
    place = {song_id: at for at, song_id in enumerate(ids.tolist())}

    def read(songs: Sequence[Song]) -> Floats:
        at = np.array([place.get(song.id, -1) for song in songs], dtype=np.int64)
        found = np.full((len(songs), width), np.nan, dtype=np.float32)
        found[at >= 0] = rows(at[at >= 0])
        return found

    return read


def _own(library: Library, front: OwnVectors) -> tuple[npt.NDArray[np.int64], Callable[[Any], Floats]]:
    from musicsim.library.embeddings.store import EmbeddingStore

    store = EmbeddingStore(library)
    try:
        vectors, matched = store.vectors(front.key), store.match(front.key)
    except LibraryError:  # the model was made elsewhere, of vectors that are not here; or they are damaged
        return np.empty(0, np.int64), lambda at: np.empty((len(at), front.n_dimensions), np.float32)
    if vectors.shape[1] != front.n_dimensions:  # somebody has made the model up
        return np.empty(0, np.int64), lambda at: np.empty((len(at), front.n_dimensions), np.float32)
    return matched.song_ids, lambda at: vectors[matched.rows[at]]


def _lyrics(
    library: Library, front: LyricVocabulary
) -> tuple[npt.NDArray[np.int64], Callable[[Any], Floats]]:
    table = library.lyrics.table(min_songs=1, max_share=1.0)  # which words count was settled by the fit
    column = {word: at for at, word in enumerate(table.vocabulary)}
    columns = [column.get(word, -1) for word in front.words]

    def rows(at: Any) -> Floats:
        some = np.zeros((len(at), len(column) + 1), dtype=np.float32)  # the last: what nobody says any more
        some[:, :-1] = table.counts[at].toarray() if len(at) else 0.0
        return some[:, columns]

    return table.song_ids, rows


def _part(library: Library, part: SimilarityModel, model_id: str, tell: Tell) -> _Read:
    """Vectors of songs under one of several models, NaN where a song has none."""
    if any(record.id == model_id and record.is_complete for record in library.models.all(retired=True)):
        kept = library.vectors(model_id)
        return _known_rows(kept.song_ids, lambda at: kept.X[at], part.n_dimensions)
    read = _reader(library, part, tell)

    def vectors(songs: Sequence[Song]) -> Floats:
        features = read(songs)
        rows = np.full((len(songs), part.n_dimensions), np.nan, dtype=np.float32)
        known = has_features(features)
        if known.any():
            rows[known] = part.vectors(features[known])
        return rows

    return vectors
