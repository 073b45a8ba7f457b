"""Constants of the Sound model: learned from a library of real music, for libraries with few songs.

``python -m experiments.sound_prior LIBRARY`` writes ``musicsim/gaussians/prior.npz``. The shipped file is from 311
recordings of 21 of Debian's game packages. It contains means and covariances over all of them, but nothing of a single
piece.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import numpy as np

from musicsim import gaussians
from musicsim._arrays import FloatingArray
from musicsim.explorer.refresh.fitting import SongParts, song_parts
from musicsim.explorer.refresh.placing import songs_with_frames
from musicsim.gaussians.axes import principal_axes
from musicsim.gaussians.prior import POPULATIONS, SPREADS, whole_songs
from musicsim.library import Library

TARGET = Path(gaussians.__file__).with_name("prior.npz")
N_SONGS = 60.0
"""How much the constants count next to a library's songs."""


def learn_prior(songs: Sequence[SongParts], n_songs: float, variance: float = 0.95) -> gaussians.Prior:
    """Learn a prior from songs, to be merged with other libraries as if it were `n_songs` songs.

    `variance` is the share of the variance of songs that is kept.
    """
    timbre, _ = gaussians.fit_embedding([song.timbre for song in songs])
    shapes = gaussians.SongGaussians.concatenate([song.shape for song in songs])
    shape = gaussians.GaussianEmbedding().fit(shapes)
    patterns = [song.fluctuation for song in songs]
    return gaussians.Prior(
        frames=replace(timbre.population_, n_songs=n_songs),
        spectra=replace(shape.population_, n_songs=n_songs),
        timbre=_spread(
            timbre.transform(whole_songs([song.timbre for song in songs])),
            [timbre.transform(song.timbre) for song in songs],
            n_songs,
            variance,
        ),
        fluctuation=_spread(np.array([parts.mean(axis=0) for parts in patterns]), patterns, n_songs, variance),
        shape=_spread(shape.transform(shapes), None, n_songs, variance),
    )


def _spread(
    whole: FloatingArray, parts: Sequence[FloatingArray] | None, n_songs: float, variance: float
) -> gaussians.Spread:
    between, axes = principal_axes(np.cov(whole.T, bias=True), variance)
    within = None
    if parts is not None:
        song_of = np.repeat(np.arange(len(parts)), [len(of_song) for of_song in parts])
        within = gaussians.pool_covariance(np.concatenate(parts) @ axes.T, song_of)
    return gaussians.Spread(n_songs, whole.mean(axis=0, dtype=np.float64), axes, between, within)


def save_prior(prior: gaussians.Prior, target: IO[bytes]) -> None:
    """Write the input of `gaussians.read_prior`; axes in half precision, because their fourth digit does not matter."""
    arrays: dict[str, Any] = {"n_songs": np.float32(prior.frames.n_songs)}
    for name in POPULATIONS:
        population: gaussians.Population = getattr(prior, name)
        arrays[f"{name}_mean"] = population.mean.astype(np.float32)
        arrays[f"{name}_covariance"] = population.covariance.astype(np.float32)
    for name in SPREADS:
        spread: gaussians.Spread = getattr(prior, name)
        arrays[f"{name}_mean"] = spread.mean.astype(np.float32)
        arrays[f"{name}_axes"] = spread.axes.astype(np.float16)
        arrays[f"{name}_between"] = spread.between.astype(np.float32)
        if spread.within is not None:
            arrays[f"{name}_within"] = spread.within.astype(np.float32)
    np.savez_compressed(target, **arrays)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library", type=Path, help="a library whose audio features are stored")
    with Library.open(parser.parse_args().library) as library:
        songs = songs_with_frames(library, library.songs())
        parts = song_parts(library, songs, lambda *_: None)
    prior = learn_prior(parts, N_SONGS)
    with TARGET.open("wb") as stream:
        save_prior(prior, stream)
    n_axes = f"{', '.join(str(len(getattr(prior, name).axes)) for name in SPREADS)} axes"
    print(f"{TARGET}: {TARGET.stat().st_size >> 10} kB, {n_axes} of {len(songs)} songs")


if __name__ == "__main__":
    main()
