"""What is known of music before a library's own songs are: for libraries of few songs."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import IO, Any

import numpy as np

from musicsim._arrays import Float64Array, FloatingArray
from musicsim.gaussians.axes import Spread, principal_axes, within_covariance
from musicsim.gaussians.embedding import GaussianEmbedding, Population
from musicsim.gaussians.songs import SongGaussians

_SPREADS = ("timbre", "fluctuation")  # fields of Prior


@dataclass(frozen=True)
class Prior:
    """The population of the frames of songs, and how songs vary: their vectors, and their fluctuation."""

    population: Population
    timbre: Spread
    fluctuation: Spread


def fit_embedding(
    songs: Sequence[SongGaussians], prior: Population | None = None
) -> tuple[GaussianEmbedding, Float64Array]:
    """An embedding for songs that are given in parts, and the covariance of its vectors within songs.

    Parameters
    ----------
    songs : sequence of SongGaussians
        The parts of each.
    prior : Population, optional

    Returns
    -------
    embedding : GaussianEmbedding
    within : float64 ndarray of shape (n_dimensions, n_dimensions)
    """
    embedding = GaussianEmbedding(prior=prior).fit(_whole(songs))
    which = np.repeat(np.arange(len(songs)), [len(parts) for parts in songs])
    return embedding, within_covariance(embedding.transform(SongGaussians.concatenate(songs)), which)


def learn_prior(
    songs: Sequence[SongGaussians],
    fluctuation: Sequence[FloatingArray],
    n_songs: float,
    variance: float = 0.95,
) -> Prior:
    """What a collection says of music, to count as so many songs where it is joined with others.

    Parameters
    ----------
    songs : sequence of SongGaussians
        The parts of each.
    fluctuation : sequence of ndarrays of shape (n_parts, d)
        Patterns of the same parts.
    n_songs : float
    variance : float
        Share of the variance of songs that is kept.
    """
    embedding, _ = fit_embedding(songs)
    known = embedding.population_
    return Prior(
        Population(n_songs, known.mean, known.covariance),
        _spread(
            [embedding.transform(parts) for parts in songs],
            embedding.transform(_whole(songs)),
            n_songs,
            variance,
        ),
        _spread(fluctuation, np.array([parts.mean(axis=0) for parts in fluctuation]), n_songs, variance),
    )


def _whole(songs: Sequence[SongGaussians]) -> SongGaussians:
    return SongGaussians.concatenate([parts.merged() for parts in songs])


def _spread(parts: Sequence[FloatingArray], whole: FloatingArray, n_songs: float, variance: float) -> Spread:
    song_of = np.repeat(np.arange(len(parts)), [len(of_song) for of_song in parts])
    between, axes = principal_axes(np.cov(whole.T, bias=True), variance)
    return Spread(n_songs, axes, between, within_covariance(np.concatenate(parts) @ axes.T, song_of))


def save_prior(prior: Prior, target: IO[bytes]) -> None:
    """Write what :func:`read_prior` reads; axes in half precision, as nothing hangs on their fourth digit."""
    population = prior.population
    arrays: dict[str, Any] = {
        "n_songs": np.float32(population.n_songs),
        "mean": population.mean.astype(np.float32),
        "covariance": population.covariance.astype(np.float32),
    }
    for name in _SPREADS:
        spread: Spread = getattr(prior, name)
        arrays[f"{name}_axes"] = spread.axes.astype(np.float16)
        arrays[f"{name}_between"] = spread.between.astype(np.float32)
        arrays[f"{name}_within"] = spread.within.astype(np.float32)
    np.savez_compressed(target, **arrays)


def read_prior(source: IO[bytes]) -> Prior:
    """What :func:`save_prior` wrote."""
    with np.load(source) as kept:
        arrays = {name: kept[name].astype(np.float64) for name in kept.files}
    weight = float(arrays["n_songs"])
    spreads = [
        Spread(weight, *(arrays[f"{name}_{what}"] for what in ("axes", "between", "within")))
        for name in _SPREADS
    ]
    return Prior(Population(weight, arrays["mean"], arrays["covariance"]), *spreads)


@lru_cache(maxsize=1)
def load_prior() -> Prior:
    """The one that comes with the program, of :mod:`experiments.sound_prior`."""
    with files("musicsim.gaussians").joinpath("prior.npz").open("rb") as stream:
        return read_prior(stream)
