"""Prior knowledge about the variation between songs, for libraries with few songs."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import IO

import numpy as np

from musicsim._arrays import Float64Array
from musicsim._checks import check_type
from musicsim.gaussians.axes import Spread, pool_covariance
from musicsim.gaussians.embedding import GaussianEmbedding, Population
from musicsim.gaussians.songs import SongGaussians

# fields of Prior
POPULATIONS = ("frames", "spectra")
SPREADS = ("timbre", "fluctuation", "shape")


@dataclass(frozen=True)
class Prior:
    """Populations of the frames and spectra of many songs, and the variation of the songs in each part of Sound.

    Examples
    --------
    >>> from musicsim.gaussians import load_prior
    >>> prior = load_prior()
    >>> prior.frames.mean.shape, prior.timbre.axes.shape[1]  # 39 columns of frames, and the vector of their Gaussian
    ((39,), 820)
    """

    frames: Population
    spectra: Population
    timbre: Spread
    fluctuation: Spread
    shape: Spread


def fit_embedding(
    songs: Sequence[SongGaussians], prior: Population | None = None
) -> tuple[GaussianEmbedding, Float64Array]:
    """Fit an embedding to songs given in parts; also return the covariance of the parts' vectors within songs.

    The population of `prior` is combined with the songs.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.gaussians import fit_embedding, fit_parts
    >>> rng = np.random.default_rng(0)
    >>> songs = [fit_parts(rng.normal(mean, 1, (400, 3)), 100) for mean in range(6)]  # four parts each
    >>> embedding, within = fit_embedding(songs)
    >>> distance = np.linalg.norm(embedding.transform(songs[0].merge()) - embedding.transform(songs[5].merge()))
    >>> bool(distance > 5 * np.sqrt(np.trace(within)))  # these songs differ more than the parts of a song
    True
    """
    embedding = GaussianEmbedding(prior=prior).fit(whole_songs(songs))
    which = np.repeat(np.arange(len(songs)), [len(parts) for parts in songs])
    return embedding, pool_covariance(embedding.transform(SongGaussians.concatenate(songs)), which)


def whole_songs(songs: Sequence[SongGaussians]) -> SongGaussians:
    """Merge the parts of each song."""
    for song, parts in enumerate(songs):
        check_type(f"songs[{song}]", parts, SongGaussians, "fit_parts computes from frames")
    return SongGaussians.concatenate([parts.merge() for parts in songs])


def read_prior(source: IO[bytes]) -> Prior:
    """Read a file written by :mod:`experiments.sound_prior`.

    Examples
    --------
    >>> from importlib.resources import files
    >>> from musicsim.gaussians import read_prior
    >>> with files("musicsim.gaussians").joinpath("prior.npz").open("rb") as stream:
    ...     prior = read_prior(stream)
    ...
    >>> prior.frames.covariance.shape
    (39, 39)
    """
    with np.load(source) as file:
        arrays = {name: file[name].astype(np.float64) for name in file.files}
    weight = float(arrays["n_songs"])
    frames, spectra = (Population(weight, arrays[f"{name}_mean"], arrays[f"{name}_covariance"]) for name in POPULATIONS)
    timbre, fluctuation, shape = (
        Spread(
            weight,
            arrays[f"{name}_mean"],
            arrays[f"{name}_axes"],
            arrays[f"{name}_between"],
            arrays.get(f"{name}_within"),
        )
        for name in SPREADS
    )
    return Prior(frames, spectra, timbre, fluctuation, shape)


@lru_cache(maxsize=1)
def load_prior() -> Prior:
    """Return the prior shipped with musicsim, computed by :mod:`experiments.sound_prior`.

    Examples
    --------
    >>> from musicsim.gaussians import GaussianEmbedding, load_prior
    >>> embedding = GaussianEmbedding().use_population(load_prior().frames)  # needs no songs
    >>> embedding.whitening_.shape
    (39, 39)
    """
    with files("musicsim.gaussians").joinpath("prior.npz").open("rb") as stream:
        return read_prior(stream)
