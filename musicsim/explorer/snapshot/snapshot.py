"""A library at one revision, in memory: the data for the pages, the command line and the HTTP interface."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from musicsim import search
from musicsim._arrays import BoolArray, Float32Array, Float64Array, FloatingArray, Int64Array
from musicsim.errors import NotFoundError
from musicsim.explorer.models.similarity_model import ModelMetrics, SimilarityModel
from musicsim.explorer.snapshot.conditions import All
from musicsim.explorer.snapshot.folder_names import name_folders
from musicsim.explorer.snapshot.map_view import MapView
from musicsim.explorer.snapshot.model_rows import ModelRows, representatives_of, share_rows
from musicsim.explorer.snapshot.neighbors import Neighbors, build_exact_index
from musicsim.hooks import ChooseEngine, SearchEngine
from musicsim.library import Library, ModelRecord, PackedTexts, Song, SongColumns, SongTable
from musicsim.library.stores.genres import merge_spellings
from musicsim.library.tags.artists import is_generic_folder
from musicsim.registry import load_hooks

T = TypeVar("T")

MAX_CACHED = 10_000

Rows = Sequence[int] | npt.NDArray[np.integer[Any]]


@dataclass(frozen=True, slots=True)
class TextResults:
    """Results of a text search."""

    artists: list[tuple[str, int]]  # name, number of songs
    albums: list[tuple[str, str, int]]  # name, artist, number of songs
    songs: list[Song]


@dataclass(frozen=True)
class Snapshot:
    """Songs, model, vectors, clusters and map at one revision.

    A snapshot is loaded lazily and never changes; each revision has its own. It shares unchanged data with the
    previous snapshot, above all the rows (:class:`musicsim.explorer.snapshot.model_rows.ModelRows`).

    Arrays are aligned with :attr:`row_ids`, the songs that have a vector, without duplicates. Memory: 0.3 kB per song,
    plus the index's norms, shared by all snapshots of a library. Vectors stay on disk until they are used, and songs
    (2 kB each) are read when they are shown.
    """

    library: Library
    revision: int
    model_id: str | None = None
    """None for the active model."""

    @cached_property
    def record(self) -> ModelRecord | None:
        """The model of the snapshot."""
        return self.library.models.get(self.model_id) if self.model_id else self.library.models.active()

    @property
    def model(self) -> SimilarityModel | None:
        """The loaded model."""
        return self.model_rows.model if self.model_rows else None

    @property
    def local_metrics(self) -> ModelMetrics | None:
        """The model's metrics, one per region; None for most models."""
        return self.model_rows.local_metrics if self.model_rows else None

    @cached_property
    def _table(self) -> SongTable:
        return self.library.table()

    @cached_property
    def representative_of(self) -> dict[int, int]:
        """Duplicate id -> id of the song that is shown instead."""
        return representatives_of(self.library)

    @cached_property
    def model_rows(self) -> ModelRows | None:
        """The model's rows and everything computed from them; None without a model."""
        return share_rows(self.library, self.record, self._table, self.representative_of) if self.record else None

    @property
    def n_songs(self) -> int:
        """Number of songs with or without a vector, including duplicates but not missing songs."""
        return len(self._table.ids)

    @property
    def n_indexed(self) -> int:
        """Number of rows."""
        return len(self.row_ids)

    @property
    def row_ids(self) -> Int64Array:
        """The song id of every row, int64 (n_indexed,)."""
        return self.model_rows.ids if self.model_rows else np.empty(0, dtype=np.int64)

    def rows_of(self, ids: Iterable[int]) -> Int64Array:
        """Return the rows of songs, int64 (n_ids,); -1 for songs without a row. Duplicates share a row."""
        if not isinstance(ids, np.ndarray):  # ids of songs have at most 64 bits
            ids = np.array([i if -(2**63) <= i < 2**63 else -1 for i in ids], dtype=np.int64)
        if self.model_rows is None:
            return np.full(len(ids), -1, dtype=np.int64)
        rows = self.model_rows.find_rows(ids)
        if self.representative_of:
            without = np.flatnonzero(rows < 0)
            rows[without] = self.model_rows.find_rows(
                [self.representative_of.get(i, -1) for i in ids[without].tolist()]
            )
        return rows

    def row_of(self, song_id: int) -> int:
        """Return the row of a song; raise NotFoundError if it is not in the library or has no vector."""
        row = int(self.rows_of([song_id])[0])
        if row < 0:
            song = self.library.song(song_id)  # raises if the song does not exist
            raise NotFoundError(f"{song.label} has not been compared yet: wait until the running job has finished.")
        return row

    @property
    def X(self) -> Float32Array:  # noqa: N802  # the name of the field
        """Vectors, float32 (n_indexed, n_dimensions)."""
        return self.model_rows.X if self.model_rows else np.empty((0, 0), dtype=np.float32)

    def vectors_at(self, rows: Rows) -> Float32Array:
        """Return the vectors of some rows, float32 (k, n_dimensions), without reading the others."""
        return self._needed.vectors(rows)

    @cached_property
    def columns(self) -> SongColumns:
        """Artist, genre (most frequent spelling), folder, group, year, duration and descriptors of every row."""
        columns = self.model_rows.columns(self._table) if self.model_rows else self._table.columns.take(self.row_ids)
        return columns.replace_genre(lambda: merge_spellings(columns.genre))

    @cached_property
    def folder_names(self) -> list[str]:
        """Names for people, aligned with the names of the column "folder"; takes 2 s for a million songs."""
        albums = self.library.files.albums_of_folders()
        named = {folder: album for folder, album in albums.items() if not is_generic_folder(album)}
        return name_folders(self.columns.folder.names, named)

    @cached_property
    def clusters(self) -> dict[str, Int64Array]:
        """Cluster labels (n_indexed,), keyed by the number of clusters ("16", "64", ...); -1 for unlabeled songs."""
        return self.model_rows.clusters if self.model_rows else {}

    @cached_property
    def map_view(self) -> MapView:
        """The map, with the order in which songs are drawn."""
        return self.model_rows.map_view if self.model_rows else MapView(np.empty((0, 2), dtype=np.float32))

    @property
    def map(self) -> Float32Array:
        """Places on the map, float32 (n_indexed, 2); nan for songs without a place."""
        return self.map_view.places

    @property
    def index(self) -> Neighbors:
        """The local index of :attr:`X`; searches use :meth:`nearest`, which may ask an external engine."""
        return self._needed.index

    @property
    def index_kind(self) -> str:
        """Kind of index that the settings choose for these songs."""
        return self._needed.index_kind

    def index_of(self, X: Float32Array) -> search.ExactIndex:
        """Return an exact index of some of the vectors; raise ModelError if they are damaged."""
        return build_exact_index(self._needed.folder, X)

    def nearest(
        self, vector: Float32Array, k: int, *, allowed: BoolArray | None = None, condition: All | None = None
    ) -> Int64Array:
        """Return the rows of the k songs nearest to a vector, nearest first, from the engine or the local index.

        Returns fewer rows if fewer than k are `allowed` (n_indexed,). `condition`, from which `allowed` was computed,
        is for engines that do their own filtering.
        """
        rows = self.engine.nearest(vector, k, allowed, condition) if self.engine is not None else None
        return self.index.query(vector[None, :], k, allowed=allowed)[1][0] if rows is None else rows

    @cached_property
    def engine(self) -> SearchEngine | None:
        """The external engine for the active model; None if searches are local."""
        if self.model_rows is None or self.record is None or not self.record.is_active:
            return None
        engines = (hook(self, self.model_rows) for hook in load_hooks(ChooseEngine))
        return next((engine for engine in engines if engine is not None), None)

    @property
    def search_trouble(self) -> str | None:
        """The reason why searches are local although there is a server, in one sentence; None if the server works."""
        return None if self.engine is None else self.engine.trouble

    @property
    def proximity(self) -> "search.MutualProximity":
        """Mutual proximity of the songs of :attr:`X`; takes 1.3 s for 100,000 songs with 100 dimensions."""
        return self._needed.proximity

    def adjust_distances(self, vector: Float32Array, distances: FloatingArray, rows: Int64Array) -> Float64Array:
        """Return the distances (k,) from a query to some rows, after hub reduction."""
        return self._needed.hubs.adjust_distances(vector, distances, rows)

    @property
    def _needed(self) -> ModelRows:
        if self.model_rows is None:
            raise NotFoundError(self.no_model_words)
        return self.model_rows

    @property
    def no_model_words(self) -> str:
        """A sentence that tells users what to do if the library has no model."""
        if self.n_songs:
            return "no song has been compared yet: wait until the running job has finished."
        return "no songs to compare with yet: add a folder first."

    @cached_property
    def _song_cache(self) -> "_LruCache[Song]":
        return _LruCache(lambda ids: {song.id: song for song in self.library.songs(ids)})

    @cached_property
    def _tag_cache(self) -> "_LruCache[list[tuple[str, float]]]":
        return _LruCache(lambda ids: {i: [] for i in ids} | self.library.tags(ids))

    @cached_property
    def _list_cache(self) -> "_LruCache[set[int]]":
        return _LruCache(lambda ids: {i: set() for i in ids} | self.library.saved_playlists.find_lists(ids))

    def present_ids(self, ids: Iterable[int]) -> tuple[int, ...]:
        """Return the ids of songs that can be compared; a duplicate becomes the song that represents it."""
        rows = self.rows_of(ids)
        return tuple(self.row_ids[rows[rows >= 0]].tolist())

    def distinct_ids(self, ids: Iterable[int]) -> tuple[int, ...]:
        """Return what :meth:`present_ids` returns, each song once."""
        return tuple(dict.fromkeys(self.present_ids(ids)))

    def duration_of(self, ids: Iterable[int]) -> float:
        """Return the total duration of the songs that can be compared, in seconds."""
        rows = self.rows_of(ids)
        return float(self.columns.duration_s[rows[rows >= 0]].sum())

    def songs_by_id(self, ids: Iterable[int]) -> list[Song]:
        """Return songs in the order of the ids, without songs that are missing."""
        wanted = [int(i) for i in ids]
        songs = self._song_cache.get(wanted)
        return [songs[i] for i in wanted if i in songs]

    def songs_at(self, rows: Rows | None = None) -> list[Song]:
        """Return the songs of some rows, or of all rows; raises NotFoundError for songs that were removed."""
        ids = (self.row_ids if rows is None else self.row_ids[np.asarray(rows, dtype=np.int64)]).tolist()
        songs = {song.id: song for song in self.songs_by_id(ids)}
        missing = [i for i in ids if i not in songs]
        if missing:  # the library has just changed; usually, only the files are missing
            songs |= {song.id: song for song in self.library.songs(missing, missing=True)}
        try:
            return [songs[i] for i in ids]
        except KeyError as error:
            raise NotFoundError(f"{self.library.name}: song {error} has just been removed. Try again.") from None

    def names_at(self, rows: Rows | None = None) -> list[tuple[str, str]]:
        """Return :attr:`Song.title` and :attr:`Song.by` of some rows, or of all rows; takes 2 µs per row."""
        if self.model_rows is None:
            return []
        places = self.model_rows.places
        return self._table.names_at(places if rows is None else places[np.asarray(rows)])

    def find(self, text: str, limit: int = 20) -> TextResults:
        """Return at most `limit` artists, albums and songs whose name contains `text`, ignoring case.

        If nothing is found, a typo in `text` is allowed. Names that begin with it come first, then names with more
        songs. At least half of the results are songs, if there are enough.
        """
        with _albums_lock:
            all_albums, lines = _read_albums(self._table, self.library)
        for nearly in (False, True):
            artists = self._table.artists_with(text, limit, nearly=nearly)
            find_lines = lines.nearly_holding if nearly else lines.holding
            albums = [all_albums[i] for i in find_lines(text.casefold(), limit)]
            songs = self.songs_by_id(self._table.ids_with(text, limit, nearly=nearly).tolist())
            if artists or albums or songs:
                break
        n_others = max(limit // 2, limit - len(songs))
        n_artists = min(len(artists), max(n_others // 2, n_others - len(albums)))
        n_albums = min(len(albums), n_others - n_artists)
        return TextResults(artists[:n_artists], albums[:n_albums], songs[: limit - n_artists - n_albums])

    def songs_with(self, text: str, limit: int, offset: int = 0) -> list[Song]:
        """Return at most `limit` songs for which :meth:`Song.matches` is true: matching titles first, then by id.

        The first `offset` songs are skipped.
        """
        return self.songs_by_id(self._table.ids_with(text, offset + limit)[offset:].tolist())

    def tags_of(self, song_ids: Iterable[int] | None = None) -> dict[int, list[tuple[str, float]]]:
        """Return the tags and weights of some or all songs, heaviest first; songs without tags are left out."""
        if song_ids is None:
            return self.library.tags()
        return {i: tags for i, tags in self._tag_cache.get(list(song_ids)).items() if tags}

    def count_shared_playlists(self, pairs: Collection[tuple[int, int]]) -> dict[tuple[int, int], int]:
        """Return the number of people's playlists that contain both songs of each pair of ids, if there are any."""
        lists = self._list_cache.get(list(chain.from_iterable(pairs)))
        return {(one, other): n for one, other in pairs if (n := len(lists[one] & lists[other]))}


_albums_lock = threading.Lock()  # sessions that need the albums at the same time wait for one read


@lru_cache(maxsize=4)
def _read_albums(_: SongTable, library: Library) -> tuple[list[tuple[str, str, int]], PackedTexts]:
    """Return albums by descending number of songs, and a text index; takes 3 s for a million songs.

    The table is part of the key, because every change to a song makes a new table.
    """
    counts = sorted(library.album_counts().items(), key=lambda item: (-item[1], item[0]))
    albums = [(name, by, n) for (name, by), n in counts]
    return albums, PackedTexts.pack(name.casefold() for name, _, _ in albums)


class _LruCache(Generic[T]):
    """Thread-safe cache of values, keyed by song id, that keeps the most recently used values."""

    def __init__(self, read: Callable[[list[int]], Mapping[int, T]]) -> None:
        self._read = read
        self._values: OrderedDict[int, T] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, ids: list[int]) -> dict[int, T]:
        """Return the values, keyed by id; ids without a value are left out."""
        with self._lock:
            values = {i: self._values[i] for i in ids if i in self._values}
        unread = [i for i in dict.fromkeys(ids) if i not in values]
        if unread:
            values |= self._read(unread)
        with self._lock:
            for i, value in values.items():
                self._values[i] = value
                self._values.move_to_end(i)
            while len(self._values) > MAX_CACHED:
                self._values.popitem(last=False)
        return values


def take_snapshot(library: Library, model_id: str | None = None) -> Snapshot:
    """Return the current snapshot of a library, under the active model or a given one."""
    return Snapshot(library, library.revision, model_id)


def snapshot_under(library: Library, model: str | None) -> Snapshot:
    """Return the shared snapshot under the model of this name, or the active model; raises NotFoundError."""
    record = library.models.find(model) if model else library.models.active()
    return share_snapshot(library, record.id if record else None)


def share_snapshot(library: Library, model_id: str | None) -> Snapshot:
    """Return the current snapshot, which pages and requests share until the library changes.

    So they read each song only once.
    """
    return _share(library, library.revision, model_id)


@lru_cache(maxsize=6)
def _share(library: Library, revision: int, model_id: str | None) -> Snapshot:
    return Snapshot(library, revision, model_id)
