"""What models compare, read from a library: the features of songs, whatever they are made of."""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from musicsim._arrays import Int64Array
from musicsim.audio import read_song_frames
from musicsim.errors import LibraryError
from musicsim.explorer.models.encoders import (
    ASPECTS,
    FRAMES,
    LYRICS,
    MODELS,
    TAGS,
    VECTORS,
    AspectEncoder,
    Encoder,
    Floats,
    LyricEncoder,
    Part,
    TagEncoder,
    VectorEncoder,
    has_features,
)
from musicsim.explorer.models.joint_space import JointEncoder
from musicsim.explorer.models.similarity_model import SimilarityModel
from musicsim.explorer.progress import Tell
from musicsim.extensions.embeddings.store import EmbeddingStore
from musicsim.extensions.lyrics.reading import read_lyrics
from musicsim.library import Library, Song
from musicsim.library.processes.pools import in_order, on_all_cores

BLOCK = 64
_AT_ONCE = 16  # songs that a thread is given

_Read = Callable[[Sequence[Song]], Floats]


def feature_blocks(
    library: Library, model: SimilarityModel, songs: Sequence[Song], tell: Tell
) -> Iterator[tuple[Sequence[Song], Floats]]:
    """The features of songs under a model, some songs at a time: the songs, and float32 (n, n_features).

    Rows of songs that lack what the model compares are of zeros, or NaN
    (:func:`musicsim.explorer.models.encoders.has_features`).
    """
    if not songs:
        return
    read = _reader(library, model.encoder_, tell)
    blocks = [songs[start : start + BLOCK] for start in range(0, len(songs), BLOCK)]
    with closing(_read_blocks(library, model.encoder_, read, blocks)) as features:
        for number, block in enumerate(blocks):
            tell(f"describing songs by {model.kind.description}", number * BLOCK, len(songs))
            yield block, next(features)


def _read_blocks(
    library: Library, encoder: Encoder, read: _Read, blocks: Sequence[Sequence[Song]]
) -> Generator[Floats, None, None]:
    """Features of blocks in their order, by whatever is quickest at it."""
    if encoder.needs != FRAMES:
        yield from map(read, blocks)
    elif library.pool is None:
        # few at a time: at the end some cores would have none left while others began another block
        parts = ([block[i : i + _AT_ONCE] for i in range(0, len(block), _AT_ONCE)] for block in blocks)
        with closing(on_all_cores(read, chain.from_iterable(parts))) as rows:
            for block in blocks:
                yield np.concatenate(list(islice(rows, -(-len(block) // _AT_ONCE))))
    else:
        for block, found in zip(blocks, _encoded_away(library, encoder, blocks), strict=True):
            yield read(block) if found is None else found


def _encoded_away(library: Library, encoder: Encoder, blocks: Sequence[Sequence[Song]]) -> Iterator[Floats | None]:
    """Features of blocks in their order, by the library's pool; None where its workers do not see the frames."""
    assert library.pool is not None
    store = library.frame_files
    tasks = ([store.path(song.content_hash) for song in block] for block in blocks)
    for found in in_order(library.pool, partial(encode_files, encoder), tasks, limits=library.file_limits):
        yield None if isinstance(found, BaseException) else found


def encode_files(encoder: Encoder, paths: Sequence[Path]) -> Floats:
    """Encode the frames in some files; runs in worker processes."""
    return encoder.encode_frames(read_song_frames(path) for path in paths)


def _reader(library: Library, encoder: Encoder, tell: Tell) -> _Read:
    """What gives the features of songs; what takes the same time for one song as for all is done before."""
    return _READERS[encoder.needs](library, encoder, tell)


def _known_rows(ids: Int64Array, rows: Callable[[Any], Floats], width: int) -> _Read:
    """Rows of songs, NaN for those that are not among the ids."""
    place = {song_id: at for at, song_id in enumerate(ids.tolist())}

    def read(songs: Sequence[Song]) -> Floats:
        at = np.array([place.get(song.id, -1) for song in songs], dtype=np.int64)
        found = np.full((len(songs), width), np.nan, dtype=np.float32)
        found[at >= 0] = rows(at[at >= 0])
        return found

    return read


# --- by what an encoder needs ---------------------------------------------------------------------


def _frames(library: Library, encoder: Encoder, _tell: Tell) -> _Read:
    return lambda songs: encoder.encode_frames(library.frame_files.frames(s.content_hash) for s in songs)


def _tags(library: Library, encoder: TagEncoder, _tell: Tell) -> _Read:
    tags = library.tags()
    return lambda songs: encoder.encode_tags([[tag for tag, _ in tags.get(s.id, ())] for s in songs])


def _aspects(library: Library, encoder: AspectEncoder, _tell: Tell) -> _Read:
    kept = library.frame_files.kept_aspects()

    def read(songs: Sequence[Song]) -> Floats:
        has_one = [song.content_hash in kept for song in songs]
        found = library.frame_files.aspects([s.content_hash for s, has in zip(songs, has_one, strict=True) if has])
        values: Floats = getattr(found, encoder.aspect)
        rows = np.full((len(songs), values.shape[1]), np.nan, dtype=np.float32)
        rows[has_one] = values
        return rows

    return read


def _lyrics(library: Library, encoder: LyricEncoder, tell: Tell) -> _Read:
    read_lyrics(library, tell=tell)
    table = library.lyrics.table(min_songs=1, max_share=1.0)  # which words count was settled by the fit
    column = {word: at for at, word in enumerate(table.vocabulary)}
    columns = [column.get(word, -1) for word in encoder.words]

    def rows(at: Any) -> Floats:
        some = np.zeros((len(at), len(column) + 1), dtype=np.float32)  # the last: what nobody says any more
        some[:, :-1] = table.counts[at].toarray() if len(at) else 0.0
        return some[:, columns]

    return _known_rows(table.song_ids, rows, encoder.n_features)


def _vectors(library: Library, encoder: VectorEncoder, _tell: Tell) -> _Read:
    store, width = EmbeddingStore(library), encoder.n_features
    nothing = _known_rows(np.empty(0, np.int64), lambda at: np.empty((len(at), width), np.float32), width)
    try:
        vectors, matched = store.vectors(encoder.key), store.match(encoder.key)
    except LibraryError:  # the model was made elsewhere, of vectors that are not here; or they are damaged
        return nothing
    if vectors.shape[1] != width:  # somebody has made the model up
        return nothing
    return _known_rows(matched.song_ids, lambda at: vectors[matched.rows[at]], width)


def _parts(library: Library, encoder: JointEncoder, tell: Tell) -> _Read:
    of_parts = [
        _part(library, part, model_id, tell) for part, model_id in zip(encoder.parts, encoder.model_ids, strict=True)
    ]
    return lambda songs: np.concatenate([read(songs) for read in of_parts], axis=1)


def _part(library: Library, part: Part, model_id: str, tell: Tell) -> _Read:
    """Vectors of songs under one of several models, NaN where a song has none."""
    if any(record.id == model_id and record.is_complete for record in library.models.all(retired=True)):
        kept = library.vectors(model_id)
        return _known_rows(kept.song_ids, lambda at: kept.X[at], part.n_dimensions)
    read = _reader(library, part.encoder_, tell)

    def vectors(songs: Sequence[Song]) -> Floats:
        features = read(songs)
        rows = np.full((len(songs), part.n_dimensions), np.nan, dtype=np.float32)
        known = has_features(features)
        if known.any():
            rows[known] = part.vectors(features[known])
        return rows

    return vectors


_READERS: dict[str, Callable[[Library, Any, Tell], _Read]] = {
    FRAMES: _frames,
    TAGS: _tags,
    ASPECTS: _aspects,
    LYRICS: _lyrics,
    VECTORS: _vectors,
    MODELS: _parts,
}
