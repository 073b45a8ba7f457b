"""Registry of representations, the kinds of features that models compare; extensions add more."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import TypeAlias

import numpy as np

from musicsim import gaussians, kernels
from musicsim._arrays import Float64Array
from musicsim.explorer.models.encoders import (
    FLUCTUATION,
    SHAPE,
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
from musicsim.library import Library, ModelRecord
from musicsim.registry import load_each

# shares of the mean squared distance of the model Sound
SHAPE_SHARE = 0.35
FLUCTUATION_SHARE = (1 - SHAPE_SHARE) / 4
TIMBRE_SHARE = (1 - SHAPE_SHARE) * 3 / 4
TIMBRE_SHRINKAGE = 0.6  # see gaussians.song_axes()
COMBINED = "combined"  # the representation that joins other models

USUAL_SPREAD = 0.5  # half the mean squared distance between songs; typical of square-root histograms
Axes: TypeAlias = tuple[Float64Array, Float64Array]  # mean of the mapped features, and a matrix whose rows are the axes


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of a feature map, fitted to the library."""

    fit: Callable[[Floats], Float64Array]  # computes weights from the features of all songs
    shape: tuple[int | str, ...]  # shape of the weights, in the same form as StoredArray.shape


@dataclass(frozen=True, slots=True)
class Representation:
    """One way to compare songs."""

    description: str  # phrase that names the features in a sentence
    encoder: type[Encoder]
    map: Callable[[Floats, Float64Array | None], Floats]  # maps features, given weights, to the space of distances
    weights: Weights | None = None
    is_unit: bool = False  # mapped features have unit length, so distances are not scaled
    n_mapped: int | None = None  # number of mapped features, if it differs from the number of features
    # fits axes to mapped features, given covariances within songs (or None) and the share of variance to keep; without
    # this function, PCA is used
    fit_axes: Callable[[Floats, Sequence[Float64Array] | None, float], Axes] | None = None
    # groups of mapped features; the parts of all songs' vectors that come from a group have the same length
    unit_groups: tuple[slice, ...] = ()
    is_built_in: bool = False  # users cannot create models of this representation
    needs_data: bool = False  # True if it needs imported data that the model's settings identify
    is_network: bool = False  # True if these data are a network, so that the settings do not depend on the songs
    describe: Callable[[Library, ModelRecord], str] | None = None  # returns a line of text for a model's card


def _take_root(features: Floats, _weights: object) -> Floats:
    return kernels.ppk_map(features)


def keep_features(features: Floats, _weights: object) -> Floats:
    """Map features to themselves."""
    return np.asarray(features, dtype=np.float32)


def _fit_rarity(features: Floats) -> Float64Array:
    return kernels.inverse_document_frequency(features)  # loads SciPy


def weight_by_rarity(features: Floats, weights: Float64Array | None) -> Floats:
    """Multiply counts by the weights of their columns, and scale rows to unit length."""
    assert weights is not None
    return kernels.tfidf_map(features, weights).astype(np.float32)


def sound_axes(features: Floats, within: Sequence[Float64Array] | None, variance: float) -> Axes:
    """Fit axes of timbre, fluctuation and spectral shape to features of a :class:`SoundEncoder`, (n_songs, n_features).

    The mean squared distance between two songs is 1. `within` contains the covariances of parts within songs, for
    timbre and for fluctuation; `variance` is the share of variance to keep.
    """
    from scipy.linalg import block_diag

    prior = gaussians.load_prior()  # stabilizes the axes of small libraries
    of_timbre, of_fluctuation = within or (None, None)
    fit = partial(gaussians.song_axes, variance=variance)
    groups = (
        (TIMBRE_SHARE, fit(features[:, TIMBRE], of_timbre, prior.timbre, shrinkage=TIMBRE_SHRINKAGE)),
        (FLUCTUATION_SHARE, fit(features[:, FLUCTUATION], of_fluctuation, prior.fluctuation)),
        (SHAPE_SHARE, fit(features[:, SHAPE], None, prior.shape)),
    )
    means = [mean for _, (mean, _) in groups]
    return np.concatenate(means), block_diag(*(np.sqrt(share) * axes for share, (_, axes) in groups))


RARITY_WEIGHTS = Weights(_fit_rarity, ("f",))  # weights of columns for :func:`weight_by_rarity`
_STATISTICS = Weights(statistics, ("1 + f", "f"))

CORE = {
    SOUND: Representation(
        "timbre, how it changes, and rhythm",
        SoundEncoder,
        keep_features,
        fit_axes=sound_axes,
        unit_groups=(TIMBRE, SHAPE),
        is_built_in=True,
    ),
    "ppk": Representation("codewords of the sound", CodewordEncoder, _take_root, is_unit=True),
    "histogram": Representation("plain counts of codewords", CodewordEncoder, keep_features),
    "tfidf": Representation(
        "codewords weighted by rarity", CodewordEncoder, weight_by_rarity, RARITY_WEIGHTS, is_unit=True
    ),
    "gmm": Representation("mixtures of Gaussians", MixtureEncoder, keep_features),
    "semantic": Representation("tags predicted from sound", SemanticEncoder, _take_root),
    "tags": Representation("tags assigned by people", TagEncoder, keep_features, is_unit=True),
    "harmony": Representation(
        "harmony, regardless of key",
        AspectEncoder,
        lambda features, _: kernels.harmony_map(features, key_invariant=True),
        n_mapped=kernels.KEYLESS_HARMONY_SIZE,
    ),
    "rhythm": Representation("rhythm", AspectEncoder, lambda features, _: kernels.rhythm_map(features)),
    COMBINED: Representation("several models together", JointEncoder, fill, _STATISTICS, is_built_in=True),
}
"""The core's representations. Thesis 5.4.3 compares six of them, from "ppk" to "tags"."""
CODEWORDS = tuple(name for name, kind in CORE.items() if kind.encoder is CodewordEncoder)
"""Representations whose features are histograms of codewords."""


@cache
def representations() -> Mapping[str, Representation]:
    """Return all representations, keyed by name: first the core's own, then those from extensions."""
    registry = dict(CORE)
    for added in load_each(lambda extension: extension.representations):
        registry |= added
    return registry


def list_addable() -> tuple[str, ...]:
    """Return the representations for which users can add a model without importing data."""
    return tuple(name for name, kind in representations().items() if not kind.is_built_in and not kind.needs_data)
