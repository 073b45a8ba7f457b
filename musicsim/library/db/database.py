"""Opening a library's database: SQLite in WAL mode, one writer and many readers at once."""

import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event

from musicsim.errors import LibraryError
from musicsim.library.disk.archives import in_short
from musicsim.storage import storage_error

Write = Callable[[], AbstractContextManager[sa.Connection]]
"""Opens a transaction that changes a library."""

_BUSY_MS = 30_000  # how long a write waits for another one; ours last milliseconds
_SETTINGS = (f"busy_timeout={_BUSY_MS}", "foreign_keys=ON")
_NO_TEXT = "Could not decode to UTF-8"  # how Python's sqlite3 begins what it says of a damaged text
_WRITER_SETTINGS = ("journal_mode=WAL", "synchronous=NORMAL")


def is_writable(path: Path) -> bool:
    """Whether an existing database can be changed; SQLite keeps files beside it while it is open."""
    return os.access(path.parent, os.W_OK) and os.access(path, os.W_OK)


def open_engine(path: Path, *, read_only: bool) -> sa.Engine:
    """Make the engine of a library's database file.

    What the disk refuses, by whichever statement, is raised as :class:`StorageError`; damage to it as LibraryError.
    """

    def connect() -> sqlite3.Connection:
        if read_only:
            return sqlite3.connect(read_only_address(path), uri=True, check_same_thread=False)
        return sqlite3.connect(path, check_same_thread=False)

    # Where nothing can be written one connects each time: whether somebody else is writing now decides how one may.
    pool = sa.QueuePool if is_writable(path) else sa.NullPool
    engine = sa.create_engine("sqlite://", creator=connect, poolclass=pool)

    @event.listens_for(engine, "connect")
    def _configure(connection: Any, _record: Any) -> None:
        connection.create_function("folded", -1, _folded, deterministic=True)
        connection.isolation_level = None  # transactions are begun by _begin, not by the driver
        for setting in (*_SETTINGS, *(() if read_only else _WRITER_SETTINGS)):
            connection.execute(f"PRAGMA {setting}")

    @event.listens_for(engine, "begin")
    def _begin(connection: sa.Connection) -> None:
        # A write takes its lock at the start: upgrading a read transaction fails when another wrote.
        writes = connection.get_execution_options().get("musicsim_writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    @event.listens_for(engine, "handle_error")
    def _translate(context: sa.engine.ExceptionContext) -> None:
        cause = context.original_exception
        problem = storage_error(cause, path) or _damage(cause, path)
        if problem is not None:
            raise problem from cause

    return engine


def damaged(path: Path, why: object) -> LibraryError:
    """The error of a database that cannot be read any more."""
    return LibraryError(f"{path} is damaged ({why}). Restore a backup, by `musicsim restore`.")


def _damage(error: BaseException, path: Path) -> LibraryError | None:
    code = getattr(error, "sqlite_errorcode", None) or 0
    is_damage = code & 0xFF == sqlite3.SQLITE_CORRUPT or str(error).startswith(_NO_TEXT)
    return damaged(path, in_short(error)) if is_damage else None


def _folded(*values: object) -> str:
    """Values as one text in small letters, as Python has them: SQLite knows those of ASCII only."""
    return " ".join(str(value) for value in values if value is not None).casefold()


def read_only_address(path: Path) -> str:
    """The address of a database that is only read.

    Where its folder can be written to, SQLite keeps the files there that readers and writers share. Elsewhere a writer
    leaves its latest changes in a second file, which is read with the help of a third; without these two
    nobody is writing, and the database is read as a file that does not change.
    """
    log, index = (path.with_name(path.name + ending) for ending in ("-wal", "-shm"))
    if is_writable(path) or (log.exists() and index.exists()):
        return f"{path.as_uri()}?mode=ro"
    if log.exists() and log.stat().st_size:
        raise LibraryError(
            f"{path.parent}: the library was not closed before it was copied here, and its last changes cannot be read "
            f"where nothing can be written. Copy it to a folder that can be written to, and open it there."
        )
    return f"{path.as_uri()}?immutable=1"


def writer(engine: sa.Engine) -> sa.Engine:
    """The same engine for transactions that write."""
    return engine.execution_options(musicsim_writes=True)


def checked_details(details: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Details as JSON will give them back. Raises ValueError if JSON cannot hold them."""
    if details is None:
        return None
    try:
        return dict(json.loads(json.dumps(dict(details), allow_nan=False)))
    except (TypeError, ValueError) as error:
        raise ValueError(f"details must hold text, finite numbers, lists and mappings only ({error}).") from error


class Tables:
    """Some tables of one library: read by single queries, changed in transactions of `write`."""

    def __init__(self, engine: sa.Engine, write: Write) -> None:
        self._engine, self._write = engine, write

    def _write_rows(self, *steps: tuple[sa.Executable, Sequence[Mapping[str, Any]]]) -> None:
        """Execute each statement for its rows, in one transaction; nothing is written without rows."""
        if any(rows for _, rows in steps):
            with self._write() as connection:
                for statement, rows in steps:
                    if rows:
                        connection.execute(statement, rows)

    def _rows(self, query: sa.Executable) -> Iterator[Any]:
        with self._engine.connect() as connection:
            yield from connection.execute(query)

    def _values(self, query: sa.Executable) -> list[Any]:
        with self._engine.connect() as connection:
            return list(connection.scalars(query))

    def _value(self, query: sa.Executable) -> Any:
        with self._engine.connect() as connection:
            return connection.scalar(query)
