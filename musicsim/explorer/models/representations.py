"""What models can compare: for each representation its encoder, and the map after which distances are taken.

The comparison of thesis 5.4.3: codeword histograms raw, by TF-IDF or by the probability product kernel, mixtures
of Gaussians, semantic multinomials, and the tags that people gave. Beside them harmony, rhythm, the words of lyrics,
vectors that the listener brought, and several models together.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from musicsim import kernels
from musicsim.explorer.models.encoders import (
    AspectEncoder,
    CodewordEncoder,
    Encoder,
    Floats,
    LyricEncoder,
    MixtureEncoder,
    SemanticEncoder,
    TagEncoder,
    VectorEncoder,
)
from musicsim.explorer.models.joint_space import JointEncoder, fill, statistics

__all__ = ["CODEWORDS", "COMBINED", "OFFERED", "OWN", "REPRESENTATIONS", "Representation", "Weights"]

OWN, COMBINED = "own", "combined"
"""Representations that are made of what the listener brought, and of other models."""


@dataclass(frozen=True, slots=True)
class Weights:
    """What a map needs to know of the collection.

    Attributes
    ----------
    fit : callable of the features of all songs
    shape : tuple of str
        As of :class:`musicsim.explorer.models.encoders.StoredArray`.
    """

    fit: Callable[[Floats], npt.NDArray[np.float64]]
    shape: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Representation:
    """One way to compare songs.

    Attributes
    ----------
    description : str
        What is compared, to stand in a sentence.
    encoder : type of Encoder
        What makes the features.
    map : callable of (features, weights)
        Features as their distances are taken.
    is_unit : bool
        Whether mapped features have unit length, so that distances need no scale.
    n_mapped : int or None
        Columns of mapped features; None where they are those of the features.
    """

    description: str
    encoder: type[Encoder]
    map: Callable[[Floats, npt.NDArray[np.float64] | None], Floats]
    weights: Weights | None = None
    is_unit: bool = False
    n_mapped: int | None = None


def _root(features: Floats, _weights: object) -> Floats:
    return kernels.ppk_map(features)


def _as_they_are(features: Floats, _weights: object) -> Floats:
    return np.asarray(features, dtype=np.float32)


def _rarity(features: Floats) -> npt.NDArray[np.float64]:
    return kernels.inverse_document_frequency(features)


def _tfidf(features: Floats, weights: npt.NDArray[np.float64] | None) -> Floats:
    assert weights is not None
    return kernels.tfidf_map(features, weights).astype(np.float32)


def _harmony(features: Floats, _weights: object) -> Floats:
    return kernels.harmony_map(features, key_invariant=True)


def _rhythm(features: Floats, _weights: object) -> Floats:
    return kernels.rhythm_map(features)


def _unit(features: Floats, _weights: object) -> Floats:
    X = np.asarray(features, dtype=np.float64)  # squares of float32 may run over
    return (X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), np.finfo(float).tiny)).astype(np.float32)


_RARITY = Weights(_rarity, ("f",))
_STATISTICS = Weights(statistics, ("1 + f", "f"))

REPRESENTATIONS = {
    "ppk": Representation("codewords of its sound", CodewordEncoder, _root, is_unit=True),
    "histogram": Representation("plain counts of codewords", CodewordEncoder, _as_they_are),
    "tfidf": Representation("codewords weighted by rarity", CodewordEncoder, _tfidf, _RARITY, is_unit=True),
    "gmm": Representation("mixtures of Gaussians", MixtureEncoder, _as_they_are),
    "semantic": Representation("tags predicted from sound", SemanticEncoder, _root),
    "tags": Representation("tags that people gave", TagEncoder, _as_they_are, is_unit=True),
    "harmony": Representation(
        "harmony, in whatever key", AspectEncoder, _harmony, n_mapped=kernels.KEYLESS_HARMONY_SIZE
    ),
    "rhythm": Representation("rhythm", AspectEncoder, _rhythm),
    "lyrics": Representation("words of its lyrics", LyricEncoder, _tfidf, _RARITY, is_unit=True),
    OWN: Representation("vectors of your own", VectorEncoder, _unit),
    COMBINED: Representation("several models together", JointEncoder, fill, _STATISTICS),
}
"""By name; the first six are those of thesis 5.4.3."""
OFFERED = tuple(name for name in REPRESENTATIONS if name not in (OWN, COMBINED))
"""Those that are made of what every library has, or may have."""
CODEWORDS = tuple(name for name, kind in REPRESENTATIONS.items() if kind.encoder is CodewordEncoder)
"""Those whose features are histograms of codewords."""
