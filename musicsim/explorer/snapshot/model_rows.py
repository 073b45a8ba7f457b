"""The rows of a model, shared by all snapshots of a library until songs with a vector are added or removed.

For a million songs, it takes seconds to compute the data that depend on the rows alone: ids, vectors, index and hub
reduction. A new title or thumb does not change them.
"""

import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from musicsim import search
from musicsim._arrays import Float32Array, Float64Array, FloatingArray, Int64Array
from musicsim.errors import OwnerOnlyError
from musicsim.explorer.models.artifacts import load_clusters, load_map
from musicsim.explorer.models.similarity_model import ModelMetrics, SimilarityModel
from musicsim.explorer.snapshot import neighbors
from musicsim.explorer.snapshot.map_view import MapView
from musicsim.explorer.snapshot.same_sound import groups
from musicsim.library import Library, ModelRecord, SongColumns, SongTable
from musicsim.library.stores.duplicates import SamePair
from musicsim.library.stores.models import SongRows
from musicsim.places import places_in_order

T = TypeVar("T")

_MAX_MODELS = 4  # number of models per library whose rows stay in memory, so that models can be compared
_MAX_IN_ADVANCE = 100_000
_SAMPLE_SIZE = 5_000


class HubReduction:
    """Adjusts distances by mutual proximity: a distance is small only if both songs rank high for each other.

    With up to 100,000 songs, mutual proximity is fitted once on all songs. For a million songs, the fit would delay the
    first search by 13 s. In larger libraries, mutual proximity is therefore computed for each query's candidates, based
    on a sample of all songs.

    `vectors` returns the vectors of some rows, float32 (k, n_dimensions). `proximity` returns the mutual proximity of
    all rows; it is called for small libraries only.
    """

    def __init__(
        self,
        n_rows: int,
        vectors: Callable[[Int64Array], Float32Array],
        proximity: Callable[[], "search.MutualProximity"],
        max_in_advance: int = _MAX_IN_ADVANCE,
    ) -> None:
        self._n_rows, self._vectors, self._proximity = n_rows, vectors, proximity
        self._is_small = n_rows <= max_in_advance

    def adjust_distances(self, vector: Float32Array, distances: FloatingArray, rows: Int64Array) -> Float64Array:
        """Return the distances (k,) from a query (n_dimensions,) to candidates, adjusted by mutual proximity."""
        if self._is_small:
            proximity = self._proximity()
            mean, deviation = proximity.moments(vector[None, :])
            return proximity.rescore(distances, rows, (mean[0], deviation[0]))
        sample = self._sample
        # the candidates themselves are all from one region, so their average is not typical
        candidate_moments = sample.moments(self._vectors(rows))
        return sample.rescore_others(distances, candidate_moments, sample.moments(vector[None, :]))

    @cached_property
    def _sample(self) -> "search.MutualProximity":
        n = self._n_rows
        rows = np.sort(np.random.default_rng(0).choice(n, min(n, _SAMPLE_SIZE), replace=False))
        return search.MutualProximity().fit(self._vectors(rows))


class ModelRows:
    """Songs with a vector under a model, without duplicates: arrays that pages and searches share.

    `table` contains all songs that are not missing, and `stored` the rows of the model's file. `representative_of` maps
    the id of each duplicate to the id of the song that is shown. Attributes:

    - `ids` (n_rows,): song ids; `places` (n_rows,): their indices in `table` and in later tables of the same songs
    - `file` (n_file_rows, n_dimensions): memory map of all vectors in the model's file, including other songs
    - `file_rows` (n_rows,), ascending: indices in `file`
    - `inputs`: the data from which the rows are computed; the rows are current if these are the same objects
    """

    def __init__(
        self,
        library: Library,
        record: ModelRecord,
        table: SongTable,
        stored: SongRows,
        representative_of: dict[int, int],
    ) -> None:
        self.folder = library.models.path(record.id)
        self.index_choice = "automatic"
        self.inputs = stored, table.ids, representative_of
        self._song_ids = table.ids
        places = table.places_of(stored.song_ids)
        is_row = places >= 0
        if representative_of:
            is_row &= ~np.isin(stored.song_ids, np.fromiter(representative_of, dtype=np.int64))
        self.ids, self.places, self.file_rows = stored.song_ids[is_row], places[is_row], stored.rows[is_row]
        self.file = library.models.vector_file(record.id, stored)
        self._columns: tuple[SongColumns, SongColumns] | None = None
        self._files: dict[str, tuple[tuple[int, int] | None, Any]] = {}
        self._lock = threading.RLock()

    def find_rows(self, song_ids: npt.ArrayLike) -> Int64Array:
        """Return the rows of songs, int64 (n_ids,); -1 for songs without a row."""
        places = places_in_order(self._song_ids, np.asarray(song_ids, dtype=np.int64))
        return np.where(places >= 0, self._row_of_place[places], -1) if len(self.ids) else np.full_like(places, -1)

    @cached_property
    def _row_of_place(self) -> Int64Array:
        rows = np.full(len(self._song_ids), -1, dtype=np.int64)
        rows[self.places] = np.arange(len(self.places))
        return rows

    @cached_property
    def X(self) -> Float32Array:  # noqa: N802  # the name of the field
        """Vectors, float32 (n_rows, n_dimensions): the memory map, or a copy if the file also contains other songs."""
        return self.file if len(self.file) == len(self.ids) else self.file[self.file_rows]

    def vectors(self, rows: npt.ArrayLike) -> Float32Array:
        """Return the vectors of some rows, float32 (k, n_dimensions), without reading the others."""
        return np.asarray(self.file[self.file_rows[np.asarray(rows, dtype=np.int64)]])

    @property
    def index(self) -> neighbors.Neighbors:
        """The search index in the model's folder, or an index that compares all rows."""
        return self._from_file(
            neighbors.INDEX_FILE,
            lambda: neighbors.load_index(self.folder, self.file, self.file_rows, lambda: self.X, self.index_kind),
        )

    @property
    def index_kind(self) -> str:
        """Kind of index that the setting chooses."""
        return neighbors.index_kind(len(self.ids), self.index_choice)

    def choose_index(self, choice: str) -> None:
        """Apply the library's setting `index_kind`."""
        with self._lock:
            if choice != self.index_choice:
                self.index_choice = choice
                self._files.pop(neighbors.INDEX_FILE, None)

    def build_index_in_background(self) -> None:
        """Build a missing index and load its compiled code in a thread, once per process and model."""

        def prepare() -> None:
            with suppress(OwnerOnlyError):
                neighbors.update_index(self.folder, self.file, self.index_choice)
            self.index.query(self.file[:1], neighbors.N_CANDIDATES)

        if self.index_kind != "exact" and self.folder not in _prepared:
            _prepared.add(self.folder)
            threading.Thread(target=prepare, name="index", daemon=True).start()

    @cached_property
    def proximity(self) -> "search.MutualProximity":
        """Mutual proximity fitted on all rows; takes 13 s for a million songs with 100 dimensions."""
        return search.MutualProximity().fit(self.X)

    @cached_property
    def hubs(self) -> HubReduction:
        """Hub reduction for searches."""
        return HubReduction(len(self.ids), self.vectors, lambda: self.proximity)

    @cached_property
    def model(self) -> SimilarityModel:
        """The loaded model."""
        return SimilarityModel.load(self.folder)

    @cached_property
    def local_metrics(self) -> ModelMetrics | None:
        """:attr:`SimilarityModel.local_`, without loading the rest of the model."""
        return SimilarityModel.load_local(self.folder)

    def columns(self, table: SongTable) -> SongColumns:
        """Return the columns of the rows; `table` must have the same songs as the table passed to the constructor."""
        with self._lock:
            if self._columns is None or self._columns[0] is not table.columns:
                is_whole = np.array_equal(self.places, np.arange(len(table.ids)))
                self._columns = table.columns, table.columns if is_whole else table.columns.take(self.places)
            return self._columns[1]

    @property
    def clusters(self) -> dict[str, Int64Array]:
        """Cluster labels (n_rows,), keyed by the number of clusters; -1 for songs without a label."""

        def read() -> dict[str, Int64Array]:
            ids, labels = load_clusters(self.folder)
            return {name: self._align(ids, values, -1) for name, values in labels.items()}

        return self._from_file("clusters.npz", read)

    @property
    def map_view(self) -> MapView:
        """The map; songs without a place have nan. Its order takes 0.5 s for 1,000,000 songs."""
        return self._from_file("map.npz", lambda: MapView(self._align(*load_map(self.folder), np.nan)))

    def _from_file(self, name: str, read: Callable[[], T]) -> T:
        """Return the result of `read` for a file next to the model, cached until the file changes."""
        with self._lock:
            try:
                stat = (self.folder / name).stat()
                version = stat.st_mtime_ns, stat.st_size
            except FileNotFoundError:
                version = None
            cached = self._files.get(name)
            if cached is None or cached[0] != version:
                cached = self._files[name] = version, read()
            value: T = cached[1]
            return value

    def _align(self, ids: Int64Array, values: npt.NDArray[Any], missing: float) -> npt.NDArray[Any]:
        if np.array_equal(ids, self.ids):
            return values
        rows = self.find_rows(ids)
        known = rows >= 0
        aligned = np.full((len(self.ids), *values.shape[1:]), missing, dtype=values.dtype)
        aligned[rows[known]] = values[known]
        return aligned


_prepared: set[Path] = set()
_rows: "WeakKeyDictionary[Library, dict[str, ModelRows]]" = WeakKeyDictionary()
_representatives: "WeakKeyDictionary[Library, tuple[list[SamePair], dict[int, int]]]" = WeakKeyDictionary()
_lock = threading.Lock()


def representatives_of(library: Library) -> dict[int, int]:
    """Map each duplicate's id to the id of the song shown instead; returns the same object until a pair changes."""
    pairs = library.same_pairs()
    with _lock:
        if library not in _representatives or _representatives[library][0] is not pairs:
            ids = {i for pair in pairs for i in (pair.first_id, pair.second_id)}
            duplicates = groups(library.songs(ids), pairs) if pairs else []
            _representatives[library] = pairs, {song.id: first.id for first, *rest in duplicates for song in rest}
        return _representatives[library][1]


def share_rows(library: Library, record: ModelRecord, table: SongTable, representative_of: dict[int, int]) -> ModelRows:
    """Return the rows of a model, shared with other snapshots unless songs have changed."""
    with _lock:
        cache = _rows.setdefault(library, {})
        rows = cache.pop(record.id, None)
        stored = library.models.song_rows(record.id)
        inputs = stored, table.ids, representative_of
        if rows is None or any(a is not b for a, b in zip(rows.inputs, inputs, strict=True)):
            rows = ModelRows(library, record, table, stored, representative_of)
        rows.choose_index(library.settings["index_kind"])
        cache[record.id] = rows  # the most recently used model is last
        while len(cache) > _MAX_MODELS:
            del cache[next(iter(cache))]
        return rows
