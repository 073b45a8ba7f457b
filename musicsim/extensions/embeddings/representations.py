"""Representations of vectors from elsewhere: imported vectors, and networks that a library keeps for all its songs.

A network describes songs that are added later, too; a learned ear joins it with the model Sound in one space. The text
network of a pair, such as CLAP, maps texts to the space of the audio network's vectors.
"""

import json
import logging
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import lru_cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from musicsim import extras
from musicsim._arrays import Float32Array, Float64Array, Int64Array
from musicsim.audio import SongFrames
from musicsim.errors import LibraryError, ModelError, NotFoundError
from musicsim.explorer import (
    USUAL_SPREAD,
    AboutModel,
    Arrays,
    Encoder,
    EncoderSettings,
    Floats,
    LoadPart,
    ReadFeatures,
    Representation,
    StoredArray,
    StoredModel,
    Weights,
    has_features,
    keep_features,
    make_row_reader,
)
from musicsim.extensions.embeddings.networks import (
    NetworkSession,
    OnnxModel,
    append_vectors,
    hash_network,
    shorten_error,
)
from musicsim.extensions.embeddings.vectors import EmbeddingStore, VectorRows
from musicsim.library import Library, ModelRecord, Song, atomic_folder, atomic_path, shorten_message
from musicsim.progress import Progress

_log = logging.getLogger(__name__)
# names of the representations: imported vectors by cosine and by Euclidean distance, and an audio network
OWN, OWN_EUCLIDEAN, EAR = "own", "own_euclidean", "ear"
_FOLDER = "embeddings"
_NETWORK, _ABOUT, _ROWS = "network.onnx", "about.json", "vectors.rows"
_TEXT, _TOKENIZER, _ABOUT_TEXT = "text.onnx", "tokenizer.json", "text.json"  # in the folder of the audio network
_MIN_DEVIATION = 1e-6  # relative to the mean of all columns; MusiCNN has channels that are silent except for rounding
# tags that two sounds share
_MIN_SONGS = 20  # in a smaller library, there is no typical prediction
_MIN_STANDING = 1.0  # standard deviations above the library's mean
_MAX_TAGS = 3
_MIN_TAGGED = 5  # songs with a tag, to check the predictions of this tag
_MAX_CHECKED = 20_000  # songs in a library whose tags are read
_MIN_RIGHT = 0.6
# texts
_PACKAGES = ("onnxruntime", "tokenizers")
_TRIAL = "calm piano"
_MAX_TOKENS = 77  # CLAP was trained on texts of this length
_ROWS_AT_ONCE = 8_192
_INTEGERS = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}
_PADDING = "<pad>"


class Distance(StrEnum):
    """How imported vectors are compared."""

    COSINE = "cosine"
    EUCLIDEAN = "euclidean"


@dataclass(frozen=True, slots=True)
class AboutNetwork:
    label: str  # name of the imported file
    front_end: str
    output: str
    every: int
    digest: str  # hash of the ONNX file
    width: int  # columns of the network's output
    tags: tuple[str, ...] = ()  # names of the last columns, which are probabilities and not compared


class Network:
    """A network in a library's folder ``embeddings``, and the vectors that it computed."""

    def __init__(self, library_folder: Path, key: str) -> None:
        # the key in an imported model can be any string, such as "../.."
        self.folder = library_folder / _FOLDER / key
        if not (key.isalnum() and (self.folder / _NETWORK).is_file()):
            raise NotFoundError("this model's network is not in this library. Add the network first.")
        try:
            facts = json.loads((self.folder / _ABOUT).read_text(encoding="utf-8"))
            self.about = AboutNetwork(**facts | {"tags": tuple(facts["tags"])})
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise LibraryError(f"the model's network is damaged ({key}/{_ABOUT}). Add the network again.") from error

    @property
    def n_dimensions(self) -> int:
        """Number of columns that are compared."""
        return self.about.width - len(self.about.tags)

    @property
    def model(self) -> OnnxModel:
        about, path = self.about, self.folder / _NETWORK
        return OnnxModel.on_patches(path, about.front_end, about.output, about.every, about.digest)

    def read_rows(self) -> VectorRows:
        """Return the vectors computed so far, with the tags in the last columns."""
        return VectorRows(self.folder / _ROWS, self.about.width)


def keep_network(library: Library, model: OnnxModel, width: int, label: str, tags: tuple[str, ...] = ()) -> str:
    """Copy a network into a library after a trial run, and return its key."""
    folder = library.folder / _FOLDER / model.key
    about = AboutNetwork(label[:120], model.front_end, model.output, model.every, model.digest, width, tags)
    if folder.is_dir():
        os.utime(folder)  # protects the folder from the next sweep
    else:
        with atomic_folder(folder) as temporary:
            shutil.copyfile(model.path, temporary / _NETWORK)
            (temporary / _ABOUT).write_text(json.dumps(asdict(about)), encoding="utf-8")
    return model.key


class LibraryEars:
    """The networks of a library, for a scan; none if onnxruntime is not installed."""

    def __init__(self, library_folder: Path) -> None:
        self._by_key: dict[str, Network] = {}
        self._rows: dict[str, VectorRows] = {}
        if find_spec("onnxruntime") is None:
            return
        for path in sorted(library_folder.glob(f"{_FOLDER}/*/{_NETWORK}")):
            with suppress(LibraryError):  # `musicsim doctor` reports damaged networks
                self._by_key[path.parent.name] = Network(library_folder, path.parent.name)

    @property
    def networks(self) -> list[OnnxModel]:
        return [network.model for network in self._by_key.values()]

    def keep(self, content_hash: str, vectors: Mapping[str, Float32Array]) -> None:
        for key in vectors.keys() & self._by_key.keys():
            rows = self._rows.setdefault(key, self._by_key[key].read_rows())
            if content_hash not in rows.row_of:
                rows.append(content_hash, vectors[key])


@dataclass(frozen=True, slots=True)
class _KeyedEncoder(Encoder):
    """An encoder whose features are rows of data that the library keeps under a key."""

    stored: ClassVar = {"key": StoredArray((), np.str_), "n_dimensions": StoredArray((), np.int64, 1)}

    key: str
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


class VectorEncoder(_KeyedEncoder):
    """Imported vectors; the key is that of :class:`EmbeddingStore`."""

    @classmethod
    def fit(
        cls, library: Library, songs: Sequence[Song], settings: EncoderSettings, _tell: Progress, /
    ) -> tuple[Sequence[Song], Self]:
        store = EmbeddingStore(library)
        used = {settings.vectors}
        for record in library.models.all(retired=True):
            used |= {record.settings.get("vectors", ""), *record.settings.get("keys", ())}
        store.sweep(used)
        matched = set(store.match(settings.vectors).song_ids.tolist())
        described = [song for song in songs if song.id in matched]
        about = store.describe(settings.vectors)
        if not described:
            problem = f"none of the {about.n_rows:,} vectors in {about.label} belongs to a song in this library"
            raise ModelError(f"{problem}. Songs are matched by id, by path, or by the hash of their file.")
        return described, cls(about.key, about.n_dimensions)

    def reader(self, library: Library, _tell: Progress, /) -> ReadFeatures:
        store, width = EmbeddingStore(library), self.n_features
        with suppress(LibraryError):  # the model is from a different library, or the vectors are damaged
            vectors, matched = store.vectors(self.key), store.match(self.key)
            if vectors.shape[1] == width:  # otherwise, the model file was tampered with
                return make_row_reader(matched.song_ids, lambda at: vectors[matched.rows[at]], width)
        nothing = np.empty((0, width), np.float32)
        return make_row_reader(np.empty(0, np.int64), lambda at: nothing[at], width)


class EarEncoder(_KeyedEncoder):
    """The vectors of an audio network; the key is that of :class:`Network`."""

    @classmethod
    def fit(
        cls, library: Library, songs: Sequence[Song], settings: EncoderSettings, progress: Progress, /
    ) -> tuple[Sequence[Song], Self]:
        encoder = cls(settings.vectors, Network(library.folder, settings.vectors).n_dimensions)
        read = encoder.reader(library, progress)
        described = [song for song in songs if has_features(read([song])).all()]
        if not described:
            raise ModelError(f"{settings.label} did not describe any song: see the messages above, or the log file.")
        return described, encoder

    def reader(self, library: Library, progress: Progress, /) -> ReadFeatures:
        """Run the network on all songs without a vector, and return a reader of the vectors."""
        try:
            network = Network(library.folder, self.key)
        except LibraryError:  # the model is from a different library, or the network is damaged
            return lambda songs: np.full((len(songs), self.n_dimensions), np.nan, np.float32)
        describe_songs(library, network, progress)
        rows = network.read_rows()

        def read(songs: Sequence[Song]) -> Floats:
            features = np.full((len(songs), self.n_dimensions), np.nan, np.float32)
            is_known = np.array([song.content_hash in rows.row_of for song in songs], dtype=bool)
            _, vectors = rows.select([song.content_hash for song in songs])
            features[is_known] = vectors[:, : self.n_dimensions]
            return features

        return read

    def from_networks(self, network_vectors: Mapping[str, Floats], /) -> Floats:
        if self.key not in network_vectors:
            return np.full(self.n_dimensions, np.nan, np.float32)
        return network_vectors[self.key][: self.n_dimensions]

    def find_shared_tags(self, library: Library, sounds: Sequence[Song | SongFrames], /) -> list[str]:
        try:
            return find_shared_tags(
                library, self.key,
                [sound.network_vectors if isinstance(sound, SongFrames) else sound.content_hash for sound in sounds],
            )  # fmt: skip
        except LibraryError:  # see :meth:`reader`
            return []


def describe_songs(library: Library, network: Network, progress: Progress) -> None:
    """Run the network on the songs that do not have a vector yet; a canceled run continues where it stopped.

    A song that the network cannot describe gets a row of NaN, unless the file could not be read, which may change.
    """
    rows = network.read_rows()
    if rows.row_of.keys() >= set(library.content_hashes()):
        return
    songs = {song.content_hash: song.path for song in library.songs()}
    try:
        for digest, error, reason in append_vectors(library, network.model, rows, songs, progress):
            _log.warning("%s", reason)
            if not isinstance(error, OSError):
                rows.append(digest, np.full(network.about.width, np.nan, np.float32))
    except LibraryError as error:  # onnxruntime is not installed
        _log.warning("%s", error)


def _fit_scale(features: Floats) -> Float64Array:
    """Return the mean of each column and the inverse of its deviation, (2, n_features); 0 for constant columns."""
    deviation = features.std(axis=0, dtype=np.float64)
    is_varied = deviation > _MIN_DEVIATION * deviation.mean()
    inverse = np.divide(1, deviation, out=np.zeros_like(deviation), where=is_varied)
    return np.stack([features.mean(axis=0, dtype=np.float64), inverse])


def _to_unit_length(features: Floats, weights: Float64Array | None) -> Floats:
    """Return rows of length 1; with weights from :func:`_fit_scale`, the columns are standardized first."""
    X = np.asarray(features, dtype=np.float64)  # float64, because squares may overflow in float32
    if weights is not None:
        X = (X - weights[0]) * weights[1]
    return (X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), np.finfo(float).tiny)).astype(np.float32)


def _scale(features: Floats, _within: object, _variance: float) -> tuple[Float64Array, Float64Array]:
    """Return the mean, and axes that only scale, so that distances between songs are usual and keep their order."""
    X = np.asarray(features, dtype=np.float64)
    spread = float(X.var(axis=0).sum())
    return X.mean(axis=0), np.eye(X.shape[1]) * (np.sqrt(USUAL_SPREAD / spread) if spread > 0 else 1.0)


def _describe_vectors(library: Library, record: ModelRecord) -> str:
    n_songs = len(library.models.song_rows(record.id).rows)
    text = f"{n_songs:,} of {len(library):,} songs have a vector"
    try:
        about = EmbeddingStore(library).describe(record.settings["vectors"])
    except LibraryError as error:
        return f"{text}; {error}"
    text += f"; {about.n_rows:,} vectors with {about.n_dimensions:,} dimensions were imported"
    is_plain = record.settings["representation"] == OWN_EUCLIDEAN
    return (
        f"{text} and are compared by {'Euclidean distance' if is_plain else 'cosine similarity'}. {about.note}".rstrip()
    )


def _describe_ear(library: Library, record: ModelRecord) -> str:
    n_songs = len(library.models.song_rows(record.id).rows)
    text = f"{n_songs:,} of {len(library):,} songs are described"
    try:
        network = Network(library.folder, record.settings["vectors"])
    except LibraryError as error:
        return f"{text}; {error}"
    about = network.about
    return (
        f"{text} by {about.label} ({network.n_dimensions:,} numbers, front end {about.front_end}, 1 in {about.every})."
    )


REPRESENTATIONS = {
    OWN: Representation(
        "your own vectors", VectorEncoder, _to_unit_length, needs_data=True, describe=_describe_vectors
    ),
    OWN_EUCLIDEAN: Representation(
        "your own vectors, by Euclidean distance", VectorEncoder, keep_features, fit_axes=_scale, needs_data=True,
        describe=_describe_vectors,
    ),
    EAR: Representation(
        "a learned ear", EarEncoder, _to_unit_length, Weights(_fit_scale, (2, "f")), needs_data=True, is_network=True,
        describe=_describe_ear,
    ),
}  # fmt: skip


def find_shared_tags(library: Library, key: str, sounds: Sequence[str | Mapping[str, Float32Array]]) -> list[str]:
    """Return the tags that a network predicts more for all of some sounds than for other songs, the clearest first.

    A sound is the hash of a song's file, or vectors keyed by network. If at least five songs in the library have a tag,
    the share of pairs that the network ranks correctly follows the tag. A pair is a song with the tag and one without
    it. Below 60%, the tag is left out. Decades are left out, because they are not audible.
    """
    network = Network(library.folder, key)
    tags = network.about.tags
    rows = network.read_rows()
    if not tags or len(rows.row_of) < _MIN_SONGS:
        return []
    all_scores = _logits(rows.last_columns(len(tags)))
    known = np.isfinite(all_scores).all(axis=1)
    scores = []
    for sound in sounds:
        if isinstance(sound, str):
            scores += [all_scores[rows.row_of[sound]]] if sound in rows.row_of else []
        else:
            scores += [_logits(sound[key][-len(tags) :])] if key in sound else []
    if len(scores) < len(sounds):
        return []
    spread = np.maximum(all_scores[known].std(axis=0), 1e-6)
    standing = (np.min(scores, axis=0) - all_scores[known].mean(axis=0)) / spread
    right = _check(library, key, library.revision) if len(library) <= _MAX_CHECKED else {}
    shared: list[str] = []
    for column in np.argsort(-standing, kind="stable").tolist():
        tag = tags[column]
        if standing[column] < _MIN_STANDING or len(shared) == _MAX_TAGS:
            break
        if not tag.endswith("0s") and right.get(tag, 1.0) >= _MIN_RIGHT:
            shared.append(f"{tag} ({right[tag]:.0%} right on your tags)" if tag in right else tag)
    return shared


@lru_cache(maxsize=2)
def _check(library: Library, key: str, _revision: int) -> dict[str, float]:
    """Return the share of pairs that a network ranks correctly for each of its tags that enough songs have."""
    network = Network(library.folder, key)
    rows = network.read_rows()
    songs = [song for song in library.songs() if song.content_hash in rows.row_of]
    scores = _logits(rows.last_columns(len(network.about.tags)))[[rows.row_of[song.content_hash] for song in songs]]
    words_of = {song_id: {tag.casefold() for tag, _ in tags} for song_id, tags in library.tags().items()}
    words = [words_of.get(song.id, set()) | {(song.genre or "").casefold()} for song in songs]
    is_known = np.isfinite(scores).all(axis=1) & np.array([any(some) for some in words], dtype=bool)
    right = {}
    for column, tag in enumerate(network.about.tags):
        has = np.array([tag in some for some in words], dtype=bool)
        one, other = scores[is_known & has, column], np.sort(scores[is_known & ~has, column])
        if min(len(one), len(other)) >= _MIN_TAGGED:
            below, not_above = (np.searchsorted(other, one, side) for side in ("left", "right"))
            right[tag] = float((below + not_above).mean() / 2 / len(other))
    return right


def _logits(probabilities: Float32Array) -> Float64Array:
    p = np.clip(np.asarray(probabilities, dtype=np.float64), 1e-6, 1 - 1e-6)
    logits: Float64Array = np.log(p / (1 - p))
    return logits


@dataclass(frozen=True, slots=True)
class TextNetwork:
    """An ONNX network that maps tokens to a vector, and the tokenizer that it was trained with."""

    path: Path
    tokenizer: Path
    digest: str  # hash of the ONNX file

    @classmethod
    def at(cls, path: Path, tokenizer: Path) -> "TextNetwork":
        """Return a network from two files; raises LibraryError if the network cannot be used."""
        return cls(path, tokenizer, hash_network(path))

    def embed(self, text: str) -> Float64Array:
        """Return the vector of a text, of length 1. Raises ModelError, or LibraryError if a package is missing."""
        return _load(self).embed(text)

    def count_dimensions(self) -> int:
        """Run the network once, and return the length of its vectors."""
        return len(self.embed(_TRIAL))

    def keep(self, folder: Path) -> None:
        """Copy the network into the folder of its audio network, in place of an earlier one."""
        (folder / _ABOUT_TEXT).unlink(missing_ok=True)  # the last file to be written says that all are there
        for name, source in ((_TEXT, self.path), (_TOKENIZER, self.tokenizer)):
            with atomic_path(folder / name) as temporary:
                shutil.copyfile(source, temporary)
        with atomic_path(folder / _ABOUT_TEXT) as temporary:
            temporary.write_text(json.dumps({"digest": self.digest}), encoding="utf-8")


class _Loaded:
    """A loaded network. Raises ModelError if the files cannot be loaded, or the inputs are not tokens."""

    def __init__(self, network: TextNetwork) -> None:
        self._session = NetworkSession(network.path, network.digest)
        self._inputs = {one.name: one for one in self._session.inputs}
        if "input_ids" not in self._inputs or not self._inputs.keys() <= {"input_ids", "attention_mask"}:
            names = shorten_message(", ".join(self._inputs) or "none")
            raise self._session.error(f"its inputs are {names}; they must be input_ids and attention_mask")
        if not all(one.type in _INTEGERS and len(one.shape) == 2 for one in self._inputs.values()):
            raise self._session.error("its inputs must be integers of shape (batch, tokens)")
        self._output = self._session.find_output()
        self._tokenizer = _read_tokenizer(network.tokenizer, self._inputs["input_ids"].shape[1])

    def embed(self, text: str) -> Float64Array:
        tokens = self._tokenizer.encode(text)
        values = {"input_ids": tokens.ids, "attention_mask": tokens.attention_mask}
        inputs = {name: np.array([values[name]], _INTEGERS[one.type]) for name, one in self._inputs.items()}
        output = self._session.run(self._output, inputs, f"{len(tokens.ids)} tokens")
        vector = np.asarray(output, dtype=np.float64)
        if vector.ndim != 2 or len(vector) != 1 or not np.isfinite(vector).all() or not vector.any():
            raise self._session.error(f"its output {self._output} must be one finite vector per text")
        return vector[0] / np.linalg.norm(vector[0])


_load = lru_cache(maxsize=1)(_Loaded)


def _read_tokenizer(path: Path, length: Any) -> Any:
    """Read a tokenizer that cuts long texts; if the network takes a fixed `length`, it also pads short ones."""
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise LibraryError(f"{path.name} needs the package tokenizers. Run: {extras.install_command('ear')}") from error
    try:
        tokenizer = Tokenizer.from_str(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise LibraryError(f"{path.name} is missing. Use the file tokenizer.json of the text network.") from error
    except Exception as error:  # the package raises plain exceptions
        problem = f"it is not a tokenizer ({shorten_error(error)}). Use the file tokenizer.json of the text network"
        raise ModelError(f"{path.name}: {problem}.") from error
    tokenizer.no_padding()
    if isinstance(length, int):
        tokenizer.enable_padding(length=length, pad_id=tokenizer.token_to_id(_PADDING) or 0, pad_token=_PADDING)
    tokenizer.enable_truncation(length if isinstance(length, int) else _MAX_TOKENS)
    return tokenizer


def rank_by_text(library: Library) -> Callable[[str], Int64Array] | None:
    """Return a function that sorts songs by their cosine to a text; None if the library has no text network.

    It is also None if a package is not installed, so that words have their other meanings only.
    """
    if not all(map(find_spec, _PACKAGES)):
        return None
    for record in sorted(library.models.all(), key=lambda record: record.created_at, reverse=True):
        network = _find_network(library, record.settings.get("vectors", ""))
        if network is not None:
            return partial(_rank_songs, library, record.id, network)
    return None


def _find_network(library: Library, key: str) -> TextNetwork | None:
    """Return the text network next to an audio network of a library."""
    try:
        folder = Network(library.folder, key).folder
        digest = str(json.loads((folder / _ABOUT_TEXT).read_text(encoding="utf-8"))["digest"])
    except (LibraryError, OSError, ValueError, TypeError, KeyError):  # there are no networks, or they are damaged
        return None
    return TextNetwork(folder / _TEXT, folder / _TOKENIZER, digest)


def _rank_songs(library: Library, model_id: str, network: TextNetwork, text: str) -> Int64Array:
    """Return the ids of all songs with a vector, the nearest first."""
    vector = network.embed(text)
    songs = library.models.features(model_id)
    cosines = np.empty(len(songs.song_ids))
    for start in range(0, len(cosines), _ROWS_AT_ONCE):
        rows = np.asarray(songs.X[start : start + _ROWS_AT_ONCE], dtype=np.float64)
        cosines[start : start + _ROWS_AT_ONCE] = rows @ vector / np.maximum(np.linalg.norm(rows, axis=1), 1e-12)
    return songs.song_ids[np.argsort(-cosines, kind="stable")]
