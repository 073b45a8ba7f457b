"""Imported vectors as a representation for models."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from musicsim._arrays import Float64Array
from musicsim.errors import LibraryError, ModelError
from musicsim.explorer.models import encoders
from musicsim.explorer.models.representations import Representation
from musicsim.explorer.models.schema import AboutModel
from musicsim.extensions.embeddings.store import EmbeddingStore
from musicsim.library import Library, Song
from musicsim.library.stores.models import ModelRecord
from musicsim.progress import Progress

OWN = "own"  # name of the representation for imported vectors


@dataclass(frozen=True, slots=True)
class VectorEncoder(encoders.Encoder):
    stored: ClassVar = {"key": encoders.StoredArray((), np.str_), "n_dimensions": encoders.StoredArray((), np.int64, 1)}

    key: str  # key of the vectors in EmbeddingStore
    n_dimensions: int

    @classmethod
    def fit(
        cls, library: Library, songs: Sequence[Song], settings: encoders.EncoderSettings, _tell: Progress, /
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

    def reader(self, library: Library, _tell: Progress, /) -> encoders.ReadFeatures:
        store, width = EmbeddingStore(library), self.n_features
        with suppress(LibraryError):  # the model is from a different library, or the vectors are damaged
            vectors, matched = store.vectors(self.key), store.match(self.key)
            if vectors.shape[1] == width:  # otherwise, the model file was tampered with
                return encoders.make_row_reader(matched.song_ids, lambda at: vectors[matched.rows[at]], width)
        nothing = np.empty((0, width), np.float32)
        return encoders.make_row_reader(np.empty(0, np.int64), lambda at: nothing[at], width)

    @property
    def n_features(self) -> int:
        return self.n_dimensions

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


def _unit(features: encoders.Floats, _weights: Float64Array | None) -> encoders.Floats:
    X = np.asarray(features, dtype=np.float64)  # float64, because squares may overflow in float32
    return (X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), np.finfo(float).tiny)).astype(np.float32)


def _describe(library: Library, record: ModelRecord) -> str:
    n_songs = len(library.models.song_rows(record.id).rows)
    text = f"{n_songs:,} of {len(library):,} songs have a vector"
    try:
        about = EmbeddingStore(library).describe(record.settings["vectors"])
    except LibraryError as error:
        return f"{text}; {error}"
    text += f"; {about.n_rows:,} vectors with {about.n_dimensions:,} dimensions were imported"
    return f"{text} and are compared by cosine similarity. {about.note}".rstrip()


REPRESENTATIONS = {OWN: Representation("your own vectors", VectorEncoder, _unit, needs_data=True, describe=_describe)}
