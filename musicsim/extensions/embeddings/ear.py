"""Learned ears: songs described by an audio network, and joined with the model Sound in one space."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from musicsim._arrays import Float64Array
from musicsim.audio import SongFrames
from musicsim.errors import LibraryError, ModelError
from musicsim.explorer.models import encoders
from musicsim.explorer.models.representations import Representation, Weights
from musicsim.explorer.models.schema import AboutModel
from musicsim.extensions.embeddings.ear_tags import find_shared_tags
from musicsim.extensions.embeddings.networks import Network
from musicsim.extensions.embeddings.onnx_models import append_vectors
from musicsim.library import Library, Song
from musicsim.library.stores.models import ModelRecord
from musicsim.progress import Progress

_log = logging.getLogger(__name__)
EAR = "ear"  # name of the representation
_MIN_DEVIATION = 1e-6  # relative to the mean of all columns; MusiCNN has channels that are silent except for rounding


@dataclass(frozen=True, slots=True)
class EarEncoder(encoders.Encoder):
    stored: ClassVar = {"key": encoders.StoredArray((), np.str_), "n_dimensions": encoders.StoredArray((), np.int64, 1)}

    key: str  # key of the network in the library
    n_dimensions: int

    @classmethod
    def fit(
        cls, library: Library, songs: Sequence[Song], settings: encoders.EncoderSettings, progress: Progress, /
    ) -> tuple[Sequence[Song], Self]:
        encoder = cls(settings.vectors, Network(library.folder, settings.vectors).n_dimensions)
        read = encoder.reader(library, progress)
        described = [song for song in songs if encoders.has_features(read([song])).all()]
        if not described:
            raise ModelError(f"{settings.label} did not describe any song: see the messages above, or the log file.")
        return described, encoder

    def reader(self, library: Library, progress: Progress, /) -> encoders.ReadFeatures:
        """Run the network on all songs without a vector, and return a reader of the vectors."""
        try:
            network = Network(library.folder, self.key)
        except LibraryError:  # the model is from a different library, or the network is damaged
            return lambda songs: np.full((len(songs), self.n_dimensions), np.nan, np.float32)
        describe_songs(library, network, progress)
        rows = network.read_rows()

        def read(songs: Sequence[Song]) -> encoders.Floats:
            features = np.full((len(songs), self.n_dimensions), np.nan, np.float32)
            is_known = np.array([song.content_hash in rows.row_of for song in songs], dtype=bool)
            _, vectors = rows.select([song.content_hash for song in songs])
            features[is_known] = vectors[:, : self.n_dimensions]
            return features

        return read

    @property
    def n_features(self) -> int:
        return self.n_dimensions

    def from_networks(self, network_vectors: Mapping[str, encoders.Floats], /) -> encoders.Floats:
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

    def own_keys(self) -> list[str]:
        return [self.key]

    def arrays(self) -> encoders.Arrays:
        return {"key": np.array(self.key), "n_dimensions": np.array(self.n_dimensions)}

    @classmethod
    def from_arrays(cls, arrays: encoders.Arrays, _about: AboutModel, _load_part: encoders.LoadPart, /) -> Self:
        return cls(str(arrays["key"]), int(arrays["n_dimensions"]))

    @classmethod
    def n_stored_features(cls, _about: AboutModel, model: encoders.StoredModel, /) -> int:
        return int(model.value("n_dimensions"))


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


def _fit_scale(features: encoders.Floats) -> Float64Array:
    """Return the mean of each column and the inverse of its deviation, (2, n_features); 0 for constant columns."""
    deviation = features.std(axis=0, dtype=np.float64)
    is_varied = deviation > _MIN_DEVIATION * deviation.mean()
    inverse = np.divide(1, deviation, out=np.zeros_like(deviation), where=is_varied)
    return np.stack([features.mean(axis=0, dtype=np.float64), inverse])


def _standardize(features: encoders.Floats, weights: Float64Array | None) -> encoders.Floats:
    assert weights is not None
    X = (np.asarray(features, dtype=np.float64) - weights[0]) * weights[1]
    return (X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), np.finfo(float).tiny)).astype(np.float32)


def _describe(library: Library, record: ModelRecord) -> str:
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
    EAR: Representation(
        "a learned ear", EarEncoder, _standardize, Weights(_fit_scale, (2, "f")), needs_data=True, is_network=True,
        describe=_describe,
    )
}  # fmt: skip
