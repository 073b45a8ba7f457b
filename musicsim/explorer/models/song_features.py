"""Features of songs of a library, some songs at a time: read here, or made by workers elsewhere."""

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import chain, islice
from pathlib import Path

import numpy as np

from musicsim.audio import read_song_frames
from musicsim.explorer.models.encoders import Encoder, Floats, FrameEncoder, ReadFeatures
from musicsim.explorer.models.similarity_model import SimilarityModel
from musicsim.library import Library, Song
from musicsim.library.processes.pools import in_order, on_all_cores
from musicsim.progress import Progress

BLOCK = 64
_AT_ONCE = 16  # songs that a thread is given


def feature_blocks(
    library: Library, model: SimilarityModel, songs: Sequence[Song], progress: Progress
) -> Iterator[tuple[Sequence[Song], Floats]]:
    """The features of songs under a model, some songs at a time: the songs, and float32 (n, n_features).

    Rows of songs that lack what the model compares are of zeros, or NaN
    (:func:`musicsim.explorer.models.encoders.has_features`).
    """
    if not songs:
        return
    read = model.encoder_.reader(library, progress)
    blocks = [songs[start : start + BLOCK] for start in range(0, len(songs), BLOCK)]
    with closing(_read_blocks(library, model.encoder_, read, blocks)) as features:
        for number, block in enumerate(blocks):
            progress(f"describing songs by {model.kind.description}", number * BLOCK, len(songs))
            yield block, next(features)


def _read_blocks(
    library: Library, encoder: Encoder, read: ReadFeatures, blocks: Sequence[Sequence[Song]]
) -> Generator[Floats, None, None]:
    """Features of blocks in their order, by whatever is quickest at it."""
    if not isinstance(encoder, FrameEncoder):
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
