"""What the native model learns from: songs in parts, which say how a song varies in itself."""

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

    timbre: gaussians.SongGaussians  # of the 39 columns of frames, a row a part
    fluctuation: Float32Array  # (n_parts, 594): the mean pattern of each


def song_parts(library: Library, songs: Sequence[Song], progress: Progress) -> list[SongParts]:
    """The parts of each of a seeded sample of songs that this version has described; 70 MB for 1,000 songs."""
    chosen = np.sort(np.random.default_rng(SEED).permutation(len(songs))[:_MAX_SONGS]).tolist()
    hashes = (songs[i].content_hash for i in chosen)
    parts: list[SongParts] = []
    with closing(on_all_cores(lambda digest: parts_of(library.frame_files.frames(digest)), hashes)) as found:
        for _ in chosen:
            if len(parts) % 16 == 0:
                progress("comparing parts of songs", len(parts), len(chosen))
            parts.append(next(found))
    return parts


def parts_of(frames: SongFrames) -> SongParts:
    """A song's parts, of :func:`part_length`."""
    timbre, length = part_gaussians(frames), part_length(len(frames))
    patterns = [frames.part(i * length, (i + 1) * length).mean_fluctuation for i in range(len(timbre))]
    return SongParts(timbre, np.array(patterns))


def fit_sound(songs: Sequence[SongParts], *, use_prior: bool = True) -> tuple[SoundEncoder, list[Float64Array]]:
    """What the native model describes songs by, of songs in parts, and how these vary about their songs.

    `use_prior` joins what the program knows of music, for songs that may be few. How they vary are the covariances of
    timbre and of fluctuation, as :meth:`SimilarityModel.fit_space` takes them.
    """
    prior = gaussians.load_prior().population if use_prior else None
    embedding, of_timbre = gaussians.fit_embedding([song.timbre for song in songs], prior)
    song_of = np.repeat(np.arange(len(songs)), [len(song.fluctuation) for song in songs])
    patterns = np.concatenate([song.fluctuation for song in songs])
    return SoundEncoder(embedding), [of_timbre, gaussians.within_covariance(patterns, song_of)]
