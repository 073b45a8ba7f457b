"""What a model compares: the features kept of each song, and the map after which distances are taken.

The comparison of thesis 5.4.3: codeword histograms raw, by TF-IDF or by the probability product kernel, mixtures
of Gaussians, semantic multinomials, and the tags that people gave. Beside them harmony, rhythm, the words of lyrics,
vectors that the listener brought, and several models together (:mod:`musicsim.explorer.models.joint_space`).

A song that lacks what a representation compares has features of zeros, or NaN, and no place under its model.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from musicsim.audio import HARMONY_SIZE, RHYTHM_SIZE
from musicsim.codebook import Codebook
from musicsim.explorer.models.joint_space import Sources, fill, statistics
from musicsim.kernels import (
    harmony_map,
    human_tag_vectors,
    inverse_document_frequency,
    ppk_map,
    rhythm_map,
    tfidf_map,
)
from musicsim.mixtures import MixtureSpace, SemanticMultinomials, fit_mixtures

__all__ = [
    "ASPECTS",
    "CODEWORDS",
    "COMBINED",
    "FRAMES",
    "LYRICS",
    "MODELS",
    "OFFERED",
    "OWN",
    "REPRESENTATIONS",
    "TAGS",
    "VECTORS",
    "AspectRows",
    "Frames",
    "Front",
    "LyricVocabulary",
    "OwnVectors",
    "Representation",
    "TagVocabulary",
    "features_of",
    "front_arrays",
    "front_from",
    "has_features",
    "n_features",
    "own_keys",
]

Floats: TypeAlias = npt.NDArray[np.float32]
Frames: TypeAlias = Floats | Iterator[Floats]
Arrays: TypeAlias = dict[str, npt.NDArray[Any]]

FRAMES, TAGS, ASPECTS, LYRICS, VECTORS, MODELS = "frames", "tags", "aspects", "lyrics", "vectors", "models"
"""What a front makes features of."""
OWN, COMBINED = "own", "combined"
"""Representations that are made of what the listener brought, and of other models."""
CODEWORDS = ("ppk", "histogram", "tfidf")
"""Representations whose features are histograms of codewords."""


@dataclass(frozen=True, slots=True)
class TagVocabulary:
    """A front that takes the tags that people gave: a column a tag, rows of unit length."""

    tags: tuple[str, ...]

    def features(self, tag_lists: Sequence[Sequence[str]]) -> Floats:
        """Unit rows, float32 (n_songs, n_tags); a row of zeros where no tag is known."""
        return human_tag_vectors(tag_lists, list(self.tags))


@dataclass(frozen=True, slots=True)
class LyricVocabulary:
    """A front that takes how often lyrics say words: a column a word."""

    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AspectRows:
    """A front that takes harmony or rhythm as it was kept beside the frames.

    Attributes
    ----------
    aspect : str
        An attribute of :class:`musicsim.library.stores.frames.Aspects`.
    """

    aspect: str


@dataclass(frozen=True, slots=True)
class OwnVectors:
    """A front that looks up the vectors that the listener brought.

    Attributes
    ----------
    key : str
        As of :class:`musicsim.library.embeddings.store.EmbeddingStore`.
    n_dimensions : int
    """

    key: str
    n_dimensions: int


Front: TypeAlias = (
    Codebook
    | SemanticMultinomials
    | MixtureSpace
    | TagVocabulary
    | LyricVocabulary
    | AspectRows
    | OwnVectors
    | Sources
)


@dataclass(frozen=True, slots=True)
class Representation:
    """One way to compare songs.

    Attributes
    ----------
    words : str
        What is compared, to stand in a sentence.
    front : type
        What makes the features.
    needs : FRAMES, TAGS, ASPECTS, LYRICS, VECTORS or MODELS
    map : callable of (features, weights)
        Features as their distances are taken.
    weights : callable of the features of all songs
        What the map needs to know of the collection; None for most.
    is_unit : bool
        Whether mapped features have unit length, so that distances need no scale.
    """

    words: str
    front: type
    needs: str
    map: Callable[[Floats, npt.NDArray[np.float64] | None], Floats]
    weights: Callable[[Floats], npt.NDArray[np.float64] | None]
    is_unit: bool


def _root(features: Floats, _weights: object) -> Floats:
    return ppk_map(features)


def _as_they_are(features: Floats, _weights: object) -> Floats:
    return np.asarray(features, dtype=np.float32)


def _tfidf(features: Floats, weights: npt.NDArray[np.float64] | None) -> Floats:
    assert weights is not None
    return tfidf_map(features, weights).astype(np.float32)


def _harmony(features: Floats, _weights: object) -> Floats:
    return harmony_map(features, key_invariant=True)


def _rhythm(features: Floats, _weights: object) -> Floats:
    return rhythm_map(features)


def _unit(features: Floats, _weights: object) -> Floats:
    X = np.asarray(features, dtype=np.float64)  # squares of float32 may run over
    return (X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), np.finfo(float).tiny)).astype(np.float32)


def _rarity(features: Floats) -> npt.NDArray[np.float64]:
    return inverse_document_frequency(features)


def _none(_features: Floats) -> None:
    return None


REPRESENTATIONS = {
    "ppk": Representation("codewords of its sound", Codebook, FRAMES, _root, _none, True),
    "histogram": Representation("plain counts of codewords", Codebook, FRAMES, _as_they_are, _none, False),
    "tfidf": Representation("codewords weighted by rarity", Codebook, FRAMES, _tfidf, _rarity, True),
    "gmm": Representation("mixtures of Gaussians", MixtureSpace, FRAMES, _as_they_are, _none, False),
    "semantic": Representation(
        "tags predicted from sound", SemanticMultinomials, FRAMES, _root, _none, False
    ),
    "tags": Representation("tags that people gave", TagVocabulary, TAGS, _as_they_are, _none, True),
    "harmony": Representation("harmony, in whatever key", AspectRows, ASPECTS, _harmony, _none, False),
    "rhythm": Representation("rhythm", AspectRows, ASPECTS, _rhythm, _none, False),
    "lyrics": Representation("words of its lyrics", LyricVocabulary, LYRICS, _tfidf, _rarity, True),
    OWN: Representation("vectors of your own", OwnVectors, VECTORS, _unit, _none, False),
    COMBINED: Representation("several models together", Sources, MODELS, fill, statistics, False),
}
"""By name; the first six are those of thesis 5.4.3."""
OFFERED = tuple(name for name in REPRESENTATIONS if name not in (OWN, COMBINED))
"""Those that are made of what every library has, or may have."""


def has_features(features: Floats) -> npt.NDArray[np.bool_]:
    """Which songs have something to be compared by, (n_songs,)."""
    return np.any(np.nan_to_num(features) != 0, axis=1)


def own_keys(front: Front) -> list[str]:
    """Keys of the listener's own vectors that a front looks up, itself or by one of its sources."""
    if isinstance(front, Sources):
        return sorted({key for part in front.parts for key in own_keys(part.front_)})
    return [front.key] if isinstance(front, OwnVectors) else []


def features_of(front: Front, list_of_frames: Iterable[Frames]) -> Floats:
    """Features of songs by their frames, float32 (n_songs, n_features)."""
    if isinstance(front, MixtureSpace):
        mixtures = fit_mixtures(list_of_frames, random_state=front.seed_)
        return front.transform(mixtures)
    if isinstance(front, Codebook | SemanticMultinomials):
        return front.transform(list_of_frames)
    if isinstance(front, Sources):
        return front.features_of_sound(list_of_frames)
    raise TypeError(f"{type(front).__name__} has no features of frames.")


def n_features(front: Front) -> int:
    """Columns of a front's features."""
    if isinstance(front, Codebook):
        return len(front.codewords_)
    if isinstance(front, TagVocabulary):
        return len(front.tags)
    if isinstance(front, LyricVocabulary):
        return len(front.words)
    if isinstance(front, AspectRows):
        return {"harmony": HARMONY_SIZE, "rhythm": RHYTHM_SIZE}[front.aspect]
    if isinstance(front, OwnVectors | Sources):
        return front.n_dimensions
    return len(front.tags_) if isinstance(front, SemanticMultinomials) else front.projection_.shape[1]


def front_arrays(front: Front) -> Arrays:
    """What a front is made of, for an archive without pickle."""
    if isinstance(front, Codebook):
        return {
            "codewords": front.codewords_,
            "frame_mean": front.mean_,
            "frame_scale": front.scale_,
            "counts": front.counts_,
        }
    if isinstance(front, TagVocabulary):
        return {"tags": np.array(front.tags, dtype=np.str_)}
    if isinstance(front, LyricVocabulary):
        return {"words": np.array(front.words, dtype=np.str_)}
    if isinstance(front, AspectRows):
        return {"aspect": np.array(front.aspect)}
    if isinstance(front, OwnVectors):
        return {"key": np.array(front.key), "n_dimensions": np.array(front.n_dimensions)}
    return {f"front_{name}": array for name, array in front.arrays().items()}


_SMALL: dict[type, Callable[[Arrays], Front]] = {
    TagVocabulary: lambda arrays: TagVocabulary(tuple(arrays["tags"].tolist())),
    LyricVocabulary: lambda arrays: LyricVocabulary(tuple(arrays["words"].tolist())),
    AspectRows: lambda arrays: AspectRows(str(arrays["aspect"])),
    OwnVectors: lambda arrays: OwnVectors(str(arrays["key"]), int(arrays["n_dimensions"])),
}


def front_from(kind: Representation, arrays: Arrays, *, tau: int, random_state: int | None) -> Front:
    """The front that :func:`front_arrays` took apart."""
    if kind.front is Codebook:
        book = Codebook(len(arrays["codewords"]), tau=tau, random_state=random_state)
        book.codewords_, book.counts_ = arrays["codewords"], arrays["counts"]
        book.mean_, book.scale_ = arrays["frame_mean"], arrays["frame_scale"]
        book.n_features_in_ = book.codewords_.shape[1]
        return book
    if kind.front in _SMALL:
        return _SMALL[kind.front](arrays)
    own = {name.removeprefix("front_"): array for name, array in arrays.items() if name.startswith("front_")}
    if kind.front is Sources:
        return Sources.from_arrays(own)
    return (MixtureSpace if kind.front is MixtureSpace else SemanticMultinomials).from_arrays(own)
