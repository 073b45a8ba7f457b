"""What a model compares: the features kept of each song, and the map after which distances are taken.

The comparison of thesis 5.4.3: codeword histograms raw, by TF-IDF or by the probability product kernel, mixtures
of Gaussians, semantic multinomials, and the tags that people gave.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from musicsim.codebook import Codebook
from musicsim.kernels import human_tag_vectors, inverse_document_frequency, ppk_map, tfidf_map
from musicsim.mixtures import MixtureSpace, SemanticMultinomials, fit_mixtures

__all__ = [
    "CODEWORDS",
    "FRAMES",
    "REPRESENTATIONS",
    "TAGS",
    "Frames",
    "Front",
    "Representation",
    "TagVocabulary",
    "features_of",
    "front_arrays",
    "front_from",
    "n_features",
]

Floats: TypeAlias = npt.NDArray[np.float32]
Frames: TypeAlias = Floats | Iterator[Floats]
Arrays: TypeAlias = dict[str, npt.NDArray[Any]]

FRAMES, TAGS = "frames", "tags"
"""What a front makes features of."""
CODEWORDS = ("ppk", "histogram", "tfidf")
"""Representations whose features are histograms of codewords."""


@dataclass(frozen=True, slots=True)
class TagVocabulary:
    """A front that takes the tags that people gave: a column a tag, rows of unit length."""

    tags: tuple[str, ...]

    def features(self, tag_lists: Sequence[Sequence[str]]) -> Floats:
        """Unit rows, float32 (n_songs, n_tags); a row of zeros where no tag is known."""
        return human_tag_vectors(tag_lists, list(self.tags))


Front: TypeAlias = Codebook | SemanticMultinomials | MixtureSpace | TagVocabulary


@dataclass(frozen=True, slots=True)
class Representation:
    """One way to compare songs.

    Attributes
    ----------
    words : str
        What is compared, to stand in a sentence.
    front : type
        What makes the features.
    needs : FRAMES or TAGS
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
        "words foreseen from sound", SemanticMultinomials, FRAMES, _root, _none, False
    ),
    "tags": Representation("tags that people gave", TagVocabulary, TAGS, _as_they_are, _none, True),
}
"""By name; thesis 5.4.3."""


def features_of(front: Front, list_of_frames: Iterable[Frames]) -> Floats:
    """Features of songs by their frames, float32 (n_songs, n_features)."""
    if isinstance(front, MixtureSpace):
        mixtures = fit_mixtures(list_of_frames, random_state=front.seed_)
        return front.transform(mixtures)
    if isinstance(front, Codebook | SemanticMultinomials):
        return front.transform(list_of_frames)
    raise TypeError("a vocabulary of tags has no features of frames.")


def n_features(front: Front) -> int:
    """Columns of a front's features."""
    if isinstance(front, Codebook):
        return len(front.codewords_)
    if isinstance(front, TagVocabulary):
        return len(front.tags)
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
    return {f"front_{name}": array for name, array in front.arrays().items()}


def front_from(kind: Representation, arrays: Arrays, *, tau: int, random_state: int | None) -> Front:
    """The front that :func:`front_arrays` took apart."""
    if kind.front is Codebook:
        book = Codebook(len(arrays["codewords"]), tau=tau, random_state=random_state)
        book.codewords_, book.counts_ = arrays["codewords"], arrays["counts"]
        book.mean_, book.scale_ = arrays["frame_mean"], arrays["frame_scale"]
        book.n_features_in_ = book.codewords_.shape[1]
        return book
    if kind.front is TagVocabulary:
        return TagVocabulary(tuple(arrays["tags"].tolist()))
    own = {name.removeprefix("front_"): array for name, array in arrays.items() if name.startswith("front_")}
    return (MixtureSpace if kind.front is MixtureSpace else SemanticMultinomials).from_arrays(own)
