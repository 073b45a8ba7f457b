"""Models in archives, and checks of an unpacked library before it is used."""

import re
import sqlite3
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import sqlalchemy as sa

from musicsim import LIBRARY_FILE
from musicsim.library.db import check_database, find_wrong_value, schema
from musicsim.library.disk.archive_file import ArchiveWriter
from musicsim.library.disk.archives import check_arrays_are_stored
from musicsim.library.library import Library
from musicsim.library.stores.models import ModelRecord

# the files that a model needs; rows.npz and the index are caches
_MODEL_FILE = r"(?!rows\.npz)[a-z_]+\.(json|npz|f32)"
MODEL_FILES = rf"models/[\w-]+/{_MODEL_FILE}"
"""Regular expression for the names of model files in an archive."""


def add_model(archive: ArchiveWriter, copy: Library, record: ModelRecord, *, left_out: Collection[str] = ()) -> bool:
    """Add a model's files, up to the rows listed in the database of `copy`; return False if any are missing."""
    folder = copy.models.path(record.id)
    grown = copy.models.row_bytes(record)  # lengths of files that other processes may append to
    is_whole = (folder / "model.json").exists()
    for path in sorted({*folder.glob("*.*"), *grown}):
        if re.fullmatch(_MODEL_FILE, path.name) and path.name not in left_out:
            is_added = archive.add_file(path.relative_to(copy.folder).as_posix(), path, grown.get(path))
            is_whole &= is_added or path not in grown
    return is_whole


@contextmanager
def open_checked(folder: Path) -> Iterator[Library]:
    """Open an unpacked library. Raises ValueError for damaged content, or content that musicsim never writes."""
    check_arrays_are_stored(folder)
    try:
        with closing(sqlite3.connect(folder / LIBRARY_FILE)) as connection:
            check_database(connection)
    except sqlite3.DatabaseError as error:
        raise ValueError(str(error)) from error
    with Library.open(folder, create=False) as library:
        inspector = sa.inspect(library.engine)
        tables = {name: {c["name"] for c in inspector.get_columns(name)} for name in inspector.get_table_names()}
        expected = {table.name: {c.name for c in table.c} for table in schema.all_tables()}
        if {name: tables.get(name) for name in expected} != expected:
            raise ValueError("its tables differ from those of a library")
        with library.engine.connect() as reader:
            triggers = reader.exec_driver_sql("SELECT 1 FROM sqlite_master WHERE type = 'trigger' LIMIT 1").first()
        if inspector.get_view_names() or triggers is not None:
            raise ValueError("its database contains views or triggers")
        with closing(sqlite3.connect(folder / LIBRARY_FILE)) as connection:
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
        yield library
