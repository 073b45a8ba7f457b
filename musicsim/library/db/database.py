"""The connection to a library's database: SQLite in WAL mode, with one writer and many readers at a time."""

import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy import event

from musicsim._arrays import Float64Array, Int64Array
from musicsim.errors import LibraryAwayError, LibraryError
from musicsim.library.db import schema
from musicsim.library.disk.archives import shorten_message
from musicsim.storage import storage_error

Write = Callable[[], AbstractContextManager[sa.Connection]]
"""Opens a transaction that changes a library."""

_BUSY_MS = 30_000  # maximum wait for another write; our writes take milliseconds
_PAUSE_S = 0.01  # between attempts
_SETTINGS = (f"busy_timeout={_BUSY_MS}", "foreign_keys=ON")
_NOT_UTF8 = "Could not decode to UTF-8"  # start of the sqlite3 module's message for damaged text


def is_writable(path: Path) -> bool:
    """Return whether an existing database and its folder can be written to; SQLite creates files next to it."""
    return os.access(path.parent, os.W_OK) and os.access(path, os.W_OK)


def open_engine(path: Path, *, read_only: bool, is_full: bool = False) -> sa.Engine:
    """Create an engine that raises StorageError if the disk refuses a write, and LibraryError for a damaged file.

    If `is_full`, the disk has no room for the files that SQLite creates, and the engine only reads.
    """

    def connect() -> sqlite3.Connection:
        if is_full:
            address = _immutable_address(path)
        else:  # never create the file: it is missing if its disk is not there
            address = read_only_address(path) if read_only else f"{path.as_uri()}?mode=rw"
        return sqlite3.connect(address, uri=True, check_same_thread=False)

    # The address of a database in a read-only folder depends on whether another process is writing, so reconnect.
    pool = sa.QueuePool if is_writable(path) else sa.NullPool
    engine = sa.create_engine("sqlite://", creator=connect, poolclass=pool)

    @event.listens_for(engine, "connect")
    def _configure(connection: Any, _record: Any) -> None:
        connection.create_function("folded", -1, _casefold, deterministic=True)
        connection.isolation_level = None  # transactions are started by _begin, not by the driver
        for setting in _SETTINGS:
            connection.execute(f"PRAGMA {setting}")
        if not (read_only or is_full):
            _write_ahead(connection)

    @event.listens_for(engine, "begin")
    def _begin(connection: sa.Connection) -> None:
        # Acquire the write lock at the start: a read transaction cannot be upgraded after another process has written.
        writes = connection.get_execution_options().get("musicsim_writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    @event.listens_for(engine, "handle_error")
    def _translate(context: sa.engine.ExceptionContext) -> None:
        cause = context.original_exception
        problem: Exception | None = storage_error(cause, path, is_full=is_full)
        code = (getattr(cause, "sqlite_errorcode", None) or 0) & 0xFF
        if code == sqlite3.SQLITE_CANTOPEN and not path.exists():
            problem = away_error(path.parent)
        if problem is None and (code == sqlite3.SQLITE_CORRUPT or str(cause).startswith(_NOT_UTF8)):
            problem = damage_error(path, shorten_message(cause))
        if problem is not None:
            raise problem from cause

    return engine


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Switch to WAL mode; while another connection is writing, retry for up to `_BUSY_MS` milliseconds."""
    limit = time.monotonic() + _BUSY_MS / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")  # SQLite ignores busy_timeout here
            break
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > limit:
                raise
            time.sleep(_PAUSE_S)
    connection.execute("PRAGMA synchronous=NORMAL")


def away_error(folder: Path) -> LibraryAwayError:
    return LibraryAwayError(
        f"{folder.name}: the disk of this library is not there. Connect it again, or restart the app if you deleted "
        "the library."
    )


def damage_error(path: Path, why: object) -> LibraryError:
    return LibraryError(f"{path} is damaged ({why}). Restore a backup with `musicsim restore`.")


def _casefold(*values: object) -> str:
    """Join values into one case-folded string; SQLite itself folds only ASCII."""
    return " ".join(str(value) for value in values if value is not None).casefold()


def read_only_address(path: Path) -> str:
    """Return the URI for reading a database. Raises LibraryError if a required file is missing.

    The latest changes may be in a second file (-wal). In a read-only folder, SQLite can read them only with a third
    file (-shm). It exists as long as another process has the library open. If the second file is empty or missing, the
    database is opened as an immutable file.
    """
    log, index = (path.with_name(path.name + ending) for ending in ("-wal", "-shm"))
    if is_writable(path) or (log.exists() and index.exists()):
        return f"{path.as_uri()}?mode=ro"
    if has_unwritten(path):
        raise LibraryError(
            f"{path.parent}: the library was not closed before it was copied here, and its last changes cannot be read "
            "from a read-only folder. Copy it to a folder that can be written to, and open it there."
        )
    return _immutable_address(path)


def _immutable_address(path: Path) -> str:
    return f"{path.as_uri()}?immutable=1"


def has_unwritten(path: Path) -> bool:
    """Return whether the latest changes to a database are still in its second file (-wal)."""
    log = path.with_name(f"{path.name}-wal")
    return log.exists() and log.stat().st_size > 0


def writer(engine: sa.Engine) -> sa.Engine:
    return engine.execution_options(musicsim_writes=True)


def check_details(details: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Convert details to JSON and back. Raises ValueError if they are not JSON values."""
    if details is None:
        return None
    try:
        return dict(json.loads(json.dumps(dict(details), allow_nan=False)))
    except (TypeError, ValueError) as error:
        raise ValueError(f"details must contain only strings, finite numbers, lists and mappings ({error}).") from error


def change_text(connection: sa.Connection, key: str, change: Callable[[str | None], str]) -> str:
    """Replace a stored string, or None, by `change` of it, in an open write transaction; return the new string."""
    m = schema.meta.c
    text = change(connection.scalar(sa.select(m.value).where(m.key == key)))
    connection.execute(schema.meta.insert().prefix_with("OR REPLACE").values(key=key, value=text))
    return text


class Tables:
    """Base class of the stores. It reads tables with single queries, and changes them in transactions from `write`."""

    def __init__(self, engine: sa.Engine, write: Write) -> None:
        self._engine, self._write = engine, write

    def _execute(self, statement: sa.UpdateBase) -> int:
        """Execute one statement in a transaction, and return the number of rows affected."""
        with self._write() as connection:
            return connection.execute(statement).rowcount

    def _write_rows(self, *steps: tuple[sa.Executable, Sequence[Mapping[str, Any]]]) -> None:
        """Execute each statement for its rows, all in one transaction; do nothing if there are no rows."""
        if any(rows for _, rows in steps):
            with self._write() as connection:
                for statement, rows in steps:
                    if rows:
                        connection.execute(statement, rows)

    def _update_text(self, key: str, change: Callable[[str | None], str], write: Write | None = None) -> str:
        """Change a stored string as :func:`change_text`, in one transaction."""
        with (write or self._write)() as connection:
            return change_text(connection, key, change)

    def _rows(self, query: sa.Executable) -> Iterator[Any]:
        with self._engine.connect() as connection:
            yield from connection.execute(query)

    def _plain_rows(self, query: sa.Executable) -> Sequence[Any]:
        """Return the driver's rows, without SQLAlchemy's types: for hundreds of thousands, in half the time."""
        with self._engine.connect() as connection:
            cursor = connection.execute(query).cursor
            assert cursor is not None
            return cursor.fetchall()

    def _integers(self, query: sa.Select[Any]) -> Int64Array:
        """Return the columns of a query, none of which may be null, as int64 (n_columns, n_rows).

        SQLite joins each column to a text of at most 1 GB. For many rows, this takes half the time of Python's numbers.
        """
        numbers = (sa.cast(column, sa.Integer) for column in query.subquery().c)  # other programs may write 3.0
        texts = self._row(sa.select(*(sa.func.group_concat(number) for number in numbers)))
        return np.array([np.fromstring(text, np.int64, sep=",") if text else [] for text in texts], np.int64)

    def _times_of_songs(
        self, song_id: sa.Column[Any], time: sa.Column[Any], condition: sa.ColumnElement[bool]
    ) -> tuple[Int64Array, Float64Array]:
        """Return two columns of the rows that meet a condition: song ids, and times to the microsecond."""
        song_ids, times = self._integers(sa.select(song_id, time * 1e6).where(condition))
        return song_ids, times / 1e6

    def _row(self, query: sa.Executable) -> Any:
        """Return the first row or None; ``next(self._rows(query))`` would lose a Ctrl-C while Python closes it."""
        with self._engine.connect() as connection:
            return connection.execute(query).first()

    def _values(self, query: sa.Executable) -> list[Any]:
        with self._engine.connect() as connection:
            return list(connection.scalars(query))

    def _value(self, query: sa.Executable) -> Any:
        with self._engine.connect() as connection:
            return connection.scalar(query)
