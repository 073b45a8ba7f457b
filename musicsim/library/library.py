"""A library: songs, their features, and all listening data, in one folder.

Besides the database ``library.sqlite``, the folder contains:

- ``frames/ab/<hash>.npy``: MFCCs, fluctuation and spectral shape of a song, to refit models without decoding
- ``models/<id>/``: a similarity model with the histograms and vectors of every song
- ``jobs/<id>.log`` and ``logs/musicsim.log``: output of background jobs, and the program's log
- ``exports/`` and ``backups/``: files made on the Library page, and daily small copies
- ``cache/`` and ``scratch/``: data that can be rebuilt, and temporary files

``songs()`` takes 0.6 kB per song, and ``table()`` takes 0.2 kB. Any number of processes can read while one writes.
"""

import json
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any, Self

import filelock
import numpy as np
import sqlalchemy as sa

from musicsim import LIBRARY_FILE, __version__
from musicsim._arrays import Float32Array, Int64Array
from musicsim.audio import derivatives
from musicsim.errors import DiskFullError, LibraryError, NotFoundError
from musicsim.library import scan
from musicsim.library.db import schema
from musicsim.library.db.changes import begin_log, collect_changes, log_changes
from musicsim.library.db.columns import SongTable, some_ids
from musicsim.library.db.database import damage_error, has_unwritten, is_writable, open_engine, writer
from musicsim.library.db.integrity import check_database
from musicsim.library.db.schema_version import prepare_tables
from musicsim.library.db.settings import check_setting, default_settings, parse_settings
from musicsim.library.disk.scratch import sweep
from musicsim.library.disk.writer import finish_replacing, lock_error, note_doing, writer_lock
from musicsim.library.processes.pools import WorkerPool
from musicsim.library.processes.workers import Limits
from musicsim.library.stores.duplicates import DuplicateStore, SamePair
from musicsim.library.stores.files import SKIPPED, FileStore
from musicsim.library.stores.frames import DescriptorStore, FrameStore
from musicsim.library.stores.jobs import JobStore
from musicsim.library.stores.judgments import Opinions
from musicsim.library.stores.listening import ListeningStore, Plays
from musicsim.library.stores.models import ModelStore, Vectors
from musicsim.library.stores.player_plays import PlayerPlays
from musicsim.library.stores.playlists import NewPlaylist, PlaylistStore, SavedPlaylist
from musicsim.library.stores.small_copies import SmallCopies
from musicsim.library.stores.song_tables import SongTables
from musicsim.library.stores.songs import Song, make_song
from musicsim.library.stores.splits import SplitStore
from musicsim.library.stores.tag_edits import TagEdits
from musicsim.parsing import parse_in_turn
from musicsim.progress import Progress, no_progress
from musicsim.public import is_public, protect
from musicsim.storage import check_mounted, has_room, writing_to

_REFRESH_VERSION = 3  # increase this when a refresh computes more from the same songs


_ALBUM_ARTIST = sa.func.coalesce(schema.songs.c.album_artist, schema.songs.c.artist, "")
_OWN_ALBUM = 5  # an artist with this many songs on an album has an album of their own


def _join_albums(rows: Iterable[Any]) -> dict[tuple[str, str], str]:
    """Map each (album, artist) to the artist with the most songs on that album in the same folder.

    Album artists, and artists with many songs, keep albums of their own.
    """
    heads: dict[tuple[str, Any], str] = {}
    joined: dict[tuple[str, str], str] = {}
    for album, by, is_sure, folder, n in sorted(rows, key=lambda row: (-row[4], row[1])):
        head = heads.setdefault((album, folder), by)
        joined.setdefault((album, by), by if is_sure or n >= _OWN_ALBUM else joined.get((album, head), head))
    return joined


Place = tuple[Path, int, int]
"""A library's folder, and the device and inode of its database, which tell two disks in the same place apart."""


def _place_of(folder: Path) -> Place:
    file = (folder / LIBRARY_FILE).stat()
    return folder, file.st_dev, file.st_ino


def _connect(file: Path, *, read_only: bool, is_full: bool = False) -> sa.Engine:
    engine = open_engine(file, read_only=read_only, is_full=is_full)
    with (engine if read_only else writer(engine)).begin() as connection:
        prepare_tables(connection, str(file.parent), read_only=read_only)
        if not read_only:
            begin_log(connection)
    return engine


class Library(Opinions):
    """Songs, their features and listening data; use :meth:`open`. Thread-safe; each process must open its own.

    Examples
    --------
    >>> import tempfile
    >>> from musicsim.demo import plan_collection, write_song
    >>> from musicsim.library import Library
    >>> plans = plan_collection(n_artists_per_style=1, n_songs_per_artist=2, styles=["Ambient"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     paths = [write_song(plan, folder + "/Music") for plan in plans]
    ...     with Library.open(folder + "/library") as library:
    ...         report = library.add(folder + "/Music", n_workers=1)
    ...         print(len(library), sorted(song.genre for song in library.songs()))
    ...
    2 ['Ambient', 'Ambient']
    """

    def __init__(self, folder: Path, engine: sa.Engine, *, is_full: bool = False) -> None:
        super().__init__(engine, self.write_unseen)
        self.folder, self.engine = folder, engine
        self.place, self._is_full = _place_of(folder), is_full
        self.models = ModelStore(folder / "models", engine, self.write, lambda: self.revision)
        self.files = FileStore(engine, self.write)
        self.frame_files = FrameStore(folder / "frames")
        self.descriptors = DescriptorStore(engine, self.write)
        self.edits = TagEdits(engine, self.write)
        self.duplicates = DuplicateStore(engine, self.write)
        self.jobs = JobStore(folder / "jobs", engine, self.write_unseen)
        self.listening = ListeningStore(engine, self.write)
        self.player_plays = PlayerPlays(engine, self.write_unseen)
        self.saved_playlists = PlaylistStore(engine, self.write)
        self.splits = SplitStore(engine, self.write)
        self.copies = SmallCopies(folder, self.write, self.edits)
        self._own = threading.local()  # `marks`: the texts with a revision that the changes of this thread move on
        self.pool: WorkerPool | None = None  # a cluster that analyzes and encodes songs; None: this machine
        self._tables = SongTables(folder / "cache" / "songs.npz", engine, self.write, self.duplicates)

    @classmethod
    def open(cls, folder: str | Path, *, create: bool = True) -> Self:
        """Open the library in `folder`; create it if it does not exist and `create` is set.

        The library is read-only in a public demonstration, if its database cannot be written to, or if its disk is
        full. Raises NotFoundError if it does not exist and `create` is False, LibraryAwayError if its disk is not
        mounted, and LibraryError if it is damaged or its version is not supported.
        """
        parse_in_turn()  # several threads read arrays, and numpy parses the header of each
        folder = Path(folder).expanduser().absolute()
        file = folder / LIBRARY_FILE
        finish_replacing(folder)
        if visits := is_public():
            protect(folder)
        try:
            if (visits or not create) and not file.exists():
                raise NotFoundError(f"{folder}: no library found. Add a folder of music to create one.")
            # a newly created database is the only file in its folder
            is_empty = file.exists() and not file.stat().st_size
            if is_empty and not (create and all(p.name.startswith(file.name) for p in folder.iterdir())):
                raise LibraryError(
                    f"{file} is empty (0 bytes), so its content is lost. Restore a backup, or delete the "
                    "file to start a new library."
                )
            if not file.exists():
                check_mounted(folder)
                with writing_to(file):
                    folder.mkdir(parents=True, exist_ok=True)
                    file.touch()
            read_only = visits or not is_writable(file)
            is_full = False
            try:
                engine = _connect(file, read_only=read_only)
            except DiskFullError:
                if not file.stat().st_size or has_unwritten(file):
                    raise
                engine, is_full = _connect(file, read_only=True, is_full=True), True
        except (OSError, sa.exc.DBAPIError, UnicodeDecodeError) as error:  # UnicodeDecodeError: a table name is damaged
            cause = getattr(error, "orig", None) or error
            raise LibraryError(
                f"{file}: cannot be opened as a library ({cause}). Restore a backup, or choose another folder."
            ) from error
        return cls(folder, engine, is_full=is_full)

    def is_current(self) -> bool:
        """Return whether opening the folder again would give the same database, in the same way."""
        try:
            return self.place == _place_of(self.folder) and not (self._is_full and has_room(self.folder))
        except OSError:
            return False

    def close(self) -> None:
        self.engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def name(self) -> str:
        return self.folder.name

    @contextmanager
    def write_unseen(self) -> Iterator[sa.Connection]:
        """Open a write transaction that keeps the revision, so that pages are not redrawn."""
        with writer(self.engine).begin() as connection:
            yield connection
        self.copies.keep_daily()

    @contextmanager
    def write(self) -> Iterator[sa.Connection]:
        """Open a write transaction that increases :attr:`revision`."""
        with self.write_unseen() as connection:
            collect_changes(connection)
            yield connection
            connection.exec_driver_sql(
                "INSERT INTO meta (key, value) VALUES ('revision', '1') "
                "ON CONFLICT (key) DO UPDATE SET value = CAST(value AS INTEGER) + 1"
            )
            revision = log_changes(connection)
            m, marks = schema.meta, (self._refresh_mark(revision - 1), self._refresh_mark(revision))
            for key in getattr(self._own, "marks", ()):
                connection.execute(m.update().where(m.c.key == key, m.c.value == marks[0]).values(value=marks[1]))

    def note_change(self) -> None:
        with self.write():
            pass

    @property
    def revision(self) -> int:
        """A number that increases with every change; caches of the library's data are keyed by it."""
        try:
            # pages read it dozens of times, and SQLAlchemy takes ten times as long as the query itself
            connection = self.engine.raw_connection()
            with closing(connection), closing(connection.cursor()) as cursor:
                cursor.execute("SELECT value FROM meta WHERE key = 'revision'")
                row = cursor.fetchone()
        except sqlite3.Error:  # retry through SQLAlchemy, which translates errors
            return int(self.text("revision") or 0)
        return int(row[0]) if row else 0

    def text(self, key: str) -> str | None:
        """Return a stored string, or None. Keys that begin with "machine." are not restored from a backup."""
        return self._value(sa.select(schema.meta.c.value).where(schema.meta.c.key == key))

    def update_text(self, key: str, change: Callable[[str | None], str], *, is_change: bool = False) -> str:
        """Replace a stored string by `change` of it, and return it; :attr:`revision` increases only if `is_change`.

        No change by others is lost. `change` gets None if no string is stored.
        """
        return self._update_text(key, change, self.write if is_change else self.write_unseen)

    def set_text(self, key: str, value: str) -> None:
        """Store a string that does not depend on the stored one; :attr:`revision` stays the same."""
        self.update_text(key, lambda _: value)

    @staticmethod
    def _refresh_mark(revision: int) -> str:
        return f"{__version__} {_REFRESH_VERSION} {revision}"

    @property
    def is_refreshed(self) -> bool:
        """Return whether this version of musicsim refreshed the model, map and playlist walk after the last change."""
        return self.text("refreshed") == self._refresh_mark(self.revision)

    @contextmanager
    def _move_mark(self, key: str) -> Iterator[None]:
        """Let each change of this thread move a mark in its own transaction, if nobody else's change is in between."""
        before = getattr(self._own, "marks", ())
        self._own.marks = (*before, key)
        try:
            yield
        finally:
            self._own.marks = before

    @contextmanager
    def note_refresh(self) -> Iterator[None]:
        """Record after the block that models, maps and walks match the songs, unless others changed them meanwhile."""
        self.set_text("refreshing", self._refresh_mark(self.revision))
        with self._move_mark("refreshing"):
            yield
        self.set_text("refreshed", self.text("refreshing") or "")

    def stay_refreshed(self) -> AbstractContextManager[None]:
        """Leave the library as refreshed as it was; for this thread's changes that models and maps do not depend on."""
        return self._move_mark("refreshed")

    def content_hashes(self) -> list[str]:
        """Return the content hashes of all songs, including missing ones."""
        return self._values(sa.select(schema.songs.c.content_hash))

    def content_hash(self, song_id: int) -> str:
        """Return the content hash of a song. Raises NotFoundError if the song does not exist."""
        return str(self._song_value(song_id, schema.songs.c.content_hash))

    def _song_value(self, song_id: int, column: sa.ColumnElement[Any]) -> Any:
        value = self._value(sa.select(column).where(schema.songs.c.id == song_id))
        if value is None:
            raise self._no_song(song_id)
        return value

    def _no_song(self, song_id: int) -> NotFoundError:
        return NotFoundError(f"{self.folder.name}: song {song_id} does not exist. `musicsim list` shows the ids.")

    @property
    def settings(self) -> dict[str, Any]:
        return self._read_settings(self.text("settings"))

    @staticmethod
    def _read_settings(text: str | None) -> dict[str, Any]:
        return default_settings() | parse_settings(text)

    @property
    def file_limits(self) -> Limits:
        settings = self.settings
        return Limits(settings["file_seconds"], settings["file_memory_mb"])

    def set_setting(self, name: str, value: Any) -> None:
        """Change one setting. Raises ValueError if the name is unknown or the value is invalid."""
        value = check_setting(name, value)
        self.update_text("settings", lambda text: json.dumps(self._read_settings(text) | {name: value}), is_change=True)

    def colors(self, kind: str) -> dict[str, int]:
        """Return the palette position of each label of one kind, such as genres."""
        positions: dict[str, int] = json.loads(self.text("colours") or "{}").get(kind, {})
        return positions

    def update_colors(self, kind: str, change: Callable[[dict[str, int]], Mapping[str, int]]) -> dict[str, int]:
        """Replace the palette positions of one kind's labels by `change` of them, and return them."""

        def update(text: str | None) -> str:
            colors = json.loads(text or "{}")
            return json.dumps(colors | {kind: dict(change(colors.get(kind, {})))})

        positions: dict[str, int] = json.loads(self.update_text("colours", update))[kind]
        return positions

    @contextmanager
    def exclusive(self, doing: str = "adding songs") -> Iterator[None]:
        """Hold the lock for adding songs or fitting models; others get a StoreLockedError that mentions `doing`."""
        try:
            with writing_to(self.folder):
                lock = writer_lock(self.folder).acquire()
        except filelock.Timeout as error:
            raise lock_error(self.folder) from error
        with lock:
            note_doing(self.folder, doing)
            try:
                sweep(self.folder)
                yield
            finally:
                note_doing(self.folder, None)

    def check(self) -> None:
        """Raise LibraryError if the database is damaged; takes seconds for a large library."""
        file = self.folder / LIBRARY_FILE
        try:
            with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as connection:
                check_database(connection)
        except sqlite3.DatabaseError as error:
            raise damage_error(file, error) from error

    def add(
        self, sources: str | Path | Sequence[str | Path], progress: Progress = no_progress, **options: Any
    ) -> "scan.AddReport":
        """Add the audio files below `sources`, which become the library's folders.

        `progress` is called with a message and the number of finished and of all files; see
        :class:`musicsim.progress.Progress`. The `options` are those of :class:`musicsim.library.scan.ingest.Scan`:
        `retry`, `anyway`, `absent_ok` and `n_workers`. The report counts the files and lists the failures.
        """
        started = scan.Scan(self, sources, **options)
        self.files.add_roots(started.sources)
        if started.run(progress):
            started.finish()
        return started.report

    def __len__(self) -> int:
        f = schema.files.c
        query = sa.select(sa.func.count(f.song_id.distinct())).where(f.missing_since.is_(None))
        return self._value(query) or 0

    def songs(self, ids: Iterable[int] | None = None, *, missing: bool = False) -> list[Song]:
        """Return all songs, or those in `ids` that exist, ordered by id; `missing` includes songs without a file."""
        if ids is None:
            return self._songs(sa.true(), sa.true(), missing=missing)
        wanted = some_ids(ids)
        return self._songs(schema.songs.c.id.in_(wanted), schema.files.c.song_id.in_(wanted), missing=missing)

    def songs_in_order(self, ids: Iterable[int]) -> list[Song]:
        """Return the songs of a list that exist, in its order; the list can contain repeats and missing songs."""
        wanted = list(ids)
        songs = {song.id: song for song in self.songs(wanted, missing=True)}
        return [songs[i] for i in wanted if i in songs]

    def _songs(
        self, condition: sa.ColumnElement[bool], file_condition: sa.ColumnElement[bool], *, missing: bool
    ) -> list[Song]:
        """Return the songs that meet a condition; `file_condition` is the same condition for the table of files."""
        f = schema.files.c
        path, folder = (sa.func.min(c, type_=schema.FilePath()).label(c.name) for c in (f.path, f.folder))
        file_query = sa.select(f.song_id, path, folder).where(f.missing_since.is_(None), file_condition)
        files = file_query.group_by(f.song_id).subquery()
        columns = [c for c in schema.songs.c if c.name in Song.__dataclass_fields__]
        query = sa.select(*columns, files.c.path, files.c.folder, schema.songs.c.last_path)
        query = query.join(files, files.c.song_id == schema.songs.c.id, isouter=missing)
        query = query.where(condition).order_by(schema.songs.c.id)
        roots = self.files.roots()
        return [make_song(dict(row._mapping), roots, self.folder) for row in self._rows(query)]

    def files_of(self, ids: Iterable[int]) -> dict[int, tuple[str, str]]:
        """Return the content hash and one path of each song with a file, keyed by id; ten times as fast as `songs`."""
        s, f = schema.songs.c, schema.files.c
        path = sa.func.min(f.path, type_=sa.Text)
        query = sa.select(s.id, s.content_hash, path).join(schema.files, f.song_id == s.id)
        query = query.where(s.id.in_(some_ids(ids)), f.missing_since.is_(None)).group_by(s.id)
        return {i: (digest, schema.path_text(text)) for i, digest, text in self._rows(query)}

    def ids_matching(self, words: Sequence[str]) -> Int64Array:
        """Return the ids of songs with all `words` in their tags or path, int64, ascending; 3 s for a million songs."""
        if not words:
            return self.table().ids
        s, f = schema.songs.c, schema.files.c
        texts: list[sa.ColumnElement[Any]] = [s.title, s.artist, s.album, s.genre, s.year]
        if not is_public():  # otherwise visitors could find out folder names on this machine
            texts.append(sa.type_coerce(f.path, sa.Text))
        conditions = [sa.func.instr(sa.func.folded(*texts), word.casefold()) > 0 for word in words]
        query = sa.select(s.id).distinct().join(schema.files, f.song_id == s.id)
        query = query.where(f.missing_since.is_(None), *conditions)
        return np.sort(np.array(self._values(query), dtype=np.int64))

    def missing_songs(self) -> list[Song]:
        """Return the songs without a file, ordered by id."""
        return self._songs(schema.songs.c.id.not_in(schema.ids_with_file()), sa.false(), missing=True)

    def table(self) -> SongTable:
        """Return all songs with a file as columns; the result is the same object until a song changes."""
        return self._tables.songs()

    def same_pairs(self) -> list[SamePair]:
        """Return pairs of songs with the same sound; the result is the same object until one of these songs changes."""
        return self._tables.same_pairs()

    def song(self, song_id: int) -> Song:
        """Return one song, with or without a file. Raises NotFoundError if the song does not exist."""
        songs = self.songs([song_id], missing=True)
        if not songs:
            raise self._no_song(song_id)
        return songs[0]

    def outline(self, song_id: int) -> Float32Array:
        """Return the peaks of a song, float32 (n_bins,) in [0, 1]. Raises NotFoundError if the song does not exist."""
        stored = self._song_value(song_id, schema.songs.c.outline)
        return np.frombuffer(stored, dtype=np.uint8).astype(np.float32) / np.float32(255)

    def song_with_sound(self, content_hash: str, sound_hash: str) -> int | None:
        """Find a song by content hash, then by sound hash; return its id, or None if both hashes are unknown."""
        s = schema.songs.c
        same_bytes = s.content_hash == content_hash
        query = sa.select(s.id).where(sa.or_(same_bytes, s.sound_hash == sound_hash))
        return self._value(query.order_by(sa.desc(same_bytes), s.id).limit(1))

    def sound_hash(self, song_id: int) -> str:
        """Return the hash of a song's sound, which does not depend on tags; "" if unknown."""
        return self._value(sa.select(schema.songs.c.sound_hash).where(schema.songs.c.id == song_id)) or ""

    def frames(self, song: Song) -> Float32Array:
        """Return a song's delta-MFCC frames, float32 (n_frames, 39). Raises FeatureVersionError if they are missing."""
        return derivatives(self.frame_files.frames(song.content_hash).mfcc.astype(np.float32))

    def vectors(self, model: str | None = None) -> Vectors:
        """Return the vectors of all songs in a model; by default, in the active one."""
        return self.models.vectors(model)

    def plays(self) -> Plays:
        return self.listening.plays()

    def albums(self, min_songs: int = 1) -> dict[int, tuple[str, str | None]]:
        """Return (album, album artist) keyed by song id, for albums of at least `min_songs` songs; 0.2 kB per song."""
        s = schema.songs.c
        large = sa.select(s.album).where(s.album.is_not(None)).group_by(s.album)
        large = large.having(sa.func.count() >= min_songs)
        rows = self._rows(sa.select(s.id, s.album, s.album_artist).where(s.album.in_(large)))
        return {row.id: (row.album, row.album_artist) for row in rows}

    def album_counts(self) -> Counter[tuple[str, str]]:
        """Return the number of songs per (album, artist); "" is an unknown artist; takes 3 s for a million songs."""
        rows = self._album_rows(schema.songs.c.album.is_not(None))
        joined, counts = _join_albums(rows), Counter[tuple[str, str]]()
        for album, by, _, _, n in rows:
            counts[album, joined[album, by]] += n
        return counts

    def songs_of_album(self, name: str, by: str) -> list[int]:
        """Return an album's song ids, ordered by track number; `by` is its artist in :meth:`album_counts`."""
        s = schema.songs.c
        artists = [
            artist for (_, artist), head in _join_albums(self._album_rows(s.album == name)).items() if head == by
        ]
        query = sa.select(s.id).where(s.album == name, _ALBUM_ARTIST.in_(artists))
        return self._values(query.order_by(s.track, s.id))

    def album_songs(self) -> dict[tuple[str, str], list[int]]:
        """Return the song ids of every album, keyed as in :meth:`album_counts`; takes 7 s for a million songs."""
        s = schema.songs.c
        joined = _join_albums(self._album_rows(s.album.is_not(None)))
        songs: dict[tuple[str, str], list[int]] = {}
        for song_id, album, by in self._rows(sa.select(s.id, s.album, _ALBUM_ARTIST).where(s.album.is_not(None))):
            songs.setdefault((album, joined.get((album, by), by)), []).append(song_id)
        return songs

    def _album_rows(self, condition: sa.ColumnElement[bool]) -> Sequence[Any]:
        """Return rows: album, artist, whether the artist is an album artist, folder, and number of songs."""
        s, f = schema.songs.c, schema.files.c
        first = sa.func.min(sa.type_coerce(f.folder, sa.types.NullType()))  # not as a path, which takes longer
        folder = sa.select(first).where(f.song_id == s.id).scalar_subquery().label("folder")
        keys = (s.album, _ALBUM_ARTIST, s.album_artist.is_not(None).label("is_sure"), folder)
        return list(self._rows(sa.select(*keys, sa.func.count()).where(condition).group_by(*keys)))

    def tags(self, song_ids: Iterable[int] | None = None) -> dict[int, list[tuple[str, float]]]:
        """Return the tags of all tagged songs, or of those in `song_ids`, by descending weight."""
        return self.listening.tags(song_ids)

    def add_tags(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Add or replace tags; each row has a song_id, tag and weight."""
        self.listening.add_tags(rows)

    def add_plays(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Add or replace plays; each row has a listener, song_id and count."""
        self.listening.add_plays(rows)

    def counts(self) -> dict[str, float]:
        """Count songs, hours, artists, missing, failed and skipped files, tags, listeners, plays and playlists."""
        t, p = schema.tags.c, schema.plays.c
        skipped = schema.failures.c.kind.in_(SKIPPED)
        queries = {
            "failed": sa.select(sa.func.count()).select_from(schema.failures).where(~skipped),
            "skipped": sa.select(sa.func.count()).select_from(schema.failures).where(skipped),
            "tags": sa.select(sa.func.count(t.tag.distinct())),
            "listeners": sa.select(sa.func.count(p.listener.distinct())),
            "plays": sa.select(sa.func.coalesce(sa.func.sum(p.count), 0)),
            "playlists": sa.select(sa.func.count()).select_from(schema.playlists),
        }
        columns = self.table().columns
        return {
            "songs": len(columns.duration_s),
            "hours": float(columns.duration_s.sum()) / 3600,
            "artists": len(columns.artist.names),
            "missing": self._tables.n_missing(),
            **{name: self._value(query) or 0 for name, query in queries.items()},
        }

    def playlists(self, source: str | None = None) -> list[SavedPlaylist]:
        """Return all playlists, or those from one source, with their songs in order."""
        return self.saved_playlists.all(source)

    def add_playlists(self, playlists: Iterable[NewPlaylist], source: str) -> int:
        """Add playlists and return their number; see :meth:`PlaylistStore.add`."""
        return self.saved_playlists.add(playlists, source)
