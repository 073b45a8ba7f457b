"""Whether a library's database is whole, as SQLite itself finds it."""

import sqlite3
from contextlib import closing

import sqlalchemy as sa
from sqlalchemy.engine.interfaces import DBAPICursor

from musicsim.errors import LibraryError
from musicsim.library.db.database import Write

_MAX_FAULTS = 20
_INDEX = "index"


def faults(engine: sa.Engine) -> list[str]:
    """What SQLite finds wrong with a database, in its words, which name tables and pages; at most 20."""
    try:
        with closing(engine.raw_connection()) as connection:  # the engine would name the path of the library
            return _said(connection.cursor(), _MAX_FAULTS)
    except sqlite3.DatabaseError as error:
        return [str(error)]


def check_database(connection: sqlite3.Connection) -> None:
    """Raises sqlite3.DatabaseError if a database is damaged, or rows refer to others that are not there."""
    for fault in _said(connection.cursor(), 1):
        raise sqlite3.DatabaseError(fault.splitlines()[-1])
    if connection.execute("PRAGMA foreign_key_check").fetchone() is not None:
        raise sqlite3.DatabaseError("rows refer to others that are not there")


def _said(cursor: DBAPICursor | sqlite3.Cursor, at_most: int) -> list[str]:
    cursor.execute(f"PRAGMA integrity_check({at_most})")
    found = [str(row[0]) for row in cursor.fetchall()]
    return [] if found == ["ok"] else found


def is_of_indexes(found: list[str]) -> bool:
    """Whether faults are of indexes alone, which hold nothing that tables do not."""
    return bool(found) and all(_INDEX in fault for fault in found)


def rebuild_indexes(write: Write) -> bool:
    """Make all indexes from their tables; False where the tables themselves are damaged, and all stays as it was."""
    try:
        with write() as connection:
            connection.exec_driver_sql("REINDEX")
    except (sa.exc.DatabaseError, LibraryError):  # two rows of what there is one of
        return False
    return True


def stray_rows(engine: sa.Engine) -> dict[str, int]:
    """How many rows of each table name a song, model or list that is not there; {} where all is well."""
    counts: dict[str, int] = {}
    with engine.connect() as connection:
        for row in connection.exec_driver_sql("PRAGMA foreign_key_check"):
            counts[row[0]] = counts.get(row[0], 0) + 1
    return counts
