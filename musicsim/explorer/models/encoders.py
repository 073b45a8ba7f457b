"""Encoders: what makes the features that a model keeps of each song, and how they are stored.

One class for each thing that can be compared: one Gaussian per song and how it fluctuates, codewords, mixtures of
Gaussians, semantic multinomials, tags that people gave, harmony and rhythm, the words of lyrics, and vectors that the
listener brought.
Another representation is one more :class:`Encoder`, and one more row of
:data:`musicsim.explorer.models.representations.REPRESENTATIONS`.

A song that lacks what an encoder takes has features of zeros, or NaN, and no place under its model.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from musicsim import codebook, gaussians, kernels, mixtures
from musicsim._arrays import BoolArray, Float32Array
from musicsim.audio import FLUCTUATION_SIZE, HARMONY_SIZE, RHYTHM_SIZE, SongFrames
from musicsim.audio.features import N_MFCC
from musicsim.explorer.models.schema import AboutModel
from musicsim.library.stores.song_gaussians import song_gaussian

Floats: TypeAlias = Float32Array
Frames: TypeAlias = SongFrames | Floats | Iterator[Floats]
"""Of a song: what is kept of it, or for encoders that take no more than these its delta-MFCC, (n, 39), at once or in
blocks."""
Arrays: TypeAlias = dict[str, npt.NDArray[Any]]

FRAMES, TAGS, ASPECTS, LYRICS, VECTORS, MODELS = "frames", "tags", "aspects", "lyrics", "vectors", "models"
"""What an encoder makes features of."""
# Vectors are of the order of 1. Products of a few such numbers do not overflow in float32, and no codeword is as far
# as what fills a block of the kernels.
MAX_NUMBER = 1e9
"""The largest absolute value of a stored floating-point number."""
MIN_SCALE = 1e-12
"""The smallest stored number that is divided by."""
_N_COLUMNS = 3 * N_MFCC  # of frames
TIMBRE, FLUCTUATION = slice(None, -FLUCTUATION_SIZE), slice(-FLUCTUATION_SIZE, None)
"""Columns of the features of :class:`SoundEncoder`."""


# --- the protocol ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StoredArray:
    """What a stored array has to be."""

    # names stand for lengths that are equal wherever they come: `f` features, `m` columns that they are
    # mapped to, `a` axes, `r` rows of a metric, `d` dimensions of a vector
    shape: tuple[int | str, ...]
    dtype: type = np.float64
    least: float = -MAX_NUMBER  # the smallest number that it may hold


class StoredModel(Protocol):
    """A stored model while its arrays are compared with its description: those of its encoder have been."""

    @property
    def lengths(self) -> Mapping[str, int]:
        """The lengths that shapes of :class:`StoredArray` name."""

    def value(self, name: str) -> npt.NDArray[Any]:
        """One of the encoder's arrays."""

    def n_dimensions_of_part(self, prefix: str, about: AboutModel) -> int:
        """Compare the arrays of a model that this one is made of; returns how many dimensions its vectors have."""


class Part(Protocol):
    """What an encoder needs of a model that it is made of."""

    @property
    def encoder_(self) -> Encoder: ...
    @property
    def n_dimensions(self) -> int: ...
    def transform(self, list_of_frames: Iterable[Frames], /) -> Floats: ...
    def vectors(self, features: Floats, /) -> Floats: ...
    def about(self) -> AboutModel: ...
    def arrays(self) -> Arrays: ...


LoadPart: TypeAlias = Callable[[AboutModel, Arrays], Part]
"""Makes a model of its description and its arrays."""


class Encoder(Protocol):
    """Makes the features that a model compares, and is stored with it.

    Attributes
    ----------
    needs : FRAMES, TAGS, ASPECTS, LYRICS, VECTORS or MODELS
        What it makes features of.
    stored : mapping of StoredArray by name
        The arrays of :meth:`arrays`, which a file is compared with before they are read.
    """

    needs: ClassVar[str]
    stored: ClassVar[Mapping[str, StoredArray]]

    @property
    @abstractmethod
    def n_features(self) -> int:
        """Columns of the features."""

    @property
    def uses_audio(self) -> bool:
        """Whether frames of sound give features, or some of them."""
        return self.needs == FRAMES

    @property
    def blocks(self) -> list[slice]:
        """Columns of each model that it joins; empty for an encoder of one kind of features."""
        return []

    def own_keys(self) -> list[str]:
        """Keys of the listener's own vectors that it looks up."""
        return []

    def encode_frames(self, list_of_frames: Iterable[Frames], /) -> Floats:
        """Features of songs by their frames, float32 (n_songs, n_features), where it uses audio."""
        raise TypeError(f"{type(self).__name__} has no features of frames.")

    @abstractmethod
    def arrays(self) -> Arrays:
        """What it is made of, for an archive without pickle."""

    @classmethod
    @abstractmethod
    def from_arrays(cls, arrays: Arrays, about: AboutModel, load_part: LoadPart, /) -> Self:
        """The encoder that :meth:`arrays` took apart."""

    @classmethod
    def n_stored_features(cls, _about: AboutModel, model: StoredModel, /) -> int:
        """Columns of the features of a stored encoder, before it is read.

        Raises ValueError if the arrays do not fit the description.
        """
        return model.lengths["f"]


def with_prefix(prefix: str, arrays: Arrays) -> Arrays:
    """Arrays under longer names."""
    return {prefix + name: array for name, array in arrays.items()}


def without_prefix(prefix: str, arrays: Arrays) -> Arrays:
    """Those arrays whose names have a prefix, under the rest of their names."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def has_features(features: Floats) -> BoolArray:
    """Which songs have something to be compared by, (n_songs,)."""
    return np.any(np.nan_to_num(features) != 0, axis=1)


# --- of sound -------------------------------------------------------------------------------------


def _delta_mfcc(list_of_frames: Iterable[Frames]) -> Iterator[Floats | Iterator[Floats]]:
    """The thesis's 39 columns of each song."""
    return (frames.blocks() if isinstance(frames, SongFrames) else frames for frames in list_of_frames)


@dataclass(frozen=True, slots=True)
class SoundEncoder(Encoder):
    """The logarithm of each song's Gaussian, and behind it the mean of its patterns of fluctuation.

    Of the logarithm there is a column for each pair of columns of the frames.
    """

    needs = FRAMES
    stored: ClassVar = {
        "population_mean": StoredArray((_N_COLUMNS,)),
        "population_covariance": StoredArray((_N_COLUMNS, _N_COLUMNS)),
        "population_songs": StoredArray((), least=0.0),
    }

    embedding: gaussians.GaussianEmbedding

    @property
    def n_features(self) -> int:
        return gaussians.embedding_size(_N_COLUMNS) + FLUCTUATION_SIZE

    def encode_frames(self, list_of_frames: Iterable[Frames], /) -> Floats:
        """Features of songs; NaN where frames are of feature version 2."""
        songs = list(list_of_frames)
        features = np.full((len(songs), self.n_features), np.nan, dtype=np.float32)
        for row, song in enumerate(songs):
            assert isinstance(song, SongFrames), "frames alone do not say how a song fluctuates"
            if song.fluctuation is not None:
                features[row, TIMBRE] = self.embedding.transform(song_gaussian(song))[0]
                features[row, FLUCTUATION] = song.mean_fluctuation
        return features

    def arrays(self) -> Arrays:
        population = self.embedding.population_
        return {
            "population_mean": population.mean,
            "population_covariance": population.covariance,
            "population_songs": np.array(population.n_songs, dtype=np.float64),
        }

    @classmethod
    def from_arrays(cls, arrays: Arrays, _about: AboutModel, _load_part: LoadPart, /) -> Self:
        n_songs, mean, covariance = (arrays[f"population_{name}"] for name in ("songs", "mean", "covariance"))
        return cls(gaussians.GaussianEmbedding().use_population(gaussians.Population(float(n_songs), mean, covariance)))

    @classmethod
    def n_stored_features(cls, _about: AboutModel, _model: StoredModel, /) -> int:
        return gaussians.embedding_size(_N_COLUMNS) + FLUCTUATION_SIZE


@dataclass(frozen=True, slots=True)
class CodewordEncoder(Encoder):
    """Histograms of codewords: a column a codeword."""

    needs = FRAMES
    stored: ClassVar = {
        "codewords": StoredArray(("f", _N_COLUMNS)),
        "frame_mean": StoredArray((_N_COLUMNS,)),
        "frame_scale": StoredArray((_N_COLUMNS,), least=MIN_SCALE),
        "counts": StoredArray(("f",), np.int64, 0),
    }

    codebook: codebook.Codebook

    @property
    def n_features(self) -> int:
        return len(self.codebook.codewords_)

    def encode_frames(self, list_of_frames: Iterable[Frames], /) -> Floats:
        return self.codebook.transform(_delta_mfcc(list_of_frames))

    def arrays(self) -> Arrays:
        book = self.codebook
        return {
            "codewords": book.codewords_,
            "frame_mean": book.mean_,
            "frame_scale": book.scale_,
            "counts": book.counts_,
        }

    @classmethod
    def from_arrays(cls, arrays: Arrays, about: AboutModel, _load_part: LoadPart, /) -> Self:
        book = codebook.Codebook(len(arrays["codewords"]), tau=about.tau, random_state=about.random_state)
        book.codewords_, book.counts_ = arrays["codewords"], arrays["counts"]
        book.mean_, book.scale_ = arrays["frame_mean"], arrays["frame_scale"]
        book.n_features_in_ = book.codewords_.shape[1]
        return cls(book)

    @classmethod
    def n_stored_features(cls, about: AboutModel, model: StoredModel, /) -> int:
        n_codewords = model.lengths["f"]
        if about.tau > n_codewords:
            raise ValueError(f"tau is {about.tau}, with {n_codewords} codewords")
        return n_codewords


_PREFIX = "front_"  # of names in files, since format 1
_MIXTURES = {
    "front_weights": StoredArray(("mixtures", "components"), np.float32, MIN_SCALE),
    "front_means": StoredArray(("mixtures", "components", _N_COLUMNS), np.float32),
    "front_variances": StoredArray(("mixtures", "components", _N_COLUMNS), np.float32, MIN_SCALE),
}


@dataclass(frozen=True, slots=True)
class MixtureEncoder(Encoder):
    """Mixtures of Gaussians, by their likeness to landmarks."""

    needs = FRAMES
    stored: ClassVar = {
        **_MIXTURES,
        "front_projection": StoredArray(("mixtures", "f")),
        "front_gamma": StoredArray((), least=MIN_SCALE),
        "front_seed": StoredArray((), np.int64, 0),
    }

    space: mixtures.MixtureSpace

    @property
    def n_features(self) -> int:
        return self.space.projection_.shape[1]

    def encode_frames(self, list_of_frames: Iterable[Frames], /) -> Floats:
        return self.space.transform(mixtures.fit_mixtures(_delta_mfcc(list_of_frames), random_state=self.space.seed_))

    def arrays(self) -> Arrays:
        return with_prefix(_PREFIX, self.space.arrays())

    @classmethod
    def from_arrays(cls, arrays: Arrays, _about: AboutModel, _load_part: LoadPart, /) -> Self:
        return cls(mixtures.MixtureSpace.from_arrays(without_prefix(_PREFIX, arrays)))


@dataclass(frozen=True, slots=True)
class SemanticEncoder(Encoder):
    """Probabilities of tags by the sound: a column a tag."""

    needs = FRAMES
    stored: ClassVar = {
        **_MIXTURES,
        "front_mean": StoredArray((_N_COLUMNS,)),
        "front_scale": StoredArray((_N_COLUMNS,), least=MIN_SCALE),
        "front_tags": StoredArray(("f",), np.str_),
    }

    multinomials: mixtures.SemanticMultinomials

    @property
    def n_features(self) -> int:
        return len(self.multinomials.tags_)

    def encode_frames(self, list_of_frames: Iterable[Frames], /) -> Floats:
        return self.multinomials.transform(_delta_mfcc(list_of_frames))

    def arrays(self) -> Arrays:
        return with_prefix(_PREFIX, self.multinomials.arrays())

    @classmethod
    def from_arrays(cls, arrays: Arrays, _about: AboutModel, _load_part: LoadPart, /) -> Self:
        return cls(mixtures.SemanticMultinomials.from_arrays(without_prefix(_PREFIX, arrays)))


# --- of what is known of songs --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TagEncoder(Encoder):
    """Tags that people gave: a column a tag, rows of unit length."""

    needs = TAGS
    stored: ClassVar = {"tags": StoredArray(("f",), np.str_)}

    tags: tuple[str, ...]

    @property
    def n_features(self) -> int:
        return len(self.tags)

    def encode_tags(self, tag_lists: Sequence[Sequence[str]]) -> Floats:
        """Unit rows, float32 (n_songs, n_tags); a row of zeros where no tag is known."""
        return kernels.human_tag_vectors(tag_lists, list(self.tags))

    def arrays(self) -> Arrays:
        return {"tags": np.array(self.tags, dtype=np.str_)}

    @classmethod
    def from_arrays(cls, arrays: Arrays, _about: AboutModel, _load_part: LoadPart, /) -> Self:
        return cls(tuple(arrays["tags"].tolist()))


@dataclass(frozen=True, slots=True)
class LyricEncoder(Encoder):
    """How often lyrics say words: a column a word."""

    needs = LYRICS
    stored: ClassVar = {"words": StoredArray(("f",), np.str_)}

    words: tuple[str, ...]

    @property
    def n_features(self) -> int:
        return len(self.words)

    def arrays(self) -> Arrays:
        return {"words": np.array(self.words, dtype=np.str_)}

    @classmethod
    def from_arrays(cls, arrays: Arrays, _about: AboutModel, _load_part: LoadPart, /) -> Self:
        return cls(tuple(arrays["words"].tolist()))


_ASPECT_SIZES = {"harmony": HARMONY_SIZE, "rhythm": RHYTHM_SIZE}


@dataclass(frozen=True, slots=True)
class AspectEncoder(Encoder):
    """Harmony or rhythm as it was kept beside the frames."""

    needs = ASPECTS
    stored: ClassVar = {"aspect": StoredArray((), np.str_)}

    aspect: str  # the representation's name, and an attribute of Aspects

    @property
    def n_features(self) -> int:
        return _ASPECT_SIZES[self.aspect]

    def arrays(self) -> Arrays:
        return {"aspect": np.array(self.aspect)}

    @classmethod
    def from_arrays(cls, arrays: Arrays, _about: AboutModel, _load_part: LoadPart, /) -> Self:
        return cls(str(arrays["aspect"]))

    @classmethod
    def n_stored_features(cls, about: AboutModel, model: StoredModel, /) -> int:
        if str(model.value("aspect")) != about.representation:
            raise ValueError("its aspect is not what it compares")
        return _ASPECT_SIZES[about.representation]


@dataclass(frozen=True, slots=True)
class VectorEncoder(Encoder):
    """Vectors that the listener brought."""

    needs = VECTORS
    stored: ClassVar = {"key": StoredArray((), np.str_), "n_dimensions": StoredArray((), np.int64, 1)}

    key: str  # as of EmbeddingStore
    n_dimensions: int

    @property
    def n_features(self) -> int:
        return self.n_dimensions

    def own_keys(self) -> list[str]:
        return [self.key]

    def arrays(self) -> Arrays:
        return {"key": np.array(self.key), "n_dimensions": np.array(self.n_dimensions)}

    @classmethod
    def from_arrays(cls, arrays: Arrays, _about: AboutModel, _load_part: LoadPart, /) -> Self:
        return cls(str(arrays["key"]), int(arrays["n_dimensions"]))

    @classmethod
    def n_stored_features(cls, _about: AboutModel, model: StoredModel, /) -> int:
        return int(model.value("n_dimensions"))
