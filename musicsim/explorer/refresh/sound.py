"""Fit the encoder of the native model on parts of songs, which show the variation within songs."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np

from musicsim import gaussians
from musicsim._arrays import Float32Array, Float64Array
from musicsim.audio import SongFrames
from musicsim.explorer.models.encoders import SoundEncoder
from musicsim.explorer.refresh.placing import SEED
from musicsim.library import Library, Song
from musicsim.library.processes.pools import on_all_cores
from musicsim.library.stores.song_gaussians import part_gaussians, part_length
from musicsim.progress import Progress

_MAX_SONGS = 1_000


@dataclass(frozen=True, slots=True)
class SongParts:
    """Parts of a song."""

    timbre: gaussians.SongGaussians  # of the 39 columns of frames, one per part
    fluctuation: Float32Array  # (n_parts, 594): mean patterns


def song_parts(library: Library, songs: Sequence[Song], progress: Progress) -> list[SongParts]:
    """Return the parts of a seeded sample of songs of this feature version; 70 MB for 1,000 songs."""
    sample = np.sort(np.random.default_rng(SEED).permutation(len(songs))[:_MAX_SONGS]).tolist()
    hashes = (songs[i].content_hash for i in sample)
    parts: list[SongParts] = []
    with closing(on_all_cores(lambda digest: parts_of(library.frame_files.frames(digest)), hashes)) as results:
        for _ in sample:
            if len(parts) % 16 == 0:
                progress("comparing parts of songs", len(parts), len(sample))
            parts.append(next(results))
    return parts


def parts_of(frames: SongFrames) -> SongParts:
    """Return the parts of a song, of :func:`part_length`."""
    timbre, length = part_gaussians(frames), part_length(len(frames))
    patterns = [frames.part(i * length, (i + 1) * length).mean_fluctuation for i in range(len(timbre))]
    return SongParts(timbre, np.array(patterns))


def fit_sound(songs: Sequence[SongParts], *, use_prior: bool = True) -> tuple[SoundEncoder, list[Float64Array]]:
    """Return the encoder of the native model, and covariances within songs of timbre and of fluctuation.

    `use_prior` adds the program's own statistics of music, for small libraries. The covariances are arguments of
    :meth:`SimilarityModel.fit_space`.
    """
    prior = gaussians.load_prior().population if use_prior else None
    embedding, within_timbre = gaussians.fit_embedding([song.timbre for song in songs], prior)
    song_of = np.repeat(np.arange(len(songs)), [len(song.fluctuation) for song in songs])
    patterns = np.concatenate([song.fluctuation for song in songs])
    return SoundEncoder(embedding), [within_timbre, gaussians.pool_covariance(patterns, song_of)]
