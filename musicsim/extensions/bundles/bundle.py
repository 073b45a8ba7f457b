"""Bundles, called snapshot files on the pages: a library for visitors in one file, without the music."""

import json
import logging
import os
import re
import shutil
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO

import filelock
import numpy as np
import sqlalchemy as sa

from musicsim import LIBRARY_FILE, __version__, storage
from musicsim.audio import TYPICAL_S, transcode, transcode_suffix
from musicsim.errors import LibraryError, NotFoundError, StorageError
from musicsim.explorer import load_report, play_counts, take_snapshot
from musicsim.extensions.bundles import public_copy
from musicsim.library import (
    BUILT_IN,
    CHANGES_PREFIX,
    SCHEMA_VERSION,
    CopyWriter,
    Library,
    LocalPool,
    ModelRecord,
    copy_kind,
    open_copy,
    parse_settings,
    read_settings,
    write_copy,
)
from musicsim.library.db import schema
from musicsim.progress import Progress

_log = logging.getLogger(__name__)

ENDING = ".tar.zst"
_REPORT = "report.json"
_INDEX_FILE = r"[a-z_]+\.(npy|npz|json)"
_EXCERPT = rf"{public_copy.EXCERPTS}/\d{{3}}/\d{{1,18}}\.(mp3|wav)"
_BUNDLE = copy_kind(
    "snapshot file",
    "snapshot.json",
    rf"models/[\w-]+/index/{_INDEX_FILE}|{_EXCERPT}",
    ". Download it again, or write a new one.",
    mode=0o644,
)
# endings of a bundle's path and of locks: for readers of the unpacked folder, and for the process that unpacks it
_SOURCE, _READERS, _UNPACKING = ".used", ".readers", ".lock"
_MARKS = "marks.lock"  # held for a moment, while a reader is added or unused folders are removed
_BITRATE = 96_000  # bitrate of excerpts
_SONGS_AT_ONCE = 1000
_META = {"schema_version", "revision", "settings", "colours"}  # the only keys allowed in the table `meta`


def write_bundle(
    library: Library, target: Path, progress: Progress, *, models: Iterable[str] = (), with_excerpts: bool = False
) -> tuple[int, int]:
    """Write a bundle of a library, and return how many songs and excerpts it contains.

    A bundle contains the active and built-in models, the models named in `models`, and all models that provide
    features for these. `with_excerpts` adds the most typical 30 seconds of each song. An existing bundle is replaced
    once the new one is complete.
    """
    store = library.models
    records = [store.get(), *map(store.find, models), *(record for record in store.all() if record.kind in BUILT_IN)]
    model_ids = list(dict.fromkeys([*(record.id for record in records), *(record.features_of for record in records)]))
    plays = play_counts(take_snapshot(library))
    low, high = np.quantile(plays, [1 / 3, 2 / 3]) if len(plays) else (0.0, 0.0)
    with write_copy(_BUNDLE, library, target) as writer:
        excerpts = public_copy.Excerpts(suffix=transcode_suffix(), length_s=TYPICAL_S)
        if with_excerpts:
            excerpts = replace(excerpts, song_ids=_add_excerpts(writer, excerpts.suffix, progress))
        progress("copying the database", 0, 0)
        public_copy.copy_for_visitors(
            library.folder / LIBRARY_FILE, writer.database, model_ids, (float(low), float(high)), excerpts
        )
        with closing(writer.open_database()) as copy:
            for n_done, model_id in enumerate(model_ids):
                progress("copying models", n_done, len(model_ids))
                _add_model(writer, copy, copy.models.get(model_id))
            n_songs = len(copy)
        progress("packing the database", 0, 0)
    return n_songs, len(excerpts.song_ids)


def _add_model(writer: CopyWriter, copy: Library, record: ModelRecord) -> None:
    """Add a model, its index, and its report with the listener's name removed."""
    folder = copy.models.path(record.id)
    is_whole = writer.add_model(copy, record, left_out={_REPORT})
    for path in sorted(folder.glob("index/*.*")):
        if re.fullmatch(_INDEX_FILE, path.name):
            is_whole &= writer.add(path)
    if not is_whole:
        raise LibraryError(
            f"{copy.folder}: the model {record.name!r} was just deleted, or its files are damaged. Refit it, or "
            "activate a different model, and try again."
        )
    if report := load_report(folder):
        report["detail"] = report["settings"]["listener"] = ""
        writer.archive.add_bytes(f"models/{record.id}/{_REPORT}", json.dumps(report).encode())


def _write_excerpt(part: tuple[int, Path, float, Path]) -> None:
    """Write an excerpt of a song in a worker process; `part` is (song id, file, start in seconds, target)."""
    _, source, start_s, target = part
    transcode(source, target, bitrate=_BITRATE, start_s=start_s, length_s=TYPICAL_S)


def _add_excerpts(writer: CopyWriter, suffix: str, progress: Progress) -> set[int]:
    """Add an excerpt of every song with a readable file; return the ids of these songs."""
    library = writer.library
    with library.engine.connect() as connection:
        ids = [int(row.song_id) for row in connection.execute(schema.ids_with_file().distinct())]
    parts = (
        (song.id, song.path, song.typical_s, writer.work / f"{song.id}{suffix}")
        for start in range(0, len(ids), _SONGS_AT_ONCE)
        for song in library.songs(ids[start : start + _SONGS_AT_ONCE])
    )
    pool = LocalPool(library.settings["n_workers"])
    added: set[int] = set()
    n_done = 0
    with closing(pool.outcomes(_write_excerpt, parts, limits=library.file_limits)) as items:
        for item in items:
            if item is not None:
                (song_id, _, _, excerpt), problem = item
                n_done += 1
                if isinstance(problem, StorageError):
                    raise problem
                if problem is None and writer.archive.add_file(public_copy.excerpt_path(song_id, suffix), excerpt):
                    added.add(song_id)
                else:
                    _log.info("no excerpt of song %s: %s", song_id, problem)
                excerpt.unlink(missing_ok=True)
            progress("cutting excerpts", n_done, len(ids))
    return added


def unpack_bundle(stream: BinaryIO, name: str, target: Path, progress: Progress) -> None:
    """Unpack a bundle into an empty folder. Messages use `name`. After an error, the folder is unusable."""
    with open_copy(_BUNDLE, stream, name, target, progress) as copy:
        _check_is_public(copy.library)
        progress("listing the songs", 0, 0)
        copy.library.table()
        for record in copy.library.models.all(retired=True):
            copy.library.models.song_rows(record.id)
    # turn off WAL mode, so that readers create no extra files
    with closing(sqlite3.connect(target / LIBRARY_FILE)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")


def _check_is_public(library: Library) -> None:
    """Raise ValueError if the database has private data, or paths outside the bundle, which the app might serve."""
    with library.engine.connect() as connection:
        meta = {str(row.key): str(row.value) for row in connection.execute(sa.select(schema.meta))}
        names = {key for key in meta if not key.startswith(CHANGES_PREFIX)}
        read_settings(meta.get("settings"))  # raises ValueError for invalid values
        if not names <= _META or not parse_settings(meta.get("settings")).keys() <= public_copy.SETTINGS:
            raise ValueError("it contains private settings")
        for table in schema.metadata.sorted_tables:
            if table.name not in (*public_copy.FILLED, schema.meta.name) and connection.scalar(
                sa.select(sa.exists().select_from(table))
            ):
                raise ValueError(f"its table {table.name} is not empty")
        paths = sa.select(sa.type_coerce(schema.files.c.path, sa.Text))
        if not all(map(re.compile(_EXCERPT, re.ASCII).fullmatch, connection.scalars(paths))):
            raise ValueError("it lists files that it does not contain")


@contextmanager
def open_bundle(file: Path, progress: Progress) -> Iterator[Path]:
    """Unpack a bundle, if needed, and yield its library's folder, which does not change within the block."""
    file = file.expanduser().resolve()
    if not file.is_file():
        raise NotFoundError(f"{file}: this file does not exist.")
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")  # XDG Base Directory Specification
    folder = caches / "musicsim" / "snapshots"
    with storage.writing_to(folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    library_name = file.name.removesuffix(ENDING) or "library"
    with file.open("rb") as stream:
        home = folder / _key(file, os.fstat(stream.fileno()))
        with _reading(home, file):
            if not home.exists():
                with storage.writing_to(folder), filelock.FileLock(home.with_suffix(_UNPACKING)):
                    if not home.exists():
                        _unpack(stream, file, home, library_name, progress)
            _remove_unused(folder)
            yield home / library_name


def _key(file: Path, status: os.stat_result) -> str:
    state = f"{file}\n{status.st_size} {status.st_mtime_ns} {status.st_ino}\n{__version__} {SCHEMA_VERSION}"
    return blake2b(os.fsencode(state), digest_size=12).hexdigest()


def _unpack(stream: BinaryIO, file: Path, home: Path, library_name: str, progress: Progress) -> None:
    temporary = home.with_name(f".{home.name}")
    shutil.rmtree(temporary, ignore_errors=True)  # remove a folder left by a process that was killed
    try:
        (temporary / library_name).mkdir(parents=True)
        unpack_bundle(stream, file.name, temporary / library_name, progress)
        temporary.rename(home)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def _reading(home: Path, file: Path) -> Iterator[None]:
    """Keep all processes from removing a folder within the block, and note which bundle it is from."""
    with storage.writing_to(home.parent), filelock.FileLock(home.with_name(_MARKS)):
        home.with_suffix(_SOURCE).write_bytes(os.fsencode(file))
        readers = filelock.ReadWriteLock(home.with_suffix(_READERS))
        readers.acquire_read()
    try:
        yield
    finally:
        readers.release()


def _remove_unused(folder: Path) -> None:
    """Remove the folders of bundles that were changed or moved, unless a process reads them."""
    with suppress(OSError), filelock.FileLock(folder / _MARKS):
        for source in folder.glob(f"*{_SOURCE}"):
            file = Path(os.fsdecode(source.read_bytes()))
            if not (file.is_file() and _key(file, file.stat()) == source.stem):
                _remove_unread(source.with_suffix(""))


def _remove_unread(home: Path) -> None:
    readers = filelock.ReadWriteLock(home.with_suffix(_READERS))
    try:
        readers.acquire_write(blocking=False)
    except (filelock.Timeout, RuntimeError):  # another process reads it, or this one does
        return
    for folder in (home, home.with_name(f".{home.name}")):
        shutil.rmtree(folder, ignore_errors=True)
    readers.close()  # Windows does not delete open files
    for ending in (_UNPACKING, _READERS, _SOURCE):
        home.with_suffix(ending).unlink(missing_ok=True)
