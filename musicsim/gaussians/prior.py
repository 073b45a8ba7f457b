"""What is known of music before a library's own songs are: for libraries of few songs."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import IO

import numpy as np

from musicsim._arrays import Float64Array
from musicsim.gaussians.axes import Spread, principal_axes, within_covariance
from musicsim.gaussians.embedding import GaussianEmbedding, Population
from musicsim.gaussians.songs import SongGaussians

__all__ = ["Prior", "fit_embedding", "learn_prior", "load_prior", "read_prior", "save_prior"]


@dataclass(frozen=True)
class Prior:
    """The population of the frames of songs, and how their vectors vary."""

    population: Population
    spread: Spread


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
    whole = SongGaussians.concatenate([parts.merged() for parts in songs])
    embedding = GaussianEmbedding(prior=prior).fit(whole)
    which = np.repeat(np.arange(len(songs)), [len(parts) for parts in songs])
    return embedding, within_covariance(embedding.transform(SongGaussians.concatenate(songs)), which)


def learn_prior(songs: Sequence[SongGaussians], n_songs: float, variance: float = 0.95) -> Prior:
    """What a collection says of music, to count as so many songs where it is joined with others.

    Parameters
    ----------
    songs : sequence of SongGaussians
        The parts of each.
    n_songs : float
    variance : float
        Share of the variance of songs that is kept.
    """
    embedding, within = fit_embedding(songs)
    whole = SongGaussians.concatenate([parts.merged() for parts in songs])
    between, axes = principal_axes(np.cov(embedding.transform(whole).T, bias=True), variance)
    known = embedding.population_
    return Prior(
        Population(n_songs, known.mean, known.covariance),
        Spread(n_songs, axes, between, axes @ within @ axes.T),
    )


def save_prior(prior: Prior, target: IO[bytes]) -> None:
    """Write what :func:`read_prior` reads; axes in half precision, as nothing hangs on their fourth digit."""
    population, spread = prior.population, prior.spread
    np.savez_compressed(
        target,
        n_songs=np.float32(population.n_songs),
        mean=population.mean.astype(np.float32),
        covariance=population.covariance.astype(np.float32),
        axes=spread.axes.astype(np.float16),
        between=spread.between.astype(np.float32),
        within=spread.within.astype(np.float32),
    )


def read_prior(source: IO[bytes]) -> Prior:
    """What :func:`save_prior` wrote."""
    with np.load(source) as kept:
        arrays = {name: kept[name].astype(np.float64) for name in kept.files}
    weight = float(arrays["n_songs"])
    return Prior(
        Population(weight, arrays["mean"], arrays["covariance"]),
        Spread(weight, arrays["axes"], arrays["between"], arrays["within"]),
    )


@lru_cache(maxsize=1)
def load_prior() -> Prior:
    """The one that comes with the program, of :mod:`experiments.sound_prior`."""
    with files("musicsim.gaussians").joinpath("prior.npz").open("rb") as stream:
        return read_prior(stream)
