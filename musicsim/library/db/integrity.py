"""SQLite's integrity checks for a library's database."""

import sqlite3
from collections import Counter
from contextlib import closing

import sqlalchemy as sa
from sqlalchemy.engine.interfaces import DBAPICursor

from musicsim.errors import LibraryError
from musicsim.library.db.database import Write

_MAX_FAULTS = 20


def faults(engine: sa.Engine) -> list[str]:
    """Return up to 20 messages from SQLite about damage to a database."""
    try:
        with closing(engine.raw_connection()) as connection:  # errors raised through the engine would contain the path
            return _check(connection.cursor(), _MAX_FAULTS)
    except sqlite3.DatabaseError as error:
        return [str(error)]


def check_database(connection: sqlite3.Connection) -> None:
    """Raise sqlite3.DatabaseError if a database is damaged, or its rows refer to missing rows."""
    for fault in _check(connection.cursor(), 1):
        raise sqlite3.DatabaseError(fault.splitlines()[-1])
    if connection.execute("PRAGMA foreign_key_check").fetchone() is not None:
        raise sqlite3.DatabaseError("rows refer to missing rows")


def _check(cursor: DBAPICursor | sqlite3.Cursor, max_faults: int) -> list[str]:
    cursor.execute(f"PRAGMA integrity_check({max_faults})")
    messages = [str(row[0]) for row in cursor.fetchall()]
    return [] if messages == ["ok"] else messages


def is_of_indexes(messages: list[str]) -> bool:
    """Return whether all faults are in indexes, which can be rebuilt from the tables."""
    return bool(messages) and all("index" in message for message in messages)


def rebuild_indexes(write: Write) -> bool:
    """Rebuild all indexes; return False, without any change, if the tables themselves are damaged."""
    try:
        with write() as connection:
            connection.exec_driver_sql("REINDEX")
    except (sa.exc.DatabaseError, LibraryError):  # for example, two rows have the same unique key
        return False
    return True


def stray_rows(engine: sa.Engine) -> dict[str, int]:
    """Count the rows of each table that refer to a missing song, model or playlist."""
    with engine.connect() as connection:
        return dict(Counter(row[0] for row in connection.exec_driver_sql("PRAGMA foreign_key_check")))
