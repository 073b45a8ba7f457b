"""A library: the songs of some folders, what is known of them, and where their arrays lie.

A library is one folder::

    library.sqlite        songs, files, tags, plays, playlists, models, jobs
    frames/ab/<hash>.npy  MFCC and fluctuation of a song, float16: models are refitted without decoding
    models/<id>/          a similarity model with the histograms and vectors of every song
    jobs/<id>.log         what a background job wrote
    logs/musicsim.log     a line for each job, and what went wrong; see :mod:`musicsim.logs`
    exports/              files for other programs, made on the Library page
    backups/              a copy a day of what people said; backups that were made on the Library page
    cache/                what can be made again: copies for browsers, a large library's columns, runs of ONNX models
    scratch/              what is needed while a process decodes or unpacks; swept when it was killed

Memory: ``songs()`` holds about 0.6 kB a song (60 MB for 100 000), ``table()`` 0.2 kB; histograms, vectors and
frames are memory maps. Everything may be read while one process writes.
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import filelock
import numpy as np
import sqlalchemy as sa

from musicsim import LIBRARY_FILE, __version__
from musicsim._arrays import Float32Array, Int64Array
from musicsim._parsing import parse_in_turn
from musicsim.audio import derivatives
from musicsim.errors import LibraryError, NotFoundError
from musicsim.extensions.listening_tests.store import ListeningTestStore
from musicsim.extensions.lyrics.store import LyricsStore
from musicsim.library.db import schema
from musicsim.library.db.changes import ChangeLog
from musicsim.library.db.columns import SongTable, nobody, some_ids, song_label
from musicsim.library.db.database import Tables, damaged, is_writable, open_engine, writer
from musicsim.library.db.integrity import check_database
from musicsim.library.db.schema_version import prepare_tables
from musicsim.library.db.settings import check_setting, default_settings
from musicsim.library.disk.leftovers import sweep
from musicsim.library.disk.replacing import finish_replacing
from musicsim.library.disk.writer import locked_error, note_doing, writer_lock
from musicsim.library.processes.pools import Pool
from musicsim.library.processes.workers import Limits
from musicsim.library.stores.all_opinions import Opinions
from musicsim.library.stores.duplicates import DuplicateStore, SamePair
from musicsim.library.stores.files import SKIPPED, FileStore
from musicsim.library.stores.frames import DescriptorStore, FrameStore
from musicsim.library.stores.jobs import JobStore
from musicsim.library.stores.listening import ListeningStore, Plays
from musicsim.library.stores.models import ModelStore, Vectors
from musicsim.library.stores.playlists import NewPlaylist, PlaylistStore, SavedPlaylist
from musicsim.library.stores.song_tables import SongTables
from musicsim.library.stores.splits import SplitStore
from musicsim.library.stores.tag_edits import TagEdits
from musicsim.library.tags.artists import artist_group, stand_in_name
from musicsim.public import is_public
from musicsim.storage import writing_to

_REFRESH_VERSION = 2  # grows when a refresh makes of the same songs more than before


@dataclass(frozen=True, slots=True)
class Song:
    """One song of a library; None where nothing is known."""

    id: int
    title: str
    artist: str | None
    album_artist: str | None
    album: str | None
    track: int | None
    year: int | None
    genre: str | None
    duration_s: float
    notes: str
    content_hash: str
    feature_version: int
    typical_s: float  # where the 30 seconds begin that are most like the whole song
    path: Path  # a file that holds it; of a song that is missing, the last one
    folder: str
    is_missing: bool  # whether no file holds it any more
    # what counts as "the same artist" in limits, spacing, colours and splits: the artist, else the folder,
    # else the song alone; never all unknown ones together
    group: str
    stand_in: str | None  # the folder's name where it stands for an unknown artist
    mb_recording_id: str | None = None
    # what can be heard: see musicsim.audio.Descriptors
    tempo: float | None = None
    key: str | None = None
    mode: str | None = None
    loudness: float | None = None
    brightness: float | None = None
    energy: float | None = None

    @property
    def by(self) -> str:
        """The artist, or what is said where none is known."""
        return self.artist or nobody(self.stand_in)

    @property
    def label(self) -> str:
        """Title and artist in one line."""
        return song_label(self.title, self.by)

    @property
    def key_words(self) -> str:
        """Key and mode in words; empty where they are not known."""
        return f"{self.key} {self.mode}" if self.key and self.mode else ""

    def matches(self, text: str) -> bool:
        """Whether title or artist hold the text, in any case."""
        return text.casefold() in f"{self.title} {self.artist or ''}".casefold()


class Store(Tables, Opinions):
    """Songs, their features and all that listeners said of them, in one folder.

    Made by :meth:`open`. Safe to use from several threads; every process opens its own.
    """

    def __init__(self, folder: Path, engine: sa.Engine) -> None:
        self.folder = folder
        Tables.__init__(self, engine, self.write)
        self.engine, self._log = engine, ChangeLog()
        Opinions.__init__(self, engine, self.write_unseen)
        self.models = ModelStore(folder / "models", engine, self.write, self._log, lambda: self.revision)
        self.files = FileStore(engine, self.write)
        self.frame_files = FrameStore(folder / "frames")
        self.descriptors = DescriptorStore(engine, self.write)
        self.edits = TagEdits(engine, self.write)
        self.duplicates = DuplicateStore(engine, self.write)
        self.jobs = JobStore(folder / "jobs", engine, self.write_unseen)
        self.listening = ListeningStore(engine, self.write)
        self.listening_tests = ListeningTestStore(engine, self.write_unseen)
        self.saved_playlists = PlaylistStore(engine, self.write)
        self.lyrics = LyricsStore(engine, self.write)
        self.splits = SplitStore(engine, self.write)
        self.pool: Pool | None = None  # workers elsewhere that analyze and encode songs; None: this machine does
        self._tables = SongTables(folder / "cache" / "songs.npz", engine, self.write, self._log, self.duplicates)

    @classmethod
    def open(cls, folder: str | Path, *, create: bool = True) -> Self:
        """Open the library in `folder`; make it when there is none and `create` is set.

        Raises
        ------
        NotFoundError
            If there is no library and `create` is False.
        LibraryError
            If the folder cannot be used, or does not hold a library with the tables of this version.

        Notes
        -----
        A library that cannot be written to, such as a backup, opens for looking, and so does that of a public
        demonstration; what would change it raises :class:`StorageError`.
        """
        parse_in_turn()  # threads read arrays
        folder = Path(folder).expanduser().absolute()
        file = folder / LIBRARY_FILE
        finish_replacing(folder)
        try:
            if (is_public() or not create) and not file.exists():
                raise NotFoundError(f"{folder}: there is no library here. Add a folder of music to make one.")
            if _is_emptied(file, create=create):
                raise LibraryError(
                    f"{file} is empty (0 bytes): what it held is lost. Restore a backup, or delete it to "
                    "start a new library."
                )
            if not file.exists():
                with writing_to(file):
                    folder.mkdir(parents=True, exist_ok=True)
                    file.touch()
            read_only = is_public() or not is_writable(file)
            engine = open_engine(file, read_only=read_only)
            with (engine if read_only else writer(engine)).begin() as connection:
                prepare_tables(connection, str(folder), read_only=read_only)
                if not read_only:
                    ChangeLog().begin(connection)
        except (OSError, sa.exc.DBAPIError, UnicodeDecodeError) as error:  # also of a damaged name of a table
            cause = getattr(error, "orig", None) or error
            raise LibraryError(
                f"{file}: cannot be opened as a library ({cause}). Restore a backup, or name another folder."
            ) from error
        return cls(folder, engine)

    def close(self) -> None:
        """Let go of the database."""
        self.engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.folder.name

    # --- transactions -------------------------------------------------------------------------

    @contextmanager
    def write_unseen(self) -> Iterator[sa.Connection]:
        """A transaction that pages need not be drawn again for: the revision stays."""
        with writer(self.engine).begin() as connection:
            yield connection
        self._after_write()

    def _after_write(self) -> None:
        """Called after each transaction."""

    @contextmanager
    def write(self) -> Iterator[sa.Connection]:
        """A transaction that changes songs or what is said of them; readers see :attr:`revision` move."""
        with self.write_unseen() as connection:
            self._log.watch(connection)
            yield connection
            connection.execute(
                sa.text(
                    "INSERT INTO meta (key, value) VALUES ('revision', '1') "
                    "ON CONFLICT (key) DO UPDATE SET value = CAST(value AS INTEGER) + 1"
                )
            )
            self._log.enter(connection)

    def note_change(self) -> None:
        """Let readers see :attr:`revision` move for what has changed beside the database."""
        with self.write():
            pass

    @property
    def revision(self) -> int:
        """Grows with every change: the key of whatever is cached about this library."""
        try:
            # a page asks dozens of times: what SQLAlchemy does around a query takes ten times as long
            connection = self.engine.raw_connection()
            with closing(connection), closing(connection.cursor()) as cursor:
                cursor.execute("SELECT value FROM meta WHERE key = 'revision'")
                found = cursor.fetchone()
        except sqlite3.Error:  # the same again, with the errors that all queries have
            return int(self.text("revision") or 0)
        return int(found[0]) if found else 0

    def text(self, key: str) -> str | None:
        """A text about the library; None if there is none. One whose key begins with "machine." is not restored."""
        return self._value(sa.select(schema.meta.c.value).where(schema.meta.c.key == key))

    def set_text(self, key: str, value: str, *, is_change: bool = False) -> None:
        """Keep a text about the library. Readers see :attr:`revision` move only if `is_change`."""
        with (self.write if is_change else self.write_unseen)() as connection:
            connection.execute(schema.meta.insert().prefix_with("OR REPLACE").values(key=key, value=value))

    def _refreshed(self) -> str:
        return f"{__version__} {_REFRESH_VERSION} {self.revision}"

    @property
    def is_refreshed(self) -> bool:
        """Whether the model, map and walk are up to the songs, and this version of the program saw to it."""
        return self.text("refreshed") == self._refreshed()

    def note_refreshed(self) -> None:
        """Note that model, map and walk are up to the songs as they stand; no change for readers."""
        self.set_text("refreshed", self._refreshed())

    def content_hashes(self) -> list[str]:
        """Hashes of the files of all songs, missing ones too."""
        return self._values(sa.select(schema.songs.c.content_hash))

    def content_hash(self, song_id: int) -> str:
        """The hash of the file of one song. Raises NotFoundError if there is none of this id."""
        found = self._value(sa.select(schema.songs.c.content_hash).where(schema.songs.c.id == song_id))
        if found is None:
            raise NotFoundError(f"{self.folder.name}: there is no song {song_id}.")
        return str(found)

    @property
    def settings(self) -> dict[str, Any]:
        """Settings of this library: the defaults, and what was changed in them."""
        return default_settings() | json.loads(self.text("settings") or "{}")

    @property
    def file_limits(self) -> Limits:
        """What reading one file may take, by the settings."""
        settings = self.settings
        return Limits(settings["file_seconds"], settings["file_memory_mb"])

    def set_setting(self, name: str, value: Any) -> None:
        """Change one setting; raises ValueError as :func:`check_setting`."""
        value = check_setting(name, value)
        self.set_text("settings", json.dumps(self.settings | {name: value}), is_change=True)

    def colours(self, kind: str) -> dict[str, int]:
        """The places in a palette that labels of a kind, such as genres, were given."""
        given: dict[str, int] = json.loads(self.text("colours") or "{}").get(kind, {})
        return given

    def keep_colours(self, kind: str, given: Mapping[str, int]) -> None:
        """Keep the places in a palette of labels of a kind; no change for readers."""
        colours = json.loads(self.text("colours") or "{}") | {kind: dict(given)}
        self.set_text("colours", json.dumps(colours))

    @contextmanager
    def exclusive(self, doing: str = "adding songs") -> Iterator[None]:
        """Be the one process that adds songs or fits models, after sweeping what killed processes left behind.

        `doing` completes "another musicsim is ... in this library" for processes that try the same meanwhile.

        Raises StoreLockedError if another process holds the lock; StorageError if the library cannot be written to.
        """
        try:
            with writing_to(self.folder):
                held = writer_lock(self.folder).acquire()
        except filelock.Timeout as error:
            raise locked_error(self.folder) from error
        with held:
            note_doing(self.folder, doing)
            try:
                sweep(self.folder)
                yield
            finally:
                note_doing(self.folder, None)

    def check(self) -> None:
        """Raise LibraryError if the database is damaged; seconds, of a large library."""
        file = self.folder / LIBRARY_FILE
        try:
            with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as connection:
                check_database(connection)
        except sqlite3.DatabaseError as error:
            raise damaged(file, error) from error

    # --- songs --------------------------------------------------------------------------------

    def __len__(self) -> int:
        f = schema.files.c
        query = sa.select(sa.func.count(f.song_id.distinct())).where(f.missing_since.is_(None))
        return self._value(query) or 0

    def songs(self, ids: Iterable[int] | None = None, *, missing: bool = False) -> list[Song]:
        """Songs in the order of their ids; all of them, or those of `ids` that exist.

        Parameters
        ----------
        ids : iterable of int, optional
        missing : bool
            Take songs without a file, too.
        """
        if ids is None:
            return self._songs(sa.true(), sa.true(), missing=missing)
        chosen = some_ids(ids)
        return self._songs(schema.songs.c.id.in_(chosen), schema.files.c.song_id.in_(chosen), missing=missing)

    def _songs(self, which: sa.ColumnElement[bool], of_files: sa.ColumnElement[bool], *, missing: bool) -> list[Song]:
        """Songs of a condition; `of_files` is what it says of their files, or all files would be looked through."""
        f = schema.files.c
        files = (
            sa.select(
                f.song_id,
                sa.func.min(f.path, type_=schema.FilePath()).label("path"),
                sa.func.min(f.folder, type_=schema.FilePath()).label("folder"),
            )
            .where(f.missing_since.is_(None), of_files)
            .group_by(f.song_id)
            .subquery()
        )
        columns = [c for c in schema.songs.c if c.name in Song.__dataclass_fields__]
        query = (
            sa.select(*columns, files.c.path, files.c.folder, schema.songs.c.last_path)
            .join(files, files.c.song_id == schema.songs.c.id, isouter=missing)
            .where(which)
            .order_by(schema.songs.c.id)
        )
        roots = self.files.roots()
        return [_song(dict(row._mapping), roots, self.folder) for row in self._rows(query)]

    def files_of(self, ids: Iterable[int]) -> dict[int, tuple[str, str]]:
        """The hash and the path of a file of each song that has one; a tenth of the time of :meth:`songs`."""
        s, f = schema.songs.c, schema.files.c
        path = sa.func.min(f.path, type_=sa.Text)
        query = sa.select(s.id, s.content_hash, path).join(schema.files, f.song_id == s.id)
        query = query.where(s.id.in_(some_ids(ids)), f.missing_since.is_(None)).group_by(s.id)
        with self.engine.connect() as connection:
            return {i: (digest, schema.path_text(text)) for i, digest, text in connection.execute(query)}

    def ids_matching(self, words: Sequence[str]) -> Int64Array:
        """Ids of the songs that have a file and hold every one of some words, in any case, int64 ascending.

        They are looked for in title, artist, album, genre, year and path; 3 s for a million songs.
        """
        if not words:
            return self.table().ids
        s, f = schema.songs.c, schema.files.c
        texts: list[sa.ColumnElement[Any]] = [s.title, s.artist, s.album, s.genre, s.year]
        if not is_public():  # visitors could ask for one folder of this machine after another
            texts.append(sa.type_coerce(f.path, sa.Text))
        text = sa.func.folded(*texts)
        query = sa.select(s.id).distinct().join(schema.files, f.song_id == s.id).where(f.missing_since.is_(None))
        holds = (sa.func.instr(text, word.casefold()) > 0 for word in words)
        with self.engine.connect() as connection:
            return np.sort(np.fromiter(connection.scalars(query.where(*holds)), dtype=np.int64))

    def missing_songs(self) -> list[Song]:
        """Songs without a file, in the order of their ids."""
        return self._songs(schema.songs.c.id.not_in(schema.ids_with_file()), sa.false(), missing=True)

    def table(self) -> SongTable:
        """Every song that has a file, as columns; the very same table until one of them changes."""
        return self._tables.songs()

    def same_pairs(self) -> list[SamePair]:
        """Pairs of songs with the same sound; the very same list until one of their songs changes."""
        return self._tables.same_pairs()

    def song(self, song_id: int) -> Song:
        """One song, with a file or without. Raises NotFoundError if there is none of this id."""
        found = self.songs([song_id], missing=True)
        if not found:
            raise NotFoundError(f"{self.folder.name}: there is no song {song_id}. `musicsim list` shows the ids.")
        return found[0]

    def outline(self, song_id: int) -> Float32Array:
        """The song's peaks for drawing, float32 (n_bins,), in [0, 1].

        Raises NotFoundError if there is no such song.
        """
        stored = self._value(sa.select(schema.songs.c.outline).where(schema.songs.c.id == song_id))
        if stored is None:
            raise NotFoundError(f"{self.folder.name}: there is no song {song_id}.")
        return np.frombuffer(stored, dtype=np.uint8).astype(np.float32) / np.float32(255)

    def song_with_sound(self, content_hash: str, sound_hash: str) -> int | None:
        """The id of the song with these bytes, else of one with this sound; None when it is not here."""
        s = schema.songs.c
        same_bytes = s.content_hash == content_hash
        query = sa.select(s.id).where(sa.or_(same_bytes, s.sound_hash == sound_hash))
        return self._value(query.order_by(sa.desc(same_bytes), s.id).limit(1))

    def sound_hash(self, song_id: int) -> str:
        """The hash of a song's sound, which new tags and another name leave as it is; empty where it is not known."""
        return self._value(sa.select(schema.songs.c.sound_hash).where(schema.songs.c.id == song_id)) or ""

    # --- features -----------------------------------------------------------------------------

    def frames(self, song: Song) -> Float32Array:
        """Delta-MFCC frames of a song, float32 (n_frames, 39), from the kept MFCC; 13 kB a second.

        Of a song of hours take :meth:`FrameStore.blocks`; all that is kept gives :meth:`FrameStore.frames`.

        Raises FeatureVersionError if they were not kept.
        """
        return derivatives(self.frame_files.mfcc(song.content_hash).astype(np.float32))

    def vectors(self, model: str | None = None) -> Vectors:
        """Vectors of all songs under a model: the active one, or the one with this id."""
        return self.models.vectors(model)

    # --- what listeners said ------------------------------------------------------------------

    def plays(self) -> Plays:
        """Who played which song how often, all sources summed; see :class:`Plays`."""
        return self.listening.plays()

    def albums(self, min_songs: int = 1) -> dict[int, tuple[str, str | None]]:
        """The album and its artist by song id, of songs on albums whose name so many songs have; 0.2 kB each."""
        s = schema.songs.c
        large = sa.select(s.album).where(s.album.is_not(None)).group_by(s.album)
        named = large.having(sa.func.count() >= min_songs)
        rows = self._rows(sa.select(s.id, s.album, s.album_artist).where(s.album.in_(named)))
        return {row.id: (row.album, row.album_artist) for row in rows}

    def album_counts(self) -> dict[tuple[str, str], int]:
        """How many songs each album has, by its name and its artist, where one is named; 1 s for a million songs."""
        s = schema.songs.c
        by = sa.func.coalesce(s.album_artist, s.artist, "")
        query = sa.select(s.album, by, sa.func.count()).where(s.album.is_not(None)).group_by(s.album, by)
        with self.engine.connect() as connection:
            return {(album, artist): n for album, artist, n in connection.execute(query)}

    def songs_of_album(self, name: str, by: str) -> list[int]:
        """Ids of the songs of an album, in the order of their tracks; its artist as :meth:`album_counts` has it."""
        s = schema.songs.c
        is_by = sa.func.coalesce(s.album_artist, s.artist, "") == by
        query = sa.select(s.id).where(s.album == name, is_by).order_by(s.track, s.id)
        with self.engine.connect() as connection:
            return list(connection.scalars(query))

    def tags(self, song_ids: Iterable[int] | None = None) -> dict[int, list[tuple[str, float]]]:
        """Tags of every song that has some, or of those among `song_ids`, heaviest first."""
        if song_ids is None:
            return self.listening.tags()
        t = schema.tags.c
        weight = sa.func.max(t.weight)
        query = sa.select(t.song_id, t.tag, weight).where(t.song_id.in_(some_ids(song_ids)))
        found: dict[int, list[tuple[str, float]]] = {}
        rows = self._rows(query.group_by(t.song_id, t.tag).order_by(weight.desc(), t.tag))
        for song_id, tag, of_tag in rows:
            found.setdefault(song_id, []).append((tag, of_tag))
        return found

    def add_tags(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Add or replace tags: rows of song_id, tag, weight."""
        self.listening.add_tags(rows)

    def add_plays(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Add or replace plays: rows of listener, song_id, count."""
        self.listening.add_plays(rows)

    def counts(self) -> dict[str, float]:
        """How many songs, hours, artists, missing, failed, skipped, tags, listeners, plays and playlists."""
        t, p = schema.tags.c, schema.plays.c
        skipped = schema.failures.c.kind.in_(SKIPPED)
        here = self.table()
        questions = {
            "failed": sa.select(sa.func.count()).select_from(schema.failures).where(~skipped),
            "skipped": sa.select(sa.func.count()).select_from(schema.failures).where(skipped),
            "tags": sa.select(sa.func.count(t.tag.distinct())),
            "listeners": sa.select(sa.func.count(p.listener.distinct())),
            "plays": sa.select(sa.func.coalesce(sa.func.sum(p.count), 0)),
            "playlists": sa.select(sa.func.count()).select_from(schema.playlists),
        }
        found = {name: self._value(question) or 0 for name, question in questions.items()}
        return {
            "songs": len(here.ids),
            "hours": float(here.columns.duration_s.sum()) / 3600,
            "artists": len(here.columns.artist.names),
            "missing": self._tables.n_missing(),
            **found,
        }

    def playlists(self, source: str | None = None) -> list[SavedPlaylist]:
        """Playlists with their songs in order; all, or those of one source."""
        return self.saved_playlists.all(source)

    def add_playlists(self, playlists: Iterable[NewPlaylist], source: str) -> int:
        """Add playlists, as :meth:`PlaylistStore.add` does; returns how many were written."""
        return self.saved_playlists.add(playlists, source)


def _is_emptied(file: Path, *, create: bool) -> bool:
    """Whether a database has lost its content; one that is about to be made lies in a folder with nothing else."""
    if not file.exists() or file.stat().st_size:
        return False
    return not create or any(not other.name.startswith(file.name) for other in file.parent.iterdir())


def _song(row: dict[str, Any], roots: Sequence[Path], library: Path) -> Song:
    last = row.pop("last_path")
    is_missing = row["path"] is None
    if is_missing:
        row |= {"path": last, "folder": last.parent}
    group = artist_group(row["artist"], row["folder"], roots) or f"song:{row['id']}"
    stand_in = None if row["artist"] else stand_in_name(row["folder"], roots)
    row["folder"] = str(row["folder"])
    row["path"] = library / row["path"]  # a relative path lies in the library's folder
    return Song(**row, is_missing=is_missing, group=group, stand_in=stand_in)
