"""A bundle (on the pages: a snapshot file) is one file with a library for visitors, without its music.

It is an archive (:mod:`musicsim.library.disk.archive_file`) with the database of
:mod:`musicsim.extensions.bundles.public_copy`, and the necessary files and index of models. Unpacked, it is the folder
of a library.
"""

import json
import logging
import re
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

import numpy as np
import sqlalchemy as sa

from musicsim import LIBRARY_FILE
from musicsim.audio import TYPICAL_S, transcode, transcode_suffix
from musicsim.errors import LibraryError, StorageError
from musicsim.explorer.models.artifacts import load_report
from musicsim.explorer.playlists.song_labels import play_counts
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.extensions.bundles.public_copy import (
    EXCERPTS,
    FILLED,
    SETTINGS,
    Excerpts,
    copy_for_visitors,
    excerpt_path,
)
from musicsim.library import Library
from musicsim.library.archive.contents import MODEL_FILES, add_model, checked_library
from musicsim.library.db import schema
from musicsim.library.db.changes import CHANGES_PREFIX
from musicsim.library.db.database import open_engine
from musicsim.library.db.settings import read_settings
from musicsim.library.disk.archive_file import ArchiveKind, ArchiveWriter, Progress, folder_next_to
from musicsim.library.processes.pools import LocalPool
from musicsim.library.stores.models import BUILT_IN, ModelRecord

_log = logging.getLogger(__name__)

ENDING = ".tar.zst"
_WALK_SOURCES = "walk_sources.npz"
_REPORT = "report.json"
_INDEX_FILE = r"[a-z_]+\.(npy|npz|json)"
_EXCERPT = rf"{EXCERPTS}/\d{{3}}/\d{{1,18}}\.(mp3|wav)"
_BUNDLE = ArchiveKind(
    "snapshot file",
    "snapshot.json",
    re.compile(
        rf"{MODEL_FILES}|models/[\w-]+/index/{_INDEX_FILE}|{_EXCERPT}"
        rf"|{re.escape(_WALK_SOURCES)}|{re.escape(LIBRARY_FILE)}",
        re.ASCII,
    ),
    ". Fetch or write it again.",
    mode=0o644,
)
_BITRATE = 96_000  # of excerpts
_SONGS_AT_ONCE = 1000
_META = {"schema_version", "revision", "settings", "colours"}  # the only keys of the table `meta`


@dataclass(frozen=True, slots=True)
class BundleReport:
    n_songs: int
    n_excerpts: int
    n_bytes: int


def write_bundle(
    library: Library, target: Path, progress: Progress, *, models: Iterable[str] = (), with_excerpts: bool = False
) -> BundleReport:
    """Write a bundle of a library, and replace an existing one when it is complete.

    `models` are names of models to include next to the active, the built-in, and those with shared features.
    `with_excerpts` adds the most typical 30 seconds of each song. Raises LibraryError if `target` is another kind of
    file, the library is damaged, or a model is deleted meanwhile.
    """
    store = library.models
    records = [store.get(), *map(store.named, models), *(record for record in store.all() if record.kind in BUILT_IN)]
    model_ids = list(dict.fromkeys([*(record.id for record in records), *(record.features_of for record in records)]))
    plays = play_counts(take_snapshot(library))
    low, high = np.quantile(plays, [1 / 3, 2 / 3]) if len(plays) else (0.0, 0.0)
    with folder_next_to(target) as work, _BUNDLE.write(target, work) as archive:
        excerpts = Excerpts(suffix=transcode_suffix(), length_s=TYPICAL_S)
        if with_excerpts:
            excerpts = replace(excerpts, song_ids=_add_excerpts(library, archive, work, excerpts.suffix, progress))
        progress("copying the database", 0, 0)
        database = work / LIBRARY_FILE
        copy_for_visitors(library.folder / LIBRARY_FILE, database, model_ids, (float(low), float(high)), excerpts)
        with closing(Library(library.folder, open_engine(database, read_only=True))) as copy:
            for n_done, model_id in enumerate(model_ids):
                progress("copying models", n_done, len(model_ids))
                _add_model(archive, copy, copy.models.get(model_id))
            n_songs = len(copy)
        archive.add_file(_WALK_SOURCES, library.folder / _WALK_SOURCES)
        progress("packing the database", 0, 0)
        archive.add_file(LIBRARY_FILE, database)
    return BundleReport(n_songs, len(excerpts.song_ids), target.stat().st_size)


def _add_model(archive: ArchiveWriter, copy: Library, record: ModelRecord) -> None:
    """Add a model, its index, and its report, without the listener's name."""
    folder = copy.models.path(record.id)
    name = f"models/{record.id}"
    is_whole = add_model(archive, copy, record, left_out={_REPORT})
    for path in sorted(folder.glob("index/*.*")):
        if re.fullmatch(_INDEX_FILE, path.name):
            is_whole &= archive.add_file(f"{name}/index/{path.name}", path)
    if not is_whole:
        raise LibraryError(
            f"{copy.folder}: the model {record.name!r} was just deleted, or its files are damaged. Refit it, or "
            "activate another one, and try again."
        )
    if report := load_report(folder):
        report["detail"] = report["settings"]["listener"] = ""
        archive.add_bytes(f"{name}/{_REPORT}", json.dumps(report).encode())


def _write_excerpt(part: tuple[int, Path, float, Path]) -> None:
    """Write an excerpt of a song, given as (id, file, start in seconds, target); runs in a worker."""
    _, source, start_s, target = part
    transcode(source, target, bitrate=_BITRATE, start_s=start_s, length_s=TYPICAL_S)


def _add_excerpts(library: Library, archive: ArchiveWriter, work: Path, suffix: str, progress: Progress) -> set[int]:
    """Add an excerpt of every song with a readable file, and return their ids."""
    with library.engine.connect() as connection:
        ids = [int(row.song_id) for row in connection.execute(schema.ids_with_file().distinct())]
    parts = (
        (song.id, song.path, song.typical_s, work / f"{song.id}{suffix}")
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
                if problem is None and archive.add_file(excerpt_path(song_id, suffix), excerpt):
                    added.add(song_id)
                else:
                    _log.info("no excerpt of song %s: %s", song_id, problem)
                excerpt.unlink(missing_ok=True)
            progress("cutting excerpts", n_done, len(ids))
    return added


def unpack_bundle(stream: BinaryIO, name: str, target: Path, progress: Progress) -> None:
    """Unpack a bundle, called `name` in messages, into an empty folder, and add the caches of a large library.

    Raises LibraryError if it is not a bundle, or is damaged; the content of the folder is then unusable.
    """
    with _BUNDLE.refusing(name):
        _BUNDLE.unpack(stream, name, target, progress)
        progress("checking the database", 0, 0)
        with checked_library(target) as library:
            _check_is_public(library)
            progress("listing the songs", 0, 0)
            library.table()
            for record in library.models.all(retired=True):
                library.models.song_rows(record.id)
    # so that readers do not need WAL files
    with closing(sqlite3.connect(target / LIBRARY_FILE)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")


def _check_is_public(library: Library) -> None:
    """Raise ValueError if the database has more than a public copy: the app might serve other files."""
    with library.engine.connect() as connection:
        meta = {str(row.key): str(row.value) for row in connection.execute(sa.select(schema.meta))}
        names = {key for key in meta if not key.startswith(CHANGES_PREFIX)}
        read_settings(meta.get("settings"))  # checks their values
        if not names <= _META or not json.loads(meta.get("settings", "{}")).keys() <= SETTINGS:
            raise ValueError("it contains private settings")
        for table in schema.metadata.sorted_tables:
            if table.name not in (*FILLED, schema.meta.name) and connection.scalar(
                sa.select(sa.exists().select_from(table))
            ):
                raise ValueError(f"it has rows in the table {table.name}")
        paths = sa.select(sa.type_coerce(schema.files.c.path, sa.Text))
        if not all(map(re.compile(_EXCERPT, re.ASCII).fullmatch, connection.scalars(paths))):
            raise ValueError("it lists files that it does not contain")
