"""Prior knowledge about the variation between songs, for libraries with few songs."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import IO

import numpy as np

from musicsim._arrays import Float64Array
from musicsim.gaussians.axes import Spread, pool_covariance
from musicsim.gaussians.embedding import GaussianEmbedding, Population
from musicsim.gaussians.songs import SongGaussians

SPREADS = ("timbre", "fluctuation")  # fields of Prior


@dataclass(frozen=True)
class Prior:
    """Population of the frames of many songs, and the variation of the songs' timbre vectors and fluctuation."""

    population: Population
    timbre: Spread
    fluctuation: Spread


def fit_embedding(
    songs: Sequence[SongGaussians], prior: Population | None = None
) -> tuple[GaussianEmbedding, Float64Array]:
    """Fit an embedding to songs given in parts; also return the covariance of the parts' vectors within songs.

    The population of `prior` is combined with the songs.
    """
    embedding = GaussianEmbedding(prior=prior).fit(whole_songs(songs))
    which = np.repeat(np.arange(len(songs)), [len(parts) for parts in songs])
    return embedding, pool_covariance(embedding.transform(SongGaussians.concatenate(songs)), which)


def whole_songs(songs: Sequence[SongGaussians]) -> SongGaussians:
    """Merge the parts of each song."""
    return SongGaussians.concatenate([parts.merge() for parts in songs])


def read_prior(source: IO[bytes]) -> Prior:
    """Read a file written by :mod:`experiments.sound_prior`."""
    with np.load(source) as file:
        arrays = {name: file[name].astype(np.float64) for name in file.files}
    weight = float(arrays["n_songs"])
    spreads = [Spread(weight, *(arrays[f"{name}_{key}"] for key in ("axes", "between", "within"))) for name in SPREADS]
    return Prior(Population(weight, arrays["mean"], arrays["covariance"]), *spreads)


@lru_cache(maxsize=1)
def load_prior() -> Prior:
    """Return the prior shipped with musicsim, computed by :mod:`experiments.sound_prior`."""
    with files("musicsim.gaussians").joinpath("prior.npz").open("rb") as stream:
        return read_prior(stream)
