"""Factors, in each of which songs can be compared alone: timbre, rhythm, harmony, and joined models.

The squared distances in timbre and rhythm add up to those in Sound. The other factors are not in Sound: harmony in any
key, if it is stored, and each model that the active model joins with Sound, such as a learned ear.
"""

from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache, partial

import numpy as np

from musicsim._arrays import BoolArray, Float32Array, Float64Array, Int64Array
from musicsim.errors import ModelError, NotFoundError
from musicsim.explorer.models.encoders import FLUCTUATION
from musicsim.explorer.models.joint_space import JointEncoder
from musicsim.explorer.models.representations import representations
from musicsim.explorer.models.schema import SOUND
from musicsim.explorer.snapshot.model_rows import ModelRows
from musicsim.explorer.snapshot.snapshot import Snapshot, take_snapshot
from musicsim.kernels.histograms import KEYLESS_HARMONY_SIZE
from musicsim.library import Library
from musicsim.places import places_among

TIMBRE, RHYTHM, HARMONY = "timbre", "rhythm", "harmony"
_SAMPLE = 300  # number of songs whose pairs represent the library

_Read = Callable[[Int64Array], Float32Array]  # rows of Sound -> vectors, NaN for songs without the factor


class Factors:
    """The vectors of a library's songs in each factor, by row of :attr:`sound`.

    Raises ModelError before Sound is fitted.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        native = snapshot.library.models.native()
        if native is None:
            raise ModelError(f"{snapshot.library.name}: the model Sound is missing. Add songs, or refit it.")
        self.sound = take_snapshot(snapshot.library, native.id)
        assert self.sound.model is not None
        is_rhythm = np.asarray(self.sound.model.axes_[:, FLUCTUATION].any(axis=1))
        self.columns: dict[str, BoolArray] = {TIMBRE: ~is_rhythm, RHYTHM: is_rhythm}
        """The columns of Sound's vectors that belong to timbre and to rhythm, (n_dimensions,)."""
        self._reads: dict[str, _Read] = {
            name: lambda rows, columns=columns: self.sound.vectors_at(rows)[:, columns]  # type: ignore[misc]
            for name, columns in self.columns.items()
        }
        self._reads |= _read_others(self.sound, snapshot)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the factors, with timbre and rhythm first."""
        return tuple(self._reads)

    def vectors(self, name: str, rows: Int64Array) -> Float32Array:
        """Return the vectors of rows in a factor, (n_rows, n_columns); NaN for songs without the factor."""
        return self._reads[name](rows)

    @cached_property
    def sampled(self) -> dict[str, Float64Array]:
        """The sorted squared distances between all pairs of 300 random songs; pairs without the factor are left out."""
        from scipy.spatial.distance import pdist

        sample = np.random.default_rng(0).permutation(self.sound.n_indexed)[:_SAMPLE]
        found = {}
        for name in self.names:
            vectors = self.vectors(name, sample).astype(np.float64)
            found[name] = np.sort(pdist(vectors[np.isfinite(vectors).all(axis=1)], "sqeuclidean"))
        return found

    def width(self, name: str) -> float:
        """Return the mean squared distance in a factor; raise NotFoundError if it is unknown, or the same for all."""
        if name not in self.names:
            known = ", ".join(self.names)
            raise NotFoundError(f"by={name!r}: this library has no such factor. Choose one of {known}.")
        width = float(self.sampled[name].mean()) if len(self.sampled[name]) else 0.0
        if not width:
            raise NotFoundError(f"{self.sound.library.name}: too few songs differ in {name}. Add songs.")
        return width


def list_factors(snapshot: Snapshot) -> list[str]:
    """Return the names of all factors that a library can have under the snapshot's model, without reading songs."""
    return [TIMBRE, RHYTHM, HARMONY, *(name for name, _ in _joined_models(snapshot))]


def _joined_models(snapshot: Snapshot) -> Iterator[tuple[str, slice]]:
    """Yield the name and the columns of each model that the snapshot's model joins and that is a factor of its own."""
    encoder = snapshot.model.encoder_ if snapshot.model else None
    if isinstance(encoder, JointEncoder):
        for name, part, block in zip(encoder.names, encoder.parts, encoder.blocks, strict=True):
            if getattr(part, "representation", SOUND) not in (SOUND, HARMONY):
                yield name, block


def _read_others(sound: Snapshot, snapshot: Snapshot) -> dict[str, _Read]:
    """Return readers of harmony, and of the models that the active model joins with Sound."""
    library, readers = sound.library, dict[str, _Read]()
    stored = library.frame_files.list_stored_aspects()
    if stored and sound.model_rows is not None:
        readers[HARMONY] = _harmony_of(library, sound.model_rows, frozenset(stored)).read

    def read_block(block: slice, rows: Int64Array) -> Float32Array:
        features = library.models.features(snapshot.model_id)
        places = places_among(features.song_ids, sound.row_ids[rows])
        vectors = np.array(features.X[places, block], dtype=np.float32)
        vectors[places < 0] = np.nan
        return vectors

    return readers | {name: partial(read_block, block) for name, block in _joined_models(snapshot)}


class _Harmony:
    """The harmony of the rows of Sound. Each is read once, which takes 0.4 ms per song; memory: 0.4 kB per song."""

    def __init__(self, library: Library, ids: Int64Array, stored: frozenset[str]) -> None:
        self._library, self._ids, self._stored = library, ids, stored
        self._vectors = np.empty((len(ids), KEYLESS_HARMONY_SIZE), dtype=np.float32)
        self._is_read = np.zeros(len(ids), dtype=np.bool_)

    def read(self, rows: Int64Array) -> Float32Array:
        """Return the vectors of rows, NaN for songs without harmony."""
        new = np.unique(rows[~self._is_read[rows]])
        if len(new):
            songs = self._library.songs(self._ids[new].tolist(), missing=True)
            hashes = {song.id: song.content_hash for song in songs if song.content_hash in self._stored}
            is_known = np.isin(self._ids[new], list(hashes))
            harmony = self._library.frame_files.aspects([hashes[i] for i in self._ids[new[is_known]].tolist()]).harmony
            vectors = np.full((len(new), KEYLESS_HARMONY_SIZE), np.nan, dtype=np.float32)
            vectors[is_known] = representations()[HARMONY].map(harmony, None)
            self._vectors[new] = vectors  # in one step, because other threads may read the same songs
            self._is_read[new] = True
        return self._vectors[rows]


@lru_cache(maxsize=2)
def _harmony_of(library: Library, rows: ModelRows, stored: frozenset[str]) -> _Harmony:
    """Return the harmony of a model's rows; shared by snapshots, because thumbs and plays do not change it."""
    return _Harmony(library, rows.ids, stored)
