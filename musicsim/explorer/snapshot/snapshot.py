"""A library as it stands at one revision, in memory: what pages, command line and interface ask."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from musicsim import search
from musicsim._arrays import BoolArray, Float32Array, Float64Array, FloatingArray, Int64Array
from musicsim.errors import NotFoundError
from musicsim.explorer.models.local_metrics import LocalMetrics
from musicsim.explorer.models.similarity_model import SimilarityModel
from musicsim.explorer.snapshot.conditions import All
from musicsim.explorer.snapshot.map_view import OncePer
from musicsim.explorer.snapshot.model_rows import ModelRows, cached_rows, representatives_of
from musicsim.explorer.snapshot.neighbours import Neighbours, compared
from musicsim.hooks import load_hooks
from musicsim.library import Library, Song
from musicsim.library.db.columns import SongColumns, SongTable
from musicsim.library.db.packed_texts import PackedTexts
from musicsim.library.stores.genres import folded
from musicsim.library.stores.models import ModelRecord

T = TypeVar("T")

_SONGS_HELD = 10_000

Rows = Sequence[int] | npt.NDArray[np.integer[Any]]


@dataclass(frozen=True, slots=True)
class Found:
    """What a text finds."""

    artists: list[tuple[str, int]]  # name, number of songs
    albums: list[tuple[str, str, int]]  # name, artist, number of songs
    songs: list[Song]


class SearchEngine(Protocol):
    """An engine that finds neighbors in the place of this machine.

    The hook ``search_engine`` is ``function(snapshot: Snapshot, rows: ModelRows) -> SearchEngine | None``. It gets the
    rows of the model in use.
    """

    @property
    def trouble(self) -> str | None:
        """The reason why this machine searches instead, in one sentence; None if the engine does."""

    def nearest(
        self, vector: Float32Array, k: int, allowed: BoolArray | None, condition: All | None
    ) -> Int64Array | None:
        """Rows as :meth:`Snapshot.nearest` returns them; None if this machine has to find them."""


@dataclass(frozen=True)
class Snapshot:
    """Songs, model, vectors, clusters and map of one revision.

    Loaded piece by piece when first asked for, never changed: a new revision makes a new snapshot. It takes over
    from the one before what the change has left as it was, above all the rows
    (:class:`musicsim.explorer.snapshot.model_rows.ModelRows`).

    Arrays are aligned with :attr:`row_ids`, the songs that have a vector, each sound once. Memory: 0.3 kB a song and
    the index's norms, shared by all snapshots of a library; vectors stay on the disk until they are touched, and songs
    are read (2 kB each) where they are shown.
    """

    library: Library
    revision: int
    model_id: str | None = None
    """None for the model in use."""

    # --- model --------------------------------------------------------------------------------

    @cached_property
    def record(self) -> ModelRecord | None:
        """The model it is seen under."""
        return self.library.models.get(self.model_id) if self.model_id else self.library.models.active()

    @property
    def model(self) -> SimilarityModel | None:
        """The model, loaded."""
        return self._rows.model if self._rows else None

    @property
    def local_metrics(self) -> LocalMetrics | None:
        """The metrics of the model that differ from place to place; None for most models."""
        return self._rows.local_metrics if self._rows else None

    # --- rows ---------------------------------------------------------------------------------

    @cached_property
    def _table(self) -> SongTable:
        return self.library.table()

    @cached_property
    def representative_of(self) -> dict[int, int]:
        """The song that stands for a song with the same sound, by id; only songs that another one stands for."""
        return representatives_of(self.library)

    @cached_property
    def _rows(self) -> ModelRows | None:
        return cached_rows(self.library, self.record, self._table, self.representative_of) if self.record else None

    @property
    def n_songs(self) -> int:
        """Songs that are here, with a vector or without, copies among them."""
        return len(self._table.ids)

    @property
    def n_indexed(self) -> int:
        """Rows of the arrays."""
        return len(self.row_ids)

    @property
    def row_ids(self) -> Int64Array:
        """The song id of every row, int64 (n_indexed,)."""
        return self._rows.ids if self._rows else np.empty(0, dtype=np.int64)

    def rows_of(self, ids: Iterable[int]) -> Int64Array:
        """Rows of song ids, int64 (n_ids,); -1 where a song has none.

        A song that another one stands for has the row of that one.
        """
        wanted = np.asarray(ids if isinstance(ids, np.ndarray) else [_as_int64(i) for i in ids], dtype=np.int64)
        if self._rows is None:
            return np.full(len(wanted), -1, dtype=np.int64)
        rows = self._rows.of(wanted)
        if self.representative_of:
            folded = np.flatnonzero(rows < 0)
            rows[folded] = self._rows.of([self.representative_of.get(i, -1) for i in wanted[folded].tolist()])
        return rows

    @property
    def X(self) -> Float32Array:  # noqa: N802  # the name of the field
        """Vectors, float32 (n_indexed, n_dimensions)."""
        return self._rows.X if self._rows else np.empty((0, 0), dtype=np.float32)

    def vectors_at(self, rows: Rows) -> Float32Array:
        """Vectors of some rows, float32 (k, n_dimensions); they alone are read."""
        return self._needed.vectors(rows)

    @cached_property
    def columns(self) -> SongColumns:
        """Artist, genre, folder, group, year and length of every row, without reading a song.

        Spellings of one genre (:mod:`musicsim.library.stores.genres`) are the one that most songs have.
        """
        columns = self._rows.columns(self._table) if self._rows else self._table.columns.take(self.row_ids)
        return columns.with_genre(lambda: folded(columns.genre))

    @cached_property
    def clusters(self) -> dict[str, Int64Array]:
        """Cluster labels (n_indexed,) by the number of clusters ("16", "64", ...); -1 for none yet."""
        return self._rows.clusters if self._rows else {}

    @cached_property
    def map(self) -> Float32Array:
        """Places on the map, float32 (n_indexed, 2), nan where a song has none yet."""
        return self._rows.map if self._rows else np.empty((0, 2), dtype=np.float32)

    @property
    def index(self) -> Neighbours:
        """Nearest neighbours among :attr:`X`, found by this machine; a search asks :meth:`nearest`."""
        return self._needed.index

    @property
    def index_kind(self) -> str:
        """Kind of index that the settings choose for these songs."""
        return self._needed.index_kind

    def index_of(self, X: Float32Array) -> search.ExactIndex:
        """What compares some of the vectors among themselves. Raises ModelError if they hold what is no vector."""
        return compared(self._needed.folder, X)

    def nearest(
        self, vector: Float32Array, k: int, *, allowed: BoolArray | None = None, condition: All | None = None
    ) -> Int64Array:
        """Rows of the songs nearest to a vector, nearest first, from whichever engine answers searches.

        Parameters
        ----------
        vector : float32 ndarray of shape (n_dimensions,)
        k : int
            Fewer where fewer are allowed.
        allowed : bool ndarray of shape (n_indexed,), optional
            Rows that may be found.
        condition : All, optional
            What all rows that are allowed have in common, for an engine that looks for itself.
        """
        rows = self.engine.nearest(vector, k, allowed, condition) if self.engine is not None else None
        return self.index.query(vector[None, :], k, allowed=allowed)[1][0] if rows is None else rows

    @cached_property
    def engine(self) -> SearchEngine | None:
        """The engine that searches under the model in use; None if this machine does."""
        if self._rows is None or self.record is None or not self.record.is_active:
            return None
        engines = (hook(self, self._rows) for hook in load_hooks("search_engine"))
        return next((engine for engine in engines if engine is not None), None)

    @property
    def search_trouble(self) -> str | None:
        """Why this machine searches where a server should, in one sentence; None where there is nothing to say."""
        return None if self.engine is None else self.engine.trouble

    def build_index_in_background(self) -> None:
        """Let a large library that has no index get one beside the service; for a process that stays."""
        if self._rows is not None:
            self._rows.build_index_in_background()

    @property
    def proximity(self) -> "search.MutualProximity":
        """What the songs of :attr:`X` find usual as a distance; 1.3 s for 100 000 songs of 100 dimensions."""
        return self._needed.proximity

    def adjusted(self, vector: Float32Array, distances: FloatingArray, rows: Int64Array) -> Float64Array:
        """Distances (k,) of a query to some rows, adjusted so that hubs do not crowd every list."""
        return self._needed.hubs.adjusted(vector, distances, rows)

    @property
    def _needed(self) -> ModelRows:
        if self._rows is None:
            raise NotFoundError(f"{self.library.name}: there are no songs to compare with yet. Add a folder.")
        return self._rows

    # --- songs --------------------------------------------------------------------------------

    @cached_property
    def _songs_held(self) -> "_Held[Song]":
        return _Held(lambda ids: {song.id: song for song in self.library.songs(ids)})

    @cached_property
    def _tags_held(self) -> "_Held[list[tuple[str, float]]]":
        return _Held(lambda ids: {i: [] for i in ids} | self.library.tags(ids))

    def songs_by_id(self, ids: Iterable[int]) -> list[Song]:
        """Songs of some ids in the order asked for; those that are here."""
        wanted = [int(i) for i in ids]
        found = self._songs_held.get(wanted)
        return [found[i] for i in wanted if i in found]

    def songs_at(self, rows: Rows | None = None) -> list[Song]:
        """The song of some rows, in the order asked for, or of every row; 2 kB each.

        Raises NotFoundError if a song has been forgotten since this moment: a snapshot of the next revision
        is without it.
        """
        ids = self._ids_at(rows).tolist()
        found = {song.id: song for song in self.songs_by_id(ids)}
        gone = [i for i in ids if i not in found]
        if gone:  # their files at most, unless the library was changed a moment ago
            found |= {song.id: song for song in self.library.songs(gone, missing=True)}
        try:
            return [found[i] for i in ids]
        except KeyError as error:
            raise NotFoundError(f"{self.library.name}: song {error} has just been removed. Try again.") from None

    def names_at(self, rows: Rows | None = None) -> list[tuple[str, str]]:
        """:attr:`Song.title` and :attr:`Song.by` of some rows, or of every row, without reading a song; 2 us each."""
        if self._rows is None:
            return []
        return self._table.names_at(self._rows.places if rows is None else self._rows.places[np.asarray(rows)])

    def _ids_at(self, rows: Rows | None) -> Int64Array:
        return self.row_ids if rows is None else self.row_ids[np.asarray(rows, dtype=np.int64)]

    def find(self, text: str, limit: int = 20) -> Found:
        """Artists, albums and songs whose name holds a text in any case, with a vector or without.

        Where none does, those that hold it but for a typo.

        Parameters
        ----------
        limit : int
            Of all together; where there are enough songs, half are songs.

        Returns
        -------
        Found
            Names that begin with the text before others; artists of many songs before those of few.
        """
        for nearly in (False, True):
            artists = self._table.artists_with(text, limit, nearly=nearly)
            albums = self._albums_with(text, limit, nearly=nearly)
            songs = self.songs_by_id(self._table.ids_with(text, limit, nearly=nearly).tolist())
            if artists or albums or songs:
                break
        n_others = max(limit // 2, limit - len(songs))
        n_artists = min(len(artists), max(n_others // 2, n_others - len(albums)))
        n_albums = min(len(albums), n_others - n_artists)
        return Found(artists[:n_artists], albums[:n_albums], songs[: limit - n_artists - n_albums])

    def _albums_with(self, text: str, limit: int, *, nearly: bool) -> list[tuple[str, str, int]]:
        albums, lines = _albums_of(self._table, self.library)
        find = lines.nearly_holding if nearly else lines.holding
        return [albums[i] for i in find(text.casefold(), limit)]

    def songs_with(self, text: str, limit: int) -> list[Song]:
        """At most `limit` songs that match a text as :meth:`Song.matches` does; of their titles first, by id."""
        return self.songs_by_id(self._table.ids_with(text, limit).tolist())

    def songs_of_artist(self, name: str) -> Int64Array:
        """Rows of the songs of an artist, int64."""
        artist = self.columns.artist
        return np.flatnonzero(artist.codes == artist.names.index(name)) if name in artist.names else _NO_ROWS

    def tags_of(self, song_ids: Iterable[int] | None = None) -> dict[int, list[tuple[str, float]]]:
        """Tags with weights of some songs, or of all, heaviest first; only songs that have some."""
        if song_ids is None:
            return self.library.tags()
        return {i: tags for i, tags in self._tags_held.get(list(song_ids)).items() if tags}


_NO_ROWS = np.empty(0, dtype=np.int64)


def _read_albums(_: SongTable, library: Library) -> tuple[list[tuple[str, str, int]], PackedTexts]:
    counts = sorted(library.album_counts().items(), key=lambda item: (-item[1], item[0]))
    albums = [(name, by, n) for (name, by), n in counts]
    return albums, PackedTexts.of(name.casefold() for name, _, _ in albums)


_albums_of: OncePer[SongTable, tuple[list[tuple[str, str, int]], PackedTexts]] = OncePer(_read_albums)
"""Albums from many songs to few, and what is looked into; read again when a song has changed (3 s for a million)."""


def _as_int64(song_id: int) -> int:
    """An id, or -1 where it is of more than 64 bits, which no song's is."""
    return song_id if -(2**63) <= song_id < 2**63 else -1


class _Held(Generic[T]):
    """What was read of songs one by one, of those asked for last; safe in several threads."""

    def __init__(self, read: Callable[[list[int]], Mapping[int, T]]) -> None:
        self._read = read
        self._held: OrderedDict[int, T] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, ids: list[int]) -> dict[int, T]:
        """What there is of songs, by id."""
        with self._lock:
            found = {i: self._held[i] for i in ids if i in self._held}
        wanted = [i for i in dict.fromkeys(ids) if i not in found]
        if wanted:
            found |= self._read(wanted)
        with self._lock:
            for i, value in found.items():
                self._held[i] = value
                self._held.move_to_end(i)
            while len(self._held) > _SONGS_HELD:
                self._held.popitem(last=False)
        return found


def take_snapshot(library: Library, model_id: str | None = None) -> Snapshot:
    """The library as it stands, under the model in use or another one."""
    return Snapshot(library, library.revision, model_id)


def snapshot_under(library: Library, model: str | None) -> Snapshot:
    """The library as it stands, under the model of a name; None for the one in use.

    Raises NotFoundError if there is no model of the name.
    """
    return take_snapshot(library, library.models.named(model).id if model else None)
