"""Opening a library's database: SQLite in WAL mode, one writer and many readers at once."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event

__all__ = ["Write", "open_engine", "writer"]

Write = Callable[[], AbstractContextManager[sa.Connection]]
"""Opens a transaction that changes a library."""

_BUSY_MS = 30_000  # how long a write waits for another one; ours last milliseconds


def open_engine(path: Path) -> sa.Engine:
    """Make the engine of a library's database file."""
    engine = sa.create_engine(f"sqlite:///{path}", connect_args={"check_same_thread": False})

    @event.listens_for(engine, "connect")
    def _configure(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # transactions are begun by _begin, not by the driver
        for pragma in (
            f"busy_timeout={_BUSY_MS}",
            "journal_mode=WAL",
            "synchronous=NORMAL",
            "foreign_keys=ON",
        ):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def _begin(connection: sa.Connection) -> None:
        # A write takes its lock at the start: upgrading a read transaction fails when another wrote.
        writes = connection.get_execution_options().get("musicsim_writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def writer(engine: sa.Engine) -> sa.Engine:
    """The same engine for transactions that write."""
    return engine.execution_options(musicsim_writes=True)
