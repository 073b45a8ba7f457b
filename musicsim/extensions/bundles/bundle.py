"""A bundle, which users know as a snapshot file: a library for visitors, without its music, in one file.

It is an archive (:mod:`musicsim.library.archive.archive_file`). :mod:`musicsim.extensions.bundles.public_copy` makes
its database. It has the needed files of models, and their index. Unpacked, it is the folder of a library.
"""

import json
import logging
import re
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, NamedTuple

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
    copy_for_strangers,
    excerpt_path,
)
from musicsim.library import Library
from musicsim.library.archive.archive_file import ArchiveKind, ArchiveWriter, Tell, folder_next_to
from musicsim.library.archive.contents import MODEL_FILES, add_model, checked_library
from musicsim.library.db import schema
from musicsim.library.db.changes import CHANGES_PREFIX
from musicsim.library.db.database import open_engine
from musicsim.library.db.settings import read_settings
from musicsim.library.db.tables import all_tables
from musicsim.library.processes.pools import LocalPool
from musicsim.library.store import Store
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
# the only entries of the table `meta`
_META = {"schema_version", "revision", "settings", "colours"}


# --- writing --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BundleReport:
    """Contents of a bundle."""

    n_songs: int
    n_excerpts: int
    n_bytes: int


def write_bundle(
    library: Library, target: Path, tell: Tell, *, models: Iterable[str] = (), with_excerpts: bool = False
) -> BundleReport:
    """Write a bundle of a library, which is only read.

    Parameters
    ----------
    target : Path
        A bundle that is there is replaced when the new one is whole.
    models : iterable of str
        Names of further models. It has the model in use, the built-in ones, and those that these share features with.
    with_excerpts : bool
        Add 30 seconds of each song: those that are most like the whole song.

    Raises
    ------
    NotFoundError
        If there is no model of a name, or none at all.
    LibraryError
        If `target` is something else, the library is damaged, or models are deleted meanwhile.
    """
    chosen = _chosen(library, models)
    plays = play_counts(take_snapshot(library))
    low, high = np.quantile(plays, [1 / 3, 2 / 3]) if len(plays) else (0.0, 0.0)
    with folder_next_to(target) as work, _BUNDLE.write(target, work) as archive:
        excerpts = Excerpts(suffix=transcode_suffix(), length_s=TYPICAL_S)
        if with_excerpts:
            excerpts = replace(excerpts, song_ids=_add_excerpts(library, archive, work, excerpts.suffix, tell))
        tell("copying the database", 0, 0)
        database = work / LIBRARY_FILE
        copy_for_strangers(library.folder / LIBRARY_FILE, database, chosen, (float(low), float(high)), excerpts)
        with closing(Store(library.folder, open_engine(database, read_only=True))) as copy:
            for n_done, model_id in enumerate(chosen):
                tell("copying models", n_done, len(chosen))
                _add_model(archive, copy, copy.models.get(model_id))
            n_songs = len(copy)
        archive.add_file(_WALK_SOURCES, library.folder / _WALK_SOURCES)
        tell("packing the database", 0, 0)
        archive.add_file(LIBRARY_FILE, database)
    return BundleReport(n_songs, len(excerpts.song_ids), target.stat().st_size)


def _chosen(library: Library, names: Iterable[str]) -> list[str]:
    """Ids of the models of a bundle."""
    store = library.models
    chosen = [store.get(), *(store.named(name) for name in names)]
    chosen += [record for record in store.all() if record.kind in BUILT_IN]
    return list(dict.fromkeys([*(record.id for record in chosen), *(record.features_of for record in chosen)]))


def _add_model(archive: ArchiveWriter, copy: Store, record: ModelRecord) -> None:
    """Add a model, its index, and its report without its listener."""
    folder = copy.models.path(record.id)
    name = f"models/{record.id}"
    is_whole = add_model(archive, copy, record, left_out={_REPORT})
    for path in sorted(folder.glob("index/*.*")):
        if re.fullmatch(_INDEX_FILE, path.name):
            is_whole &= archive.add_file(f"{name}/index/{path.name}", path)
    if not is_whole:
        raise LibraryError(
            f"{copy.folder}: the model {record.name!r} has just gone, or its files are damaged. Refit it, or "
            "put another one into use, and do the same again."
        )
    if report := load_report(folder):
        report["detail"] = report["settings"]["listener"] = ""
        archive.add_bytes(f"{name}/{_REPORT}", json.dumps(report).encode())


class _Part(NamedTuple):
    """An excerpt of a song, and the file for its sound."""

    song_id: int
    source: Path
    start_s: float
    target: Path


def _write_part(part: _Part) -> None:
    """Write the sound of an excerpt, in a worker."""
    transcode(part.source, part.target, bitrate=_BITRATE, start_s=part.start_s, length_s=TYPICAL_S)


def _add_excerpts(library: Store, archive: ArchiveWriter, work: Path, suffix: str, tell: Tell) -> set[int]:
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


def unpack_bundle(stream: BinaryIO, name: str, target: Path, tell: Tell) -> None:
    """Unpack a bundle into an empty folder, and make the caches of a large library.

    `name` is that of the file in messages. Raises LibraryError if it is another file, or was altered.
    """
    with _BUNDLE.refusing(name):
        _BUNDLE.unpack(stream, name, target, tell)
        tell("checking the database", 0, 0)
        with checked_library(target) as library:
            _check_is_for_strangers(library)
            tell("listing the songs", 0, 0)
            library.table()
            for record in library.models.all(retired=True):
                library.models.song_rows(record.id)
    # so that readers need nothing but this file
    with closing(sqlite3.connect(target / LIBRARY_FILE)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")


def _check_is_for_strangers(library: Store) -> None:
    """Raise ValueError if the database has anything else than a public copy: other files would be served, too."""
    with library.engine.connect() as connection:
        meta = {str(row.key): str(row.value) for row in connection.execute(sa.select(schema.meta))}
        names = {key for key in meta if not key.startswith(CHANGES_PREFIX)}
        read_settings(meta.get("settings"))  # checks their values
        if not names <= _META or not json.loads(meta.get("settings", "{}")).keys() <= SETTINGS:
            raise ValueError("it has settings of a machine")
        for table in all_tables():
            if table.name not in (*FILLED, schema.meta.name) and connection.scalar(
                sa.select(sa.exists().select_from(table))
            ):
                raise ValueError(f"it has rows in the table {table.name}")
        paths = sa.select(sa.type_coerce(schema.files.c.path, sa.Text))
        if not all(map(re.compile(_EXCERPT, re.ASCII).fullmatch, connection.scalars(paths))):
            raise ValueError("it names files that it does not hold")
