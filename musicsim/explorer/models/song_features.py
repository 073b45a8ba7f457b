"""Compute features of songs in blocks, in this process or in a pool of workers."""

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np

from musicsim.audio import read_song_frames
from musicsim.explorer.models.encoders import Encoder, Floats, FrameEncoder, ReadFeatures
from musicsim.explorer.models.similarity_model import SimilarityModel
from musicsim.library import Library, Song, on_all_cores
from musicsim.library.processes.pools import map_in_order
from musicsim.progress import Progress

BLOCK = 64
SONGS_PER_TASK = 16  # number of songs in each task for a thread


def feature_blocks(
    library: Library, model: SimilarityModel, songs: Sequence[Song], progress: Progress
) -> Iterator[tuple[Sequence[Song], Floats]]:
    """Yield blocks of songs with their features, float32 (n, n_features); 0 or NaN for songs without features."""
    if not songs:
        return
    read = model.encoder_.reader(library, progress)
    blocks = [songs[start : start + BLOCK] for start in range(0, len(songs), BLOCK)]
    with closing(_read_blocks(library, model.encoder_, read, blocks)) as features:
        for number, block in enumerate(blocks):
            progress(f"computing features: {model.kind.description}", number * BLOCK, len(songs))
            yield block, next(features)


def _read_blocks(
    library: Library, encoder: Encoder, read: ReadFeatures, blocks: Sequence[Sequence[Song]]
) -> Generator[Floats, None, None]:
    """Yield the features of blocks in order, computed by the pool, by threads or one after another."""
    if not isinstance(encoder, FrameEncoder):
        yield from map(read, blocks)
    elif library.pool is None:
        # tasks are small, so that every core is busy until the end
        tasks = (b[i : i + SONGS_PER_TASK] for b in blocks for i in range(0, len(b), SONGS_PER_TASK))
        with closing(on_all_cores(read, tasks)) as rows:
            for block in blocks:
                yield np.concatenate(list(islice(rows, -(-len(block) // SONGS_PER_TASK))))
    else:
        paths = ([library.frame_files.path(song.content_hash) for song in block] for block in blocks)
        encoded = map_in_order(library.pool, partial(encode_files, encoder), paths, limits=library.file_limits)
        for block, features in zip(blocks, encoded, strict=True):
            # some workers may have no access to the frame files
            yield read(block) if isinstance(features, BaseException) else features


def encode_files(encoder: Encoder, paths: Sequence[Path]) -> Floats:
    """Encode the frames in files; runs in worker processes."""
    return encoder.encode_frames(read_song_frames(path) for path in paths)
