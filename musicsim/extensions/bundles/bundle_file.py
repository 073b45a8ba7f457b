"""A snapshot file: a library as strangers may have it, without its music, in one file that is only read.

It is a tar archive as :mod:`musicsim.library.disk.hashed_tar` has it, packed by Zstandard: ``snapshot.json`` says what
it is; :mod:`musicsim.extensions.bundles.public_copy` makes the database; of models it has what they cannot do without,
and their index. What is unpacked is the folder of a library.
"""

import json
import logging
import os
import re
import sqlite3
import tarfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import sqlalchemy as sa
import zstandard

from musicsim import LIBRARY_FILE, __version__
from musicsim.audio import TYPICAL_S, transcode, transcode_suffix
from musicsim.errors import LibraryError, StorageError
from musicsim.extensions.bundles.public_copy import EXCERPTS, FILLED, Excerpts, copy_for_strangers, excerpt_path
from musicsim.library.archive.unpacked import MODEL_FILES, checked_library, model_files
from musicsim.library.db import schema
from musicsim.library.db.changes import CHANGES_PREFIX
from musicsim.library.db.database import open_engine
from musicsim.library.db.settings import OF_SNAPSHOT, read_settings
from musicsim.library.db.tables import all_tables
from musicsim.library.disk.archives import DAMAGED, check_arrays_are_stored
from musicsim.library.disk.hashed_tar import (
    MALFORMED,
    HashedTar,
    PlainMember,
    max_members,
    new_archive,
    read_about,
    unpack,
)
from musicsim.library.processes.pools import LocalPool
from musicsim.library.store import Store

_log = logging.getLogger(__name__)

Tell = Callable[[str, int, int], None]
"""Told a message, and how many of how many parts are done; what it raises ends the work."""

ENDING = ".tar.zst"
_ABOUT = "snapshot.json"
_FORMAT = 1
_WALK_SOURCES = "walk_sources.npz"
_REPORT = "report.json"
_INDEX_FILE = r"[a-z_]+\.(npy|npz|json)"
_EXCERPT = rf"{EXCERPTS}/\d{{3}}/\d{{1,18}}\.(mp3|wav)"
_NAMES = re.compile(
    rf"{MODEL_FILES}|models/[\w-]+/index/{_INDEX_FILE}|{_EXCERPT}"
    rf"|{re.escape(_WALK_SOURCES)}|{re.escape(LIBRARY_FILE)}",
    re.ASCII,
)
_LEVEL, _THREADS = 3, -1  # as many threads as there are cores
_CHUNK = 1 << 20
_BITRATE = 96_000  # of excerpts
_SONGS_AT_ONCE = 1000
# songs and vectors pack to a half or a third, what is made to fill disks to a thousandth
_MAX_RATIO, _MAX_SMALL = 40, 256 << 20
_LEAST_EXCERPT = 4096  # bytes: of a song of one second it has 12,000
# the only entries of the table `meta` that a snapshot file may have
_META = {"schema_version", "revision", "settings", "colours"}
_MAX_WINDOW = 1 << 27  # bytes of memory that unpacking takes


# --- writing --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SnapshotFileReport:
    """What a snapshot file holds."""

    n_songs: int
    n_excerpts: int
    n_bytes: int


def save_snapshot_file(
    library: Store,
    target: Path,
    tell: Tell,
    *,
    reports: Mapping[str, bytes | None],
    settings: Collection[str],
    thirds: tuple[float, float],
    with_excerpts: bool = False,
) -> SnapshotFileReport:
    """Write a snapshot file of a library, which is only read.

    Parameters
    ----------
    target : Path
        A snapshot file that is there is replaced when the new one is whole.
    reports : mapping of str to bytes
        The ids of the models that are in it, each with the report of its training, if there is one.
    settings, thirds
        As of :func:`copy_for_strangers`.
    with_excerpts : bool
        Take 30 seconds of each song along: those that are most like the whole song.

    Raises
    ------
    LibraryError
        If `target` is something else than a snapshot file, the library is damaged, or models go meanwhile.
    """
    if target.exists() and not _is_snapshot_file(target):
        raise LibraryError(f"{target}: this is there already, and no snapshot file. Name another file.")
    packer = zstandard.ZstdCompressor(level=_LEVEL, threads=_THREADS, write_checksum=True)
    with (
        new_archive(target, 0o644) as (work, stream),
        packer.stream_writer(stream, closefd=False) as packed,
        tarfile.open(fileobj=packed, mode="w|", bufsize=_CHUNK, format=tarfile.GNU_FORMAT) as tar,
    ):
        archive = HashedTar(tar)
        about = {"format": _FORMAT, "musicsim": __version__, "created_at": time.time()}
        archive.add_bytes(_ABOUT, json.dumps(about).encode())
        excerpts = Excerpts(suffix=transcode_suffix(), length_s=TYPICAL_S)
        if with_excerpts:
            excerpts = replace(excerpts, song_ids=_add_excerpts(library, archive, work, excerpts.suffix, tell))
        tell("copying the database", 0, 0)
        database = work / LIBRARY_FILE
        copy_for_strangers(library.folder / LIBRARY_FILE, database, reports.keys(), settings, thirds, excerpts)
        with closing(Store(work, open_engine(database, read_only=True))) as copy:
            for n_done, (model_id, report) in enumerate(reports.items()):
                tell("copying models", n_done, len(reports))
                _add_model(library, copy, archive, model_id, report)
            n_songs = len(copy)
        archive.add_file(_WALK_SOURCES, library.folder / _WALK_SOURCES)
        tell("packing the database", 0, 0)
        archive.add_file(LIBRARY_FILE, database)
        archive.finish()
    return SnapshotFileReport(n_songs, len(excerpts.song_ids), target.stat().st_size)


def _add_model(library: Store, copy: Store, archive: HashedTar, model_id: str, report: bytes | None) -> None:
    folder = library.models.path(model_id)
    record = copy.models.get(model_id)
    grown = {folder / path.name: n_bytes for path, n_bytes in copy.models.row_bytes(record).items()}
    files = model_files(folder, grown) | dict.fromkeys(sorted(folder.glob("index/*.*")))
    for path, n_bytes in files.items():
        name = path.relative_to(library.folder).as_posix()
        if path.name == _REPORT or not _NAMES.fullmatch(name):
            continue
        if not archive.add_file(name, path, n_bytes):
            raise LibraryError(
                f"{library.folder}: the model {record.name!r} has just gone, or its files are damaged. Refit it, or "
                "put another one into use, and do the same again."
            )
    if report is not None:
        archive.add_bytes(f"models/{model_id}/{_REPORT}", report)


class _Part(NamedTuple):
    """The part of a song that is to be heard, and where its sound is written."""

    song_id: int
    source: Path
    start_s: float
    target: Path


def _write_part(part: _Part) -> None:
    """Write the sound of a part; in a worker."""
    transcode(part.source, part.target, bitrate=_BITRATE, start_s=part.start_s, length_s=TYPICAL_S)


def _add_excerpts(library: Store, archive: HashedTar, work: Path, suffix: str, tell: Tell) -> set[int]:
    """Add the typical part of every song that can be heard; their ids."""
    with library.engine.connect() as connection:
        query = schema.ids_with_file().distinct()
        ids = [int(row.song_id) for row in connection.execute(query)]
    parts = (
        _Part(song.id, song.path, song.typical_s, work / f"{song.id}{suffix}")
        for start in range(0, len(ids), _SONGS_AT_ONCE)
        for song in library.songs(ids[start : start + _SONGS_AT_ONCE])
    )
    pool = LocalPool(library.settings["n_workers"])
    added: set[int] = set()
    n_done = 0
    with closing(pool.outcomes(_write_part, parts, limits=library.file_limits)) as items:
        for item in items:
            if item is not None:
                part, problem = item
                n_done += 1
                if isinstance(problem, StorageError):
                    raise problem
                if problem is None and archive.add_file(excerpt_path(part.song_id, suffix), part.target):
                    added.add(part.song_id)
                else:
                    _log.info("song %s has no excerpt: %s", part.song_id, problem)
                part.target.unlink(missing_ok=True)
            tell("cutting excerpts", n_done, len(ids))
    return added


# --- reading --------------------------------------------------------------------------------------


def unpack_snapshot_file(stream: BinaryIO, name: str, target: Path, tell: Tell) -> None:
    """Make an empty folder the library that a snapshot file holds, with what is kept beside a large one.

    Parameters
    ----------
    stream : binary file
    name : str
        What sentences call it.

    Raises
    ------
    LibraryError
        If it is no snapshot file, or not as it was written; what is in the folder is of no use then.
    """

    def check_about(about: dict[str, Any]) -> None:
        if about["format"] != _FORMAT:
            raise LibraryError(
                f"{name}: this snapshot file was made by a newer musicsim. Update musicsim, and start again."
            )

    n_bytes = os.fstat(stream.fileno()).st_size
    try:
        with _opened(stream) as tar:
            found, _ = unpack(
                tar,
                target,
                about=_ABOUT,
                check_about=check_about,
                is_expected=lambda one: _NAMES.fullmatch(one) is not None,
                tell=tell,
                max_bytes=_MAX_SMALL + _MAX_RATIO * n_bytes,
                max_members=max_members(n_bytes, _LEAST_EXCERPT),
            )
        if LIBRARY_FILE not in found:
            raise ValueError("it has no database")
        check_arrays_are_stored(target)
        tell("checking the database", 0, 0)
        with checked_library(target) as library:
            _check_is_for_strangers(library)
            tell("listing the songs", 0, 0)
            library.table()
            for record in library.models.all(retired=True):
                library.models.song_rows(record.id)
    except (*MALFORMED, *DAMAGED, zstandard.ZstdError) as error:
        raise LibraryError(
            f"{name}: this is no whole snapshot file of musicsim ({error}). Fetch or write it again."
        ) from error
    # readers need no files beside it then
    with closing(sqlite3.connect(target / LIBRARY_FILE)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")


@contextmanager
def _opened(stream: BinaryIO) -> Iterator[tarfile.TarFile]:
    unpacker = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW)
    with (
        unpacker.stream_reader(stream, read_size=_CHUNK, closefd=False) as packed,
        tarfile.open(fileobj=packed, mode="r|", bufsize=_CHUNK, tarinfo=PlainMember) as tar,
    ):
        yield tar


def _is_snapshot_file(path: Path) -> bool:
    try:
        with path.open("rb") as stream, _opened(stream) as tar:
            read_about(tar, _ABOUT)
    except (*MALFORMED, zstandard.ZstdError, OSError):
        return False
    return True


def _check_is_for_strangers(library: Store) -> None:
    """Raises ValueError if the database has what none has that was written here: other files would be served, too."""
    with library.engine.connect() as connection:
        meta = {str(row.key): str(row.value) for row in connection.execute(sa.select(schema.meta))}
        names = {key for key in meta if not key.startswith(CHANGES_PREFIX)}
        if not names <= _META or not read_settings(meta.get("settings")).keys() <= OF_SNAPSHOT:
            raise ValueError("it has settings of a machine")
        for table in all_tables():
            if table.name not in (*FILLED, schema.meta.name) and connection.scalar(
                sa.select(sa.exists().select_from(table))
            ):
                raise ValueError(f"it has rows in the table {table.name}")
        paths = sa.select(sa.type_coerce(schema.files.c.path, sa.Text))
        if not all(map(re.compile(_EXCERPT, re.ASCII).fullmatch, connection.scalars(paths))):
            raise ValueError("it names files that it does not hold")
