"""The registry of representations: everything that models can compare.

A library is searched by one Gaussian per song unless somebody chooses otherwise (docs/sound.md). Then there is the
comparison of thesis 5.4.3: codeword histograms raw, by TF-IDF or by the probability product kernel, mixtures of
Gaussians, semantic multinomials, and the tags that people gave. Harmony, rhythm, and several models together follow.

Extensions add others by the hook ``representations``: a mapping of :class:`Representation` by name. A model whose
representation is not installed raises ModelError when it is loaded.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import numpy as np

from musicsim import gaussians, kernels
from musicsim._arrays import Float64Array
from musicsim.explorer.models.encoders import (
    FLUCTUATION,
    TIMBRE,
    AspectEncoder,
    CodewordEncoder,
    Encoder,
    Floats,
    MixtureEncoder,
    SemanticEncoder,
    SoundEncoder,
    TagEncoder,
)
from musicsim.explorer.models.joint_space import JointEncoder, fill, statistics
from musicsim.explorer.models.schema import SOUND
from musicsim.hooks import load_hooks
from musicsim.library import Library
from musicsim.library.stores.models import ModelRecord

FLUCTUATION_SHARE = 1 / 4
"""Of the squared distances of Sound."""
COMBINED = "combined"
"""The representation that is made of other models."""

Axes: TypeAlias = tuple[Float64Array, Float64Array]
"""The mean of mapped features, and rows that they are multiplied by."""


@dataclass(frozen=True, slots=True)
class Weights:
    """What a map needs to know of the collection."""

    fit: Callable[[Floats], Float64Array]  # callable of the features of all songs
    shape: tuple[str, ...]  # as of StoredArray


@dataclass(frozen=True, slots=True)
class Representation:
    """One way to compare songs."""

    description: str  # what is compared, to stand in a sentence
    encoder: type[Encoder]  # what makes the features
    # callable of (features, weights): features as their distances are taken
    map: Callable[[Floats, Float64Array | None], Floats]
    weights: Weights | None = None
    is_unit: bool = False  # whether mapped features have unit length, so that distances need no scale
    n_mapped: int | None = None  # columns of mapped features; None where they are those of the features
    # callable of (mapped features, covariances within songs or None, share of the variance), or None: axes of
    # its own, with their scale; None for principal axes
    fit_axes: Callable[[Floats, Sequence[Float64Array] | None, float], Axes] | None = None
    is_built_in: bool = False  # whether only the program itself makes such models
    needs_data: bool = False  # whether it is made of data that a user added, which the settings of a model name
    describe: Callable[[Library, ModelRecord], str] | None = None  # a line about a model for its card


def _root(features: Floats, _weights: object) -> Floats:
    return kernels.ppk_map(features)


def _as_they_are(features: Floats, _weights: object) -> Floats:
    return np.asarray(features, dtype=np.float32)


def _rarity(features: Floats) -> Float64Array:
    return kernels.inverse_document_frequency(features)  # loads SciPy


def weight_by_rarity(features: Floats, weights: Float64Array | None) -> Floats:
    """Multiply counts by the weights of their columns, and scale the rows to unit length."""
    assert weights is not None
    return kernels.tfidf_map(features, weights).astype(np.float32)


def _harmony(features: Floats, _weights: object) -> Floats:
    return kernels.harmony_map(features, key_invariant=True)


def _rhythm(features: Floats, _weights: object) -> Floats:
    return kernels.rhythm_map(features)


def sound_axes(features: Floats, within: Sequence[Float64Array] | None, variance: float) -> Axes:
    """Axes of timbre, and beside them those of fluctuation; the mean squared distance of two songs is 1.

    Of the features of a :class:`SoundEncoder`, (n_songs, n_features), how parts of songs vary about their songs, in
    timbre and in fluctuation, where that is known, and the share of the variance that is kept.
    """
    from scipy.linalg import block_diag

    prior = gaussians.load_prior()  # what the program knows of music, for songs that may be few
    timbre, fluctuation = (
        gaussians.song_axes(features[:, columns], of_parts, spread, variance=variance)
        for columns, of_parts, spread in zip(
            (TIMBRE, FLUCTUATION), within or (None, None), (prior.timbre, prior.fluctuation), strict=True
        )
    )
    share = np.sqrt([1 - FLUCTUATION_SHARE, FLUCTUATION_SHARE])
    return np.concatenate([timbre[0], fluctuation[0]]), block_diag(share[0] * timbre[1], share[1] * fluctuation[1])


RARITY = Weights(_rarity, ("f",))
"""Weights of columns for :func:`weight_by_rarity`."""
_STATISTICS = Weights(statistics, ("1 + f", "f"))

_CORE = {
    SOUND: Representation(
        "timbre, how it changes, and rhythm", SoundEncoder, _as_they_are, fit_axes=sound_axes, is_built_in=True
    ),
    "ppk": Representation("codewords of its sound", CodewordEncoder, _root, is_unit=True),
    "histogram": Representation("plain counts of codewords", CodewordEncoder, _as_they_are),
    "tfidf": Representation("codewords weighted by rarity", CodewordEncoder, weight_by_rarity, RARITY, is_unit=True),
    "gmm": Representation("mixtures of Gaussians", MixtureEncoder, _as_they_are),
    "semantic": Representation("tags predicted from sound", SemanticEncoder, _root),
    "tags": Representation("tags that people gave", TagEncoder, _as_they_are, is_unit=True),
    "harmony": Representation(
        "harmony, in whatever key", AspectEncoder, _harmony, n_mapped=kernels.KEYLESS_HARMONY_SIZE
    ),
    "rhythm": Representation("rhythm", AspectEncoder, _rhythm),
    COMBINED: Representation("several models together", JointEncoder, fill, _STATISTICS, is_built_in=True),
}
"""The six from "ppk" on are those of thesis 5.4.3."""
CODEWORDS = tuple(name for name, kind in _CORE.items() if kind.encoder is CodewordEncoder)
"""Names of representations whose features are histograms of codewords."""


@cache
def representations() -> Mapping[str, Representation]:
    """All representations by name: those of the core, then those of extensions."""
    found = dict(_CORE)
    for added in load_hooks("representations"):
        found |= added
    return found


def offered() -> tuple[str, ...]:
    """Names of the representations that a library may have next to its built-in models, without other data."""
    return tuple(name for name, kind in representations().items() if not kind.is_built_in and not kind.needs_data)
