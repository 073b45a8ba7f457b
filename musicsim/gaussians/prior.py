"""What is known of music before a library's own songs are: for libraries of few songs."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import IO

import numpy as np

from musicsim._arrays import Float64Array
from musicsim.gaussians.axes import Spread, within_covariance
from musicsim.gaussians.embedding import GaussianEmbedding, Population
from musicsim.gaussians.songs import SongGaussians

SPREADS = ("timbre", "fluctuation")  # fields of Prior


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
    embedding = GaussianEmbedding(prior=prior).fit(whole_songs(songs))
    which = np.repeat(np.arange(len(songs)), [len(parts) for parts in songs])
    return embedding, within_covariance(embedding.transform(SongGaussians.concatenate(songs)), which)


def whole_songs(songs: Sequence[SongGaussians]) -> SongGaussians:
    """Songs that are given in parts."""
    return SongGaussians.concatenate([parts.merged() for parts in songs])


def read_prior(source: IO[bytes]) -> Prior:
    """What is said in a file, as :mod:`experiments.sound_prior` writes it."""
    with np.load(source) as kept:
        arrays = {name: kept[name].astype(np.float64) for name in kept.files}
    weight = float(arrays["n_songs"])
    spreads = [
        Spread(weight, *(arrays[f"{name}_{what}"] for what in ("axes", "between", "within"))) for name in SPREADS
    ]
    return Prior(Population(weight, arrays["mean"], arrays["covariance"]), *spreads)


@lru_cache(maxsize=1)
def load_prior() -> Prior:
    """The one that comes with the program, of :mod:`experiments.sound_prior`."""
    with files("musicsim.gaussians").joinpath("prior.npz").open("rb") as stream:
        return read_prior(stream)
