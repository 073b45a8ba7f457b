"""Constants of the Sound model: learned from a library of real music, for libraries with few songs.

``python -m experiments.sound_prior LIBRARY`` writes ``musicsim/gaussians/prior.npz``. The shipped file is from 311
recordings of 21 of Debian's game packages. It contains means and covariances over all of them, but nothing of a single
piece.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from musicsim import gaussians
from musicsim._arrays import FloatingArray
from musicsim.explorer.refresh.fitting import song_parts
from musicsim.explorer.refresh.placing import songs_with_frames
from musicsim.gaussians.axes import principal_axes
from musicsim.gaussians.prior import SPREADS, whole_songs
from musicsim.library import Library

TARGET = Path(gaussians.__file__).with_name("prior.npz")
N_SONGS = 60.0
"""How much the constants count next to a library's songs."""


def learn_prior(
    songs: Sequence[gaussians.SongGaussians],
    fluctuation: Sequence[FloatingArray],
    n_songs: float,
    variance: float = 0.95,
) -> gaussians.Prior:
    """Learn a prior from songs, to be merged with other libraries as if it were `n_songs` songs.

    Parameters
    ----------
    songs : sequence of SongGaussians
        The parts of each song.
    fluctuation : sequence of ndarrays of shape (n_parts, d)
        Patterns of the same parts.
    n_songs : float
    variance : float
        Share of the variance of songs that is kept.
    """
    embedding, _ = gaussians.fit_embedding(songs)
    known = embedding.population_
    return gaussians.Prior(
        gaussians.Population(n_songs, known.mean, known.covariance),
        _spread(
            [embedding.transform(parts) for parts in songs], embedding.transform(whole_songs(songs)), n_songs, variance
        ),
        _spread(fluctuation, np.array([parts.mean(axis=0) for parts in fluctuation]), n_songs, variance),
    )


def _spread(parts: Sequence[FloatingArray], whole: FloatingArray, n_songs: float, variance: float) -> gaussians.Spread:
    song_of = np.repeat(np.arange(len(parts)), [len(of_song) for of_song in parts])
    between, axes = principal_axes(np.cov(whole.T, bias=True), variance)
    return gaussians.Spread(n_songs, axes, between, gaussians.pool_covariance(np.concatenate(parts) @ axes.T, song_of))


def save_prior(prior: gaussians.Prior, target: IO[bytes]) -> None:
    """Write the input of `gaussians.read_prior`; axes in half precision, because their fourth digit does not matter."""
    population = prior.population
    arrays: dict[str, Any] = {
        "n_songs": np.float32(population.n_songs),
        "mean": population.mean.astype(np.float32),
        "covariance": population.covariance.astype(np.float32),
    }
    for name in SPREADS:
        spread: gaussians.Spread = getattr(prior, name)
        arrays[f"{name}_axes"] = spread.axes.astype(np.float16)
        arrays[f"{name}_between"] = spread.between.astype(np.float32)
        arrays[f"{name}_within"] = spread.within.astype(np.float32)
    np.savez_compressed(target, **arrays)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library", type=Path, help="a library whose audio features are stored")
    with Library.open(parser.parse_args().library) as library:
        songs = songs_with_frames(library, library.songs())
        parts = song_parts(library, songs, lambda *_: None)
    prior = learn_prior([song.timbre for song in parts], [song.fluctuation for song in parts], N_SONGS)
    with TARGET.open("wb") as stream:
        save_prior(prior, stream)
    n_axes = f"{len(prior.timbre.axes)} and {len(prior.fluctuation.axes)} axes"
    print(f"{TARGET}: {TARGET.stat().st_size >> 10} kB, {n_axes} of {len(songs)} songs")


if __name__ == "__main__":
    main()
