"""Encoders make the features that a model stores for each song.

There is one class for each thing that can be compared: one Gaussian per song and how it fluctuates, codewords, mixtures
of Gaussians, semantic multinomials, tags that people gave, harmony and rhythm. Another one is a subclass of
:class:`Encoder` and a :class:`musicsim.explorer.models.representations.Representation`, here or in an extension.

A song without the data that an encoder needs has features of zeros, or NaN, and no place under its model.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from musicsim import codebook, gaussians, kernels, mixtures
from musicsim._arrays import BoolArray, Float32Array, Int64Array
from musicsim.audio import FLUCTUATION_SIZE, HARMONY_SIZE, RHYTHM_SIZE, SongFrames
from musicsim.audio.features import N_MFCC
from musicsim.errors import FeatureVersionError, ModelError
from musicsim.explorer.models.schema import AboutModel
from musicsim.library import Library, Song
from musicsim.library.stores.song_gaussians import song_gaussian
from musicsim.progress import Progress

Floats: TypeAlias = Float32Array
Frames: TypeAlias = SongFrames | Floats | Iterator[Floats]
"""Of a song: what is kept of it, or for encoders that take no more than these its delta-MFCC, (n, 39), at once or in
blocks."""
Arrays: TypeAlias = dict[str, npt.NDArray[Any]]
ReadFeatures: TypeAlias = Callable[[Sequence[Song]], Floats]
"""Features of songs of one library, float32 (n_songs, n_features)."""

# Vectors are of the order of 1. Products of a few such numbers do not overflow in float32, and no codeword is as far
# as what fills a block of the kernels.
MAX_NUMBER = 1e9
"""The largest absolute value of a stored floating-point number."""
MIN_SCALE = 1e-12
"""The smallest stored number that is divided by."""
_N_COLUMNS = 3 * N_MFCC  # of frames
_SEED = 0
_TRAINING_FRAMES = 200_000  # 31 MB; 195 a codeword at 1,024 codewords
_MIN_FRAMES_A_SONG = 50  # beyond 4,000 songs a seeded sample of the songs is used
_SONGS_FOR_MIXTURES = 1_000
_MAX_TAGS = 300
MIN_SONGS_A_LABEL = 2
"""Songs that share a tag or a word, at least, for it to count."""
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


@dataclass(frozen=True, slots=True)
class EncoderSettings:
    """Settings with which an encoder is fitted on a library."""

    representation: str = "ppk"
    # of representations by codewords
    n_codewords: int = 1024
    tau: int = 4
    # of representations that are made of data which a user added
    vectors: str = ""  # the key of the data
    label: str = ""  # the name of the data


class Encoder(Protocol):
    """Makes the features that a model compares, and is stored with it.

    Attributes
    ----------
    stored : mapping of StoredArray by name
        The arrays of :meth:`arrays`, which a file is compared with before they are read.
    """

    stored: ClassVar[Mapping[str, StoredArray]]

    @property
    @abstractmethod
    def n_features(self) -> int:
        """Columns of the features."""

    @property
    def uses_audio(self) -> bool:
        """Whether frames of sound give features, or some of them."""
        return False

    @property
    def blocks(self) -> list[slice]:
        """Columns of each model that it joins; empty for an encoder of one kind of features."""
        return []

    def own_keys(self) -> list[str]:
        """Keys of data in the library, added by the user, that it looks up."""
        return []

    @classmethod
    def fit(
        cls, library: Library, songs: Sequence[Song], settings: EncoderSettings, progress: Progress, /
    ) -> tuple[Sequence[Song], Self]:
        """Fit an encoder on songs; returns those that have the data it needs, and the encoder.

        Raises ModelError or LibraryError if the library lacks the data.
        """
        raise TypeError(f"{cls.__name__} cannot be fitted on a library by itself.")

    @abstractmethod
    def reader(self, library: Library, progress: Progress, /) -> ReadFeatures:
        """Prepare to read features of songs, which may lack the data; work for all songs together is done here."""

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


def known_rows(ids: Int64Array, rows: Callable[[Any], Floats], width: int) -> ReadFeatures:
    """Read rows of songs by their places among `ids`; songs that are not there have NaN."""
    place = {song_id: at for at, song_id in enumerate(ids.tolist())}

    def read(songs: Sequence[Song]) -> Floats:
        at = np.array([place.get(song.id, -1) for song in songs], dtype=np.int64)
        found = np.full((len(songs), width), np.nan, dtype=np.float32)
        found[at >= 0] = rows(at[at >= 0])
        return found

    return read


# --- of sound -------------------------------------------------------------------------------------


class FrameEncoder(Encoder):
    """An encoder of the frames of songs alone, which workers on other machines can run."""

    @property
    def uses_audio(self) -> bool:
        return True

    def reader(self, library: Library, _tell: Progress, /) -> ReadFeatures:
        return lambda songs: self.encode_frames(library.frame_files.frames(song.content_hash) for song in songs)


def _delta_mfcc(list_of_frames: Iterable[Frames]) -> Iterator[Floats | Iterator[Floats]]:
    """The thesis's 39 columns of each song."""
    return (frames.blocks() if isinstance(frames, SongFrames) else frames for frames in list_of_frames)


@dataclass(frozen=True, slots=True)
class SoundEncoder(FrameEncoder):
    """The logarithm of each song's Gaussian, and behind it the mean of its patterns of fluctuation.

    Of the logarithm there is a column for each pair of columns of the frames.
    """

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
class CodewordEncoder(FrameEncoder):
    """Histograms of codewords: a column a codeword."""

    stored: ClassVar = {
        "codewords": StoredArray(("f", _N_COLUMNS)),
        "frame_mean": StoredArray((_N_COLUMNS,)),
        "frame_scale": StoredArray((_N_COLUMNS,), least=MIN_SCALE),
        "counts": StoredArray(("f",), np.int64, 0),
    }

    codebook: codebook.Codebook

    @classmethod
    def fit(
        cls, library: Library, songs: Sequence[Song], settings: EncoderSettings, progress: Progress, /
    ) -> tuple[Sequence[Song], Self]:
        frames = _sample_frames(library, songs, progress)
        return songs, cls.fit_frames(frames, settings.n_codewords, settings.tau, _SEED)

    @classmethod
    def fit_frames(cls, frames: Floats, n_codewords: int, tau: int, random_state: int | None) -> Self:
        """Learn the codewords from frames sampled evenly over songs; fewer of them for a small collection.

        Raises ModelError if there are fewer frames than `tau`.
        """
        if len(frames) < tau:
            raise ModelError(f"{len(frames)} frames are too few for a codebook with tau={tau}. Add a longer song.")
        n_codewords = max(tau, codebook.suggest_n_codewords(len(frames), maximum=n_codewords))
        return cls(codebook.Codebook(n_codewords, tau=tau, random_state=random_state).fit(frames))

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


def _sample_frames(library: Library, songs: Sequence[Song], progress: Progress) -> Floats:
    """Draw frames evenly over the songs, at most :data:`_TRAINING_FRAMES`."""
    rng = np.random.default_rng(_SEED)
    chosen = rng.permutation(len(songs))[: _TRAINING_FRAMES // _MIN_FRAMES_A_SONG]
    quota = _TRAINING_FRAMES // len(chosen)
    sample = []
    for done, i in enumerate(sorted(chosen)):
        if done % 64 == 0:
            progress("learning codewords", done, len(chosen))
        frames = library.frame_files.frames(songs[i].content_hash)
        sample.append(frames.rows(np.sort(rng.permutation(len(frames))[:quota])))
    return np.concatenate(sample)


_PREFIX = "front_"  # of names in files, since format 1
_MIXTURES = {
    "front_weights": StoredArray(("mixtures", "components"), np.float32, MIN_SCALE),
    "front_means": StoredArray(("mixtures", "components", _N_COLUMNS), np.float32),
    "front_variances": StoredArray(("mixtures", "components", _N_COLUMNS), np.float32, MIN_SCALE),
}


def _sample_songs(
    library: Library, songs: Sequence[Song], progress: Progress
) -> tuple[list[Song], Iterator[Iterator[Floats]]]:
    """Draw songs evenly, at most :data:`_SONGS_FOR_MIXTURES`; returns them and their frames."""
    chosen = np.random.default_rng(_SEED).permutation(len(songs))[:_SONGS_FOR_MIXTURES]
    some = [songs[i] for i in np.sort(chosen)]

    def frames() -> Iterator[Iterator[Floats]]:
        for done, song in enumerate(some):
            if done % 16 == 0:
                progress("fitting mixtures of Gaussians", done, len(some))
            yield library.frame_files.blocks(song.content_hash)

    return some, frames()


@dataclass(frozen=True, slots=True)
class MixtureEncoder(FrameEncoder):
    """Mixtures of Gaussians, by their likeness to landmarks."""

    stored: ClassVar = {
        **_MIXTURES,
        "front_projection": StoredArray(("mixtures", "f")),
        "front_gamma": StoredArray((), least=MIN_SCALE),
        "front_seed": StoredArray((), np.int64, 0),
    }

    space: mixtures.MixtureSpace

    @classmethod
    def fit(
        cls, library: Library, songs: Sequence[Song], _settings: EncoderSettings, progress: Progress, /
    ) -> tuple[Sequence[Song], Self]:
        _, frames = _sample_songs(library, songs, progress)
        fitted = mixtures.fit_mixtures(frames, random_state=_SEED)
        return songs, cls(mixtures.MixtureSpace(random_state=_SEED).fit(fitted))

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
class SemanticEncoder(FrameEncoder):
    """Probabilities of tags by the sound: a column a tag."""

    stored: ClassVar = {
        **_MIXTURES,
        "front_mean": StoredArray((_N_COLUMNS,)),
        "front_scale": StoredArray((_N_COLUMNS,), least=MIN_SCALE),
        "front_tags": StoredArray(("f",), np.str_),
    }

    multinomials: mixtures.SemanticMultinomials

    @classmethod
    def fit(
        cls, library: Library, songs: Sequence[Song], _settings: EncoderSettings, progress: Progress, /
    ) -> tuple[Sequence[Song], Self]:
        tags = library.tags()
        tagged = [song for song in songs if song.id in tags]
        if not tagged:
            raise ModelError("no song of this library has a tag to learn words from: import tags first.")
        some, frames = _sample_songs(library, tagged, progress)
        lists = [[tag for tag, _ in tags[song.id]] for song in some]
        return songs, cls(mixtures.SemanticMultinomials(random_state=_SEED).fit(frames, lists))

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

    stored: ClassVar = {"tags": StoredArray(("f",), np.str_)}

    tags: tuple[str, ...]

    @classmethod
    def fit(
        cls, library: Library, songs: Sequence[Song], _settings: EncoderSettings, _tell: Progress, /
    ) -> tuple[Sequence[Song], Self]:
        tags = library.tags()
        counts = Counter(tag for song in songs for tag, _ in tags.get(song.id, ()))
        common = sorted((t for t, n in counts.items() if n >= MIN_SONGS_A_LABEL), key=lambda t: (-counts[t], t))
        known = set(common[:_MAX_TAGS])
        tagged = [song for song in songs if any(tag in known for tag, _ in tags.get(song.id, ()))]
        if not tagged:
            raise ModelError(
                "no two songs of this library share a tag that people gave: import tags first (Library, Listening)."
            )
        return tagged, cls(tuple(common[:_MAX_TAGS]))

    def reader(self, library: Library, _tell: Progress, /) -> ReadFeatures:
        tags = library.tags()
        return lambda songs: self.encode_tags([[tag for tag, _ in tags.get(song.id, ())] for song in songs])

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


_ASPECT_SIZES = {"harmony": HARMONY_SIZE, "rhythm": RHYTHM_SIZE}


@dataclass(frozen=True, slots=True)
class AspectEncoder(Encoder):
    """Harmony or rhythm as it was kept beside the frames."""

    stored: ClassVar = {"aspect": StoredArray((), np.str_)}

    aspect: str  # the representation's name, and an attribute of Aspects

    @classmethod
    def fit(
        cls, library: Library, songs: Sequence[Song], settings: EncoderSettings, _tell: Progress, /
    ) -> tuple[Sequence[Song], Self]:
        kept = library.frame_files.kept_aspects()
        described = [song for song in songs if song.content_hash in kept]
        if not described:
            raise FeatureVersionError(
                f"{library.folder}: harmony and rhythm of its songs were not stored. Turn on “Store audio "
                "features” (Library > Settings; keep_frames on the command line) and add the folders again."
            )
        return described, cls(settings.representation)

    def reader(self, library: Library, _tell: Progress, /) -> ReadFeatures:
        kept = library.frame_files.kept_aspects()

        def read(songs: Sequence[Song]) -> Floats:
            has_one = [song.content_hash in kept for song in songs]
            hashes = [song.content_hash for song, has in zip(songs, has_one, strict=True) if has]
            values: Floats = getattr(library.frame_files.aspects(hashes), self.aspect)
            rows = np.full((len(songs), values.shape[1]), np.nan, dtype=np.float32)
            rows[has_one] = values
            return rows

        return read

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
