"""Whole copies of a library, each in one file: what backups and snapshot files, which contain less, have in common.

A copy is an archive of the database, of the models, and of other files in the library's folder. A reader accepts no
other names, and checks everything before the library is used.
"""

import re
import sqlite3
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import sqlalchemy as sa

from musicsim import LIBRARY_FILE
from musicsim.library.db import check_database, find_wrong_value, open_engine, schema
from musicsim.library.disk.archive_file import ArchiveKind, ArchiveWriter
from musicsim.library.disk.archives import check_arrays_are_stored
from musicsim.library.disk.scratch import Scratch
from musicsim.library.library import Library
from musicsim.library.stores.models import ModelRecord
from musicsim.progress import Progress

# the files that a model needs; rows.npz and the index are caches
_MODEL_FILE = r"(?!rows\.npz)[a-z_]+\.(json|npz|f32)"
WALK_SOURCES = "walk_sources.npz"


def copy_kind(title: str, about: str, others: str, advice: str, mode: int = 0o600) -> ArchiveKind:
    """Return a kind of archive with a whole library; names that match `others` are allowed, too."""
    common = rf"models/[\w-]+/{_MODEL_FILE}|{re.escape(WALK_SOURCES)}|{re.escape(LIBRARY_FILE)}"
    return ArchiveKind(title, about, re.compile(f"{common}|{others}", re.ASCII), advice, mode)


class CopyWriter:
    """A copy that is being written. `database` is the path of the database in it, which the caller has to write."""

    def __init__(self, library: Library, archive: ArchiveWriter, work: Path) -> None:
        self.library, self.archive, self.work = library, archive, work
        self.database = work / LIBRARY_FILE

    def open_database(self) -> Library:
        """Open the library with the copied database, and without it the files of the library itself."""
        return Library(self.library.folder, open_engine(self.database, read_only=True))

    def add(self, path: Path, n_bytes: int | None = None) -> bool:
        """Add a file of the library, or its first `n_bytes`; return False if it does not exist or is shorter."""
        return self.archive.add_file(path.relative_to(self.library.folder).as_posix(), path, n_bytes)

    def add_model(self, copy: Library, record: ModelRecord, *, left_out: Collection[str] = ()) -> bool:
        """Add a model's files, up to the rows listed in the database of `copy`; return False if any are missing."""
        folder = copy.models.path(record.id)
        grown = copy.models.row_bytes(record)  # lengths of files that other processes may append to
        is_whole = (folder / "model.json").exists()
        for path in sorted({*folder.glob("*.*"), *grown}):
            if re.fullmatch(_MODEL_FILE, path.name) and path.name not in left_out:
                is_whole &= self.add(path, grown.get(path)) or path not in grown
        return is_whole


@contextmanager
def write_copy(kind: ArchiveKind, library: Library, target: Path) -> Iterator[CopyWriter]:
    """Write a copy of a library, whose walk sources and database are added last; it replaces an earlier copy."""
    working = target.absolute().parent / ".musicsim-backup"
    scratch = Scratch(working)
    try:
        with scratch.folder() as work, kind.write(target, work) as archive:
            writer = CopyWriter(library, archive, work)
            yield writer
            writer.add(library.folder / WALK_SOURCES)
            archive.add_file(LIBRARY_FILE, writer.database)
    finally:
        scratch.close()
        with suppress(OSError):  # another process may be using it
            working.rmdir()


@dataclass(frozen=True, slots=True)
class UnpackedCopy:
    library: Library
    names: set[str]  # of all files
    created_at: float  # seconds since 1970


@contextmanager
def open_copy(
    kind: ArchiveKind, stream: BinaryIO, name: str, folder: Path, progress: Progress, also: Collection[str] = ()
) -> Iterator[UnpackedCopy]:
    """Unpack a copy into an empty folder, check it, and open its library; `name` is that of the file, for messages.

    `also` lists additional allowed names of files. Damaged content, content that musicsim never writes, and ValueError
    within the block mean that the copy is refused.
    """
    with kind.unpacked(stream, name, folder, progress, also) as (names, created_at):
        progress("checking the database", 0, 0)
        check_arrays_are_stored(folder)
        try:
            with closing(sqlite3.connect(folder / LIBRARY_FILE)) as connection:
                check_database(connection)
        except sqlite3.DatabaseError as error:
            raise ValueError(str(error)) from error
        with Library.open(folder, create=False) as library:
            _check_content(library)
            yield UnpackedCopy(library, names, created_at)


def _check_content(library: Library) -> None:
    """Raise ValueError for tables, values or models that musicsim does not write."""
    inspector = sa.inspect(library.engine)
    tables = {name: {c["name"] for c in inspector.get_columns(name)} for name in inspector.get_table_names()}
    expected = {table.name: {c.name for c in table.c} for table in schema.all_tables()}
    if {name: tables.get(name) for name in expected} != expected:
        raise ValueError("its tables differ from those of a library")
    with library.engine.connect() as reader:
        triggers = reader.exec_driver_sql("SELECT 1 FROM sqlite_master WHERE type = 'trigger' LIMIT 1").first()
    if inspector.get_view_names() or triggers is not None:
        raise ValueError("its database contains views or triggers")
    with closing(sqlite3.connect(library.folder / LIBRARY_FILE)) as connection:
        wrong = find_wrong_value(connection)
        known = {model_id for (model_id,) in connection.execute("SELECT id FROM models")}
    if wrong is not None:
        raise ValueError(f"its database has an invalid value in column {wrong}")
    for record in library.models.all(retired=True):
        if record.features_of not in known:
            raise ValueError("it refers to a model that it does not contain")
        for path, n_bytes in library.models.row_bytes(record).items():
            if path.exists() and path.stat().st_size != n_bytes:
                raise ValueError(f"the rows of the model {record.name!r} have the wrong length")
