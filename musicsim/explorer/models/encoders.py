"""Encoders, which compute the features that a model stores per song.

If a song lacks the data that an encoder needs, its features are all 0 or NaN, and it has no vector under the model.
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
from musicsim.audio import FLUCTUATION_SIZE, HARMONY_SIZE, N_SHAPE, RHYTHM_SIZE, SongFrames
from musicsim.audio.features import N_MFCC
from musicsim.errors import FeatureVersionError, ModelError
from musicsim.explorer.models.schema import AboutModel
from musicsim.library import Library, Song
from musicsim.library.stores.song_gaussians import part_gaussians, shape_gaussian
from musicsim.progress import Progress

Floats: TypeAlias = Float32Array
Frames: TypeAlias = SongFrames | Floats | Iterator[Floats]
"""Stored frames of a song, or only its delta-MFCCs (n, 39), as one array or in blocks."""
Arrays: TypeAlias = dict[str, npt.NDArray[Any]]
ReadFeatures: TypeAlias = Callable[[Sequence[Song]], Floats]
"""Reads the features of songs from one library, float32 (n_songs, n_features)."""

# Numbers in vectors are usually around 1. Products of a few numbers as large as MAX_NUMBER do not overflow in float32,
# and they stay below the padding value of the kernels' blocks.
MAX_NUMBER = 1e9  # largest absolute value of a stored floating-point number
MIN_SCALE = 1e-12  # smallest stored divisor
_N_COLUMNS = 3 * N_MFCC  # number of columns in a frame
_SEED = 0
_TRAINING_FRAMES = 200_000  # number of frames to learn codewords from: 31 MB, 195 frames for each of 1,024 codewords
_MIN_FRAMES_PER_SONG = 50  # minimum frames per song; with more than 4,000 songs, a seeded sample of songs is used
_SONGS_FOR_MIXTURES = 1_000
_MAX_TAGS = 300
MIN_SONGS_A_LABEL = 2  # minimum number of songs that share a tag or a word
_TIMBRE_SIZE = gaussians.embedding_size(_N_COLUMNS)
_SHAPE_START = _TIMBRE_SIZE + FLUCTUATION_SIZE
TIMBRE: slice = slice(_TIMBRE_SIZE)
FLUCTUATION: slice = slice(_TIMBRE_SIZE, _SHAPE_START)
SHAPE: slice = slice(_SHAPE_START, None)
"""Columns of the features of :class:`SoundEncoder`: timbre, fluctuation and spectral shape."""
SOUND_SIZES = (_SHAPE_START, _SHAPE_START + gaussians.embedding_size(N_SHAPE))
"""Number of features of Sound before feature version 4, without spectral shape, and of this version."""


@dataclass(frozen=True, slots=True)
class StoredArray:
    """Required shape, type and minimum of a stored array."""

    # equal names mean equal lengths: `f` features, `m` mapped features, `a` axes, `d` dimensions of a vector
    shape: tuple[int | str, ...]
    dtype: type = np.float64
    least: float = -MAX_NUMBER


def _stored_population(prefix: str, n_columns: int) -> dict[str, StoredArray]:
    return {
        f"{prefix}_mean": StoredArray((n_columns,)),
        f"{prefix}_covariance": StoredArray((n_columns, n_columns)),
        f"{prefix}_songs": StoredArray((), least=0.0),
    }


class StoredModel(Protocol):
    """A stored model that is being validated; the headers of its encoder's arrays have already been checked."""

    lengths: dict[str, int]  # lengths, keyed by the names in StoredArray

    def has(self, arrays: Mapping[str, StoredArray]) -> bool:
        """Return whether the file has any of these arrays."""

    def value(self, name: str) -> npt.NDArray[Any]: ...
    def n_dimensions_of_part(self, prefix: str, about: AboutModel) -> int:
        """Check the arrays of a part of this model, and return the number of dimensions of its vectors."""


class EncoderPart(Protocol):
    """Interface of a model that is part of an encoder."""

    @property
    def encoder_(self) -> Encoder: ...
    @property
    def n_dimensions(self) -> int: ...
    def features(self, list_of_frames: Iterable[Frames], /) -> Floats: ...
    def vectors(self, features: Floats, /) -> Floats: ...
    def describe(self) -> AboutModel: ...
    def arrays(self) -> Arrays: ...


LoadPart: TypeAlias = Callable[[AboutModel, Arrays], EncoderPart]


@dataclass(frozen=True, slots=True)
class EncoderSettings:
    """Settings for fitting an encoder on a library."""

    representation: str = "ppk"
    # for codewords
    n_codewords: int = 1024
    tau: int = 4
    # for imported data
    vectors: str = ""  # key of the data
    label: str = ""  # name of the data


class Encoder(Protocol):
    """Computes the features that a model compares; stored with the model.

    `stored` maps the names of the :meth:`arrays` to their requirements, which are checked before a file is read. The
    files of older versions lack all of the `added` arrays.
    """

    stored: ClassVar[Mapping[str, StoredArray]]
    added: ClassVar[Mapping[str, StoredArray]] = {}

    @property
    @abstractmethod
    def n_features(self) -> int:
        """Number of columns of the features."""

    @property
    def uses_audio(self) -> bool:
        """True if at least some of the features are computed from frames."""
        return False

    @property
    def blocks(self) -> list[slice]:
        """Columns of each joined model; empty for an encoder that does not join models."""
        return []

    def own_keys(self) -> list[str]:
        """Keys of the user data that this encoder reads from the library."""
        return []

    @classmethod
    def fit(
        cls, library: Library, songs: Sequence[Song], settings: EncoderSettings, progress: Progress, /
    ) -> tuple[Sequence[Song], Self]:
        """Return the songs that have the needed data, and an encoder; raises ModelError or LibraryError."""
        raise TypeError(f"{cls.__name__} cannot be fitted on a library alone.")

    @abstractmethod
    def reader(self, library: Library, progress: Progress, /) -> ReadFeatures:
        """Do the work that is common to all songs; return a feature reader, which also accepts songs without data."""

    def encode_frames(self, list_of_frames: Iterable[Frames], /) -> Floats:
        """Compute features from frames, float32 (n_songs, n_features), if the encoder uses audio."""
        raise TypeError(f"{type(self).__name__} does not compute features from frames.")

    def from_networks(self, network_vectors: Mapping[str, Floats], /) -> Floats:
        """Return the features of a sound for which networks computed vectors, (n_features,); NaN without features."""
        return np.full(self.n_features, np.nan, np.float32)

    def find_shared_tags(self, _library: Library, _sounds: Sequence[Song | SongFrames], /) -> list[str]:
        """Return the tags that this encoder's networks predict for all of some sounds, the clearest first."""
        return []

    @abstractmethod
    def arrays(self) -> Arrays:
        """The fitted arrays, without objects that need pickle."""

    @classmethod
    @abstractmethod
    def from_arrays(cls, arrays: Arrays, about: AboutModel, load_part: LoadPart, /) -> Self:
        """Rebuild the encoder from its :meth:`arrays`."""

    @classmethod
    def n_stored_features(cls, _about: AboutModel, model: StoredModel, /) -> int:
        """Return the number of features of a stored encoder; raises ValueError if its arrays do not fit together."""
        return model.lengths["f"]


def add_prefix(prefix: str, arrays: Arrays) -> Arrays:
    """Add a prefix to the names of arrays."""
    return {prefix + name: array for name, array in arrays.items()}


def strip_prefix(prefix: str, arrays: Arrays) -> Arrays:
    """Return the arrays whose names start with a prefix, with the prefix removed."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def has_features(features: Floats) -> BoolArray:
    """Return whether each song has features, (n_songs,)."""
    return np.any(np.nan_to_num(features) != 0, axis=1)


def make_row_reader(ids: Int64Array, rows: Callable[[Any], Floats], width: int) -> ReadFeatures:
    """Return a reader that calls `rows` with the positions of songs in `ids`; other songs get NaN."""
    position_of = {song_id: position for position, song_id in enumerate(ids.tolist())}

    def read(songs: Sequence[Song]) -> Floats:
        positions = np.array([position_of.get(song.id, -1) for song in songs], dtype=np.int64)
        features = np.full((len(songs), width), np.nan, dtype=np.float32)
        features[positions >= 0] = rows(positions[positions >= 0])
        return features

    return read


class FrameEncoder(Encoder):
    """Base of encoders that need only frames, so that workers on other machines can run them."""

    uses_audio = True

    def reader(self, library: Library, _progress: Progress, /) -> ReadFeatures:
        return lambda songs: self.encode_frames(library.frame_files.frames(song.content_hash) for song in songs)


def _delta_mfcc(list_of_frames: Iterable[Frames]) -> Iterator[Floats | Iterator[Floats]]:
    return (frames.blocks() if isinstance(frames, SongFrames) else frames for frames in list_of_frames)


@dataclass(frozen=True, slots=True)
class SoundEncoder(FrameEncoder):
    """The logarithm of each song's Gaussian (one feature per pair of frame columns), its mean fluctuation, and the
    logarithm of the Gaussian of its spectral shape.

    Encoders from before feature version 4 have no `shape`, and no features of it.
    """

    stored: ClassVar = _stored_population("population", _N_COLUMNS)
    added: ClassVar = _stored_population("shape", N_SHAPE)

    timbre: gaussians.GaussianEmbedding
    shape: gaussians.GaussianEmbedding | None = None

    @property
    def n_features(self) -> int:
        return SOUND_SIZES[self.shape is not None]

    def encode_frames(self, list_of_frames: Iterable[Frames], /) -> Floats:
        """Compute features; they are NaN for frames of an older feature version that lack some of them."""
        songs = list(list_of_frames)
        features = np.full((len(songs), self.n_features), np.nan, dtype=np.float32)
        for row, song in enumerate(songs):
            assert isinstance(song, SongFrames)
            if song.fluctuation is None or (self.shape is not None and song.spectral_shape is None):
                continue
            features[row, TIMBRE] = self.timbre.transform(part_gaussians(song).merge())[0]
            features[row, FLUCTUATION] = song.mean_fluctuation
            if self.shape is not None:
                features[row, SHAPE] = self.shape.transform(shape_gaussian(song))[0]
        return features

    def arrays(self) -> Arrays:
        shape = {} if self.shape is None else _population_arrays("shape", self.shape)
        return _population_arrays("population", self.timbre) | shape

    @classmethod
    def from_arrays(cls, arrays: Arrays, _about: AboutModel, _load_part: LoadPart, /) -> Self:
        shape = _embedding_from("shape", arrays) if "shape_mean" in arrays else None
        return cls(_embedding_from("population", arrays), shape)

    @classmethod
    def n_stored_features(cls, _about: AboutModel, model: StoredModel, /) -> int:
        return SOUND_SIZES[model.has(cls.added)]


def _population_arrays(prefix: str, embedding: gaussians.GaussianEmbedding) -> Arrays:
    fitted = embedding.population_
    arrays = {"mean": fitted.mean, "covariance": fitted.covariance, "songs": np.array(fitted.n_songs, np.float64)}
    return add_prefix(f"{prefix}_", arrays)


def _embedding_from(prefix: str, arrays: Arrays) -> gaussians.GaussianEmbedding:
    n_songs, mean, covariance = (arrays[f"{prefix}_{name}"] for name in ("songs", "mean", "covariance"))
    return gaussians.GaussianEmbedding().use_population(gaussians.Population(float(n_songs), mean, covariance))


@dataclass(frozen=True, slots=True)
class CodewordEncoder(FrameEncoder):
    """Histograms of codewords, one feature per codeword."""

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
        rng = np.random.default_rng(_SEED)
        chosen = np.sort(rng.permutation(len(songs))[: _TRAINING_FRAMES // _MIN_FRAMES_PER_SONG])
        quota, sample = _TRAINING_FRAMES // len(chosen), []
        for done, i in enumerate(chosen):
            if done % 64 == 0:
                progress("learning codewords", done, len(chosen))
            frames = library.frame_files.frames(songs[i].content_hash)
            sample.append(frames.rows(np.sort(rng.permutation(len(frames))[:quota])))
        return songs, cls.fit_frames(np.concatenate(sample), settings.n_codewords, settings.tau, _SEED)

    @classmethod
    def fit_frames(cls, frames: Floats, n_codewords: int, tau: int, random_state: int | None) -> Self:
        """Learn at most `n_codewords` codewords from frames; raises ModelError for fewer than `tau` frames."""
        if len(frames) < tau:
            raise ModelError(f"tau={tau} needs at least {tau} frames, but there are {len(frames)}. Add a longer song.")
        n_codewords = max(tau, codebook.suggest_n_codewords(len(frames), maximum=n_codewords))
        return cls(codebook.Codebook(n_codewords, tau=tau, random_state=random_state).fit(frames))

    @property
    def n_features(self) -> int:
        return len(self.codebook.codewords_)

    def encode_frames(self, list_of_frames: Iterable[Frames], /) -> Floats:
        return self.codebook.transform(_delta_mfcc(list_of_frames))

    def arrays(self) -> Arrays:
        book = self.codebook
        fitted = {"codewords": book.codewords_, "counts": book.counts_}
        return fitted | {"frame_mean": book.mean_, "frame_scale": book.scale_}

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
            raise ValueError(f"tau is {about.tau}, but there are only {n_codewords} codewords")
        return n_codewords


_PREFIX = "front_"  # prefix of array names; files have used it since format 1
_MIXTURES = {
    "front_weights": StoredArray(("mixtures", "components"), np.float32, MIN_SCALE),
    "front_means": StoredArray(("mixtures", "components", _N_COLUMNS), np.float32),
    "front_variances": StoredArray(("mixtures", "components", _N_COLUMNS), np.float32, MIN_SCALE),
}


def _sample_songs(
    library: Library, songs: Sequence[Song], progress: Progress
) -> tuple[list[Song], Iterator[Iterator[Floats]]]:
    """Sample at most :data:`_SONGS_FOR_MIXTURES` songs; return them and an iterator over their frames."""
    chosen = np.random.default_rng(_SEED).permutation(len(songs))[:_SONGS_FOR_MIXTURES]
    sample = [songs[i] for i in np.sort(chosen)]

    def read_frames() -> Iterator[Iterator[Floats]]:
        for done, song in enumerate(sample):
            if done % 16 == 0:
                progress("fitting mixtures of Gaussians", done, len(sample))
            yield library.frame_files.frames(song.content_hash).blocks()

    return sample, read_frames()


@dataclass(frozen=True, slots=True)
class MixtureEncoder(FrameEncoder):
    """Mixtures of Gaussians, encoded by their similarities to landmark songs."""

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
        return add_prefix(_PREFIX, self.space.arrays())

    @classmethod
    def from_arrays(cls, arrays: Arrays, _about: AboutModel, _load_part: LoadPart, /) -> Self:
        return cls(mixtures.MixtureSpace.from_arrays(strip_prefix(_PREFIX, arrays)))


@dataclass(frozen=True, slots=True)
class SemanticEncoder(FrameEncoder):
    """Probabilities of tags predicted from sound, one feature per tag."""

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
            raise ModelError("no song in this library has a tag to learn from: import tags first.")
        sample, frames = _sample_songs(library, tagged, progress)
        lists = [[tag for tag, _ in tags[song.id]] for song in sample]
        return songs, cls(mixtures.SemanticMultinomials(random_state=_SEED).fit(frames, lists))

    @property
    def n_features(self) -> int:
        return len(self.multinomials.tags_)

    def encode_frames(self, list_of_frames: Iterable[Frames], /) -> Floats:
        return self.multinomials.transform(_delta_mfcc(list_of_frames))

    def arrays(self) -> Arrays:
        return add_prefix(_PREFIX, self.multinomials.arrays())

    @classmethod
    def from_arrays(cls, arrays: Arrays, _about: AboutModel, _load_part: LoadPart, /) -> Self:
        return cls(mixtures.SemanticMultinomials.from_arrays(strip_prefix(_PREFIX, arrays)))


@dataclass(frozen=True, slots=True)
class TagEncoder(Encoder):
    """Tags assigned by people, one feature per tag; rows have unit length."""

    stored: ClassVar = {"tags": StoredArray(("f",), np.str_)}

    tags: tuple[str, ...]

    @classmethod
    def fit(
        cls, library: Library, songs: Sequence[Song], _settings: EncoderSettings, _progress: Progress, /
    ) -> tuple[Sequence[Song], Self]:
        tags = library.tags()
        counts = Counter(tag for song in songs for tag, _ in tags.get(song.id, ()))
        shared = (tag for tag, n in counts.items() if n >= MIN_SONGS_A_LABEL)
        common = sorted(shared, key=lambda tag: (-counts[tag], tag))[:_MAX_TAGS]
        known = set(common)
        tagged = [song for song in songs if not known.isdisjoint(tag for tag, _ in tags.get(song.id, ()))]
        if not tagged:
            raise ModelError(
                "no two songs in this library share a tag assigned by people: import tags first (Library, Listening)."
            )
        return tagged, cls(tuple(common))

    def reader(self, library: Library, _progress: Progress, /) -> ReadFeatures:
        tags = library.tags()
        return lambda songs: kernels.human_tag_vectors(
            [[tag for tag, _ in tags.get(song.id, ())] for song in songs], list(self.tags)
        )

    @property
    def n_features(self) -> int:
        return len(self.tags)

    def arrays(self) -> Arrays:
        return {"tags": np.array(self.tags, dtype=np.str_)}

    @classmethod
    def from_arrays(cls, arrays: Arrays, _about: AboutModel, _load_part: LoadPart, /) -> Self:
        return cls(tuple(arrays["tags"].tolist()))


_ASPECT_SIZES = {"harmony": HARMONY_SIZE, "rhythm": RHYTHM_SIZE}


@dataclass(frozen=True, slots=True)
class AspectEncoder(Encoder):
    """Harmony or rhythm, as stored with the frames."""

    stored: ClassVar = {"aspect": StoredArray((), np.str_)}

    aspect: str  # name of the representation and of an attribute of Aspects

    @classmethod
    def fit(
        cls, library: Library, songs: Sequence[Song], settings: EncoderSettings, _progress: Progress, /
    ) -> tuple[Sequence[Song], Self]:
        stored_hashes = library.frame_files.list_stored_aspects()
        songs = [song for song in songs if song.content_hash in stored_hashes]
        if not songs:
            raise FeatureVersionError(
                f"{library.folder}: harmony and rhythm were not stored for its songs. Turn on “Store audio "
                "features” (Library > Settings; keep_frames on the command line) and add the folders again."
            )
        return songs, cls(settings.representation)

    def reader(self, library: Library, _progress: Progress, /) -> ReadFeatures:
        stored_hashes = library.frame_files.list_stored_aspects()

        def read(songs: Sequence[Song]) -> Floats:
            is_stored = [song.content_hash in stored_hashes for song in songs]
            hashes = [song.content_hash for song in songs if song.content_hash in stored_hashes]
            features = np.full((len(songs), self.n_features), np.nan, dtype=np.float32)
            features[is_stored] = getattr(library.frame_files.aspects(hashes), self.aspect)
            return features

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
            raise ValueError("its aspect does not match its representation")
        return _ASPECT_SIZES[about.representation]
