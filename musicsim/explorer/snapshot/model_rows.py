"""The rows of a model that songs are compared by, shared by all snapshots of a library until rows come or go.

What follows from the rows alone (the ids and vectors, the index, what is usual as a distance) takes seconds for a
million songs; a new title or a thumb leaves it as it is.
"""

import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from musicsim import search
from musicsim._arrays import Float32Array, Float64Array, FloatingArray, Int64Array, places_in_order
from musicsim.errors import OwnerOnlyError
from musicsim.explorer.models.artifacts import load_clusters, load_map
from musicsim.explorer.models.local_metrics import LocalMetrics
from musicsim.explorer.models.similarity_model import SimilarityModel
from musicsim.explorer.snapshot import neighbours
from musicsim.explorer.snapshot.same_sound import representatives
from musicsim.library import Library
from musicsim.library.db.columns import SongColumns, SongTable
from musicsim.library.stores.duplicates import SamePair
from musicsim.library.stores.models import ModelRecord, SongRows

T = TypeVar("T")

_MODELS_HELD = 4
"""Models of a library whose rows stay in memory; more than one are seen when models are compared."""
_MAX_IN_ADVANCE = 100_000
_SONGS_AVERAGED = 5_000


class _RowInputs(NamedTuple):
    """What rows follow from; the same objects as before say that nothing has changed."""

    stored: SongRows
    ids_here: Int64Array
    representative_of: dict[int, int]


class HubReduction:
    """Adjusts distances by what both songs find usual.

    That is worked out once for every song of a library of up to 100,000. Of more songs it would keep the first answer
    waiting (13 s for a million), so there it is worked out for the candidates of each query, 500 at a time, and only
    the average song is taken from a sample of all.

    `vectors` gives those of some rows, float32 (k, n_dimensions); `proximity` gives the mutual proximity of all rows,
    and is called for small libraries only.
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

    def adjusted(self, vector: Float32Array, distances: FloatingArray, rows: Int64Array) -> Float64Array:
        """Distances of candidates, (k,), from a query, (n_dimensions,), as :class:`MutualProximity` adjusts them."""
        if self._is_small:
            proximity = self._proximity()
            mean, deviation = proximity.moments(vector[None, :])
            return proximity.rescore(distances, rows, (mean[0], deviation[0]))
        sample = self._of_sample
        # candidates are no part of the average song: they are all from one place, more or fewer from query to query
        of_candidates = sample.moments(self._vectors(rows))
        return sample.rescore_others(distances, of_candidates, sample.moments(vector[None, :]))

    @cached_property
    def _of_sample(self) -> "search.MutualProximity":
        n = self._n_rows
        chosen = np.sort(np.random.default_rng(0).choice(n, min(n, _SONGS_AVERAGED), replace=False))
        return search.MutualProximity().fit(self._vectors(chosen))


class ModelRows:
    """Songs with a vector under a model, each sound once: the arrays that pages and searches share.

    Parameters
    ----------
    table : SongTable
        The songs that are here.
    stored : SongRows
        The rows of the model's files.
    representative_of : mapping of song id to song id
        The song that stands for a song with the same sound.

    Attributes
    ----------
    ids : int64 ndarray of shape (n_rows,)
        The song of each row.
    places : int64 ndarray of shape (n_rows,)
        Where each stands in `table`, and in every later table of the same songs.
    file : float32 ndarray of shape (n_file_rows, n_dimensions)
        All vectors of the model's file, a memory map; songs that are no rows here are among them.
    file_rows : int64 ndarray of shape (n_rows,), ascending
        Where the vector of each row lies in `file`.
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
        self.index_settings: tuple[float, str] = np.inf, "automatic"
        self.inputs = _RowInputs(stored, table.ids, representative_of)
        places = table.places_of(stored.song_ids)
        shown = places >= 0
        if representative_of:
            shown &= ~np.isin(stored.song_ids, np.fromiter(representative_of, dtype=np.int64))
        self.ids, self.places, self.file_rows = stored.song_ids[shown], places[shown], stored.rows[shown]
        self.file = library.models.vector_file(record.id, stored)
        self._columns: tuple[SongColumns, SongColumns] | None = None
        self._files: dict[str, tuple[tuple[int, int] | None, Any]] = {}
        self._lock = threading.RLock()

    def of(self, song_ids: npt.ArrayLike) -> Int64Array:
        """Rows of songs, int64 (n_ids,); -1 where a song has none."""
        places = places_in_order(self.inputs.ids_here, np.asarray(song_ids, dtype=np.int64))
        return np.where(places >= 0, self._row_of_place[places], -1) if len(self.ids) else np.full_like(places, -1)

    @cached_property
    def _row_of_place(self) -> Int64Array:
        """The row of each song of the table, int64 (n_songs,); -1 where it has none."""
        rows = np.full(len(self.inputs.ids_here), -1, dtype=np.int64)
        rows[self.places] = np.arange(len(self.places))
        return rows

    @cached_property
    def X(self) -> Float32Array:  # noqa: N802  # the name of the field
        """Vectors, float32 (n_rows, n_dimensions): the memory map, or a copy where it holds other songs, too."""
        return self.file if len(self.file) == len(self.ids) else self.file[self.file_rows]

    def vectors(self, rows: npt.ArrayLike) -> Float32Array:
        """Vectors of some rows, float32 (k, n_dimensions), without a copy of all."""
        return np.asarray(self.file[self.file_rows[np.asarray(rows, dtype=np.int64)]])

    # --- what rows are searched with ----------------------------------------------------------

    @property
    def index(self) -> neighbours.Neighbours:
        """Nearest neighbours among the rows: all are compared, or the index beside the model is asked."""
        return self._from_file(
            neighbours.INDEX_FILE,
            lambda: neighbours.load_index(self.folder, self.file, self.file_rows, lambda: self.X, self.index_kind),
        )

    @property
    def index_kind(self) -> str:
        """Kind of index that the settings choose."""
        memory_mb, choice = self.index_settings
        return neighbours.index_kind((len(self.ids), self.file.shape[1]), choice, memory_mb)

    def choose_index(self, settings: dict[str, Any]) -> None:
        """Follow the settings of the library; an index of another kind answers until the chosen one is built."""
        chosen = float(settings["index_memory_mb"]), str(settings["index_kind"])
        with self._lock:
            if chosen != self.index_settings:
                self.index_settings = chosen
                self._files.pop(neighbours.INDEX_FILE, None)

    def build_index_in_background(self) -> None:
        """Prepare a large library for search on a thread of its own, once a process, model and kind of index.

        The index is built if there is none, and asked once: what numba has compiled takes a second to load.
        """
        prepared = self.folder, self.index_kind
        if self.index_kind == "exact" or prepared in _prepared:
            return
        _prepared.add(prepared)
        threading.Thread(target=self._prepare_index, name="index", daemon=True).start()

    def _prepare_index(self) -> None:
        with suppress(OwnerOnlyError):
            neighbours.update_index(self.folder, self.file, *self.index_settings)
        self.index.query(self.file[:1], neighbours.N_CANDIDATES)

    @cached_property
    def proximity(self) -> "search.MutualProximity":
        """Mutual proximity fitted on all rows; 13 s for a million songs of 100 dimensions."""
        return search.MutualProximity().fit(self.X)

    @cached_property
    def hubs(self) -> HubReduction:
        """Hub reduction: songs that are near everything do not crowd every list."""
        return HubReduction(len(self.ids), self.vectors, lambda: self.proximity)

    @cached_property
    def model(self) -> SimilarityModel:
        """The model, loaded."""
        return SimilarityModel.load(self.folder)

    @cached_property
    def local_metrics(self) -> LocalMetrics | None:
        """What the model has as :attr:`SimilarityModel.local_`, without loading the rest of it."""
        return SimilarityModel.load_local(self.folder)

    # --- what is kept of each row -------------------------------------------------------------

    def columns(self, table: SongTable) -> SongColumns:
        """Columns of the rows, from a table of the songs that the rows were made for."""
        with self._lock:
            if self._columns is None or self._columns[0] is not table.columns:
                whole = np.array_equal(self.places, np.arange(len(table.ids)))
                self._columns = table.columns, table.columns if whole else table.columns.take(self.places)
            return self._columns[1]

    @property
    def clusters(self) -> dict[str, Int64Array]:
        """Cluster labels (n_rows,) by the number of clusters; -1 for none yet."""
        return self._from_file("clusters.npz", self._read_clusters)

    def _read_clusters(self) -> dict[str, Int64Array]:
        ids, labels = load_clusters(self.folder)
        return dict(zip(labels, self._aligned(ids, list(labels.values()), -1), strict=True))

    @property
    def map(self) -> Float32Array:
        """Places on the map, float32 (n_rows, 2), nan where a song has none yet."""
        return self._from_file("map.npz", self._read_map)

    def _read_map(self) -> Float32Array:
        ids, places = load_map(self.folder)
        return self._aligned(ids, [places], np.nan)[0]

    def _from_file(self, name: str, read: Callable[[], T]) -> T:
        """What follows from a file beside the model, until it is another one."""
        with self._lock:
            version = _version(self.folder / name)
            known = self._files.get(name)
            if known is None or known[0] != version:
                known = self._files[name] = version, read()
            return known[1]

    def _aligned(self, ids: Int64Array, arrays: list[npt.NDArray[Any]], missing: float) -> list[npt.NDArray[Any]]:
        """Arrays with an entry a song id, in the order of the rows."""
        if np.array_equal(ids, self.ids):
            return arrays
        rows = self.of(ids)
        known = rows >= 0
        aligned = [np.full((len(self.ids), *values.shape[1:]), missing, dtype=values.dtype) for values in arrays]
        for values, ordered in zip(arrays, aligned, strict=True):
            ordered[rows[known]] = values[known]
        return aligned


def _version(path: Path) -> tuple[int, int] | None:
    try:
        facts = path.stat()
    except FileNotFoundError:
        return None
    return facts.st_mtime_ns, facts.st_size


_prepared: set[tuple[Path, str]] = set()


class _Held:
    """Rows and representatives of one library."""

    def __init__(self) -> None:
        self.rows: dict[str, ModelRows] = {}
        self.same: tuple[list[SamePair], dict[int, int]] = ([], {})


_held: "WeakKeyDictionary[Library, _Held]" = WeakKeyDictionary()
_lock = threading.Lock()


def representatives_of(library: Library) -> dict[int, int]:
    """The song that stands for a song with the same sound, by id; the very same object until one of them changes."""
    pairs = library.same_pairs()
    with _lock:
        held = _held.setdefault(library, _Held())
        if held.same[0] is not pairs:
            ids = {i for pair in pairs for i in (pair.first_id, pair.second_id)}
            held.same = pairs, representatives(library.songs(ids), pairs) if pairs else {}
        return held.same[1]


def cached_rows(
    library: Library, record: ModelRecord, table: SongTable, representative_of: dict[int, int]
) -> ModelRows:
    """The rows of a model: those that another snapshot has already, unless some have come or gone since."""
    with _lock:
        held = _held.setdefault(library, _Held()).rows
        known = held.pop(record.id, None)
        inputs = _RowInputs(library.models.song_rows(record.id), table.ids, representative_of)
        if known is None or any(a is not b for a, b in zip(known.inputs, inputs, strict=True)):
            known = ModelRows(library, record, table, inputs.stored, representative_of)
        known.choose_index(library.settings)
        held[record.id] = known  # the one used last stands last
        while len(held) > _MODELS_HELD:
            del held[next(iter(held))]
        return known
