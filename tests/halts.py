"""Halt the first job of a library at a certain step, so that a test surely finds it at work."""

import sqlite3
from contextlib import closing
from pathlib import Path

from musicsim import LIBRARY_FILE


def halt_first_job(library: Path, field: str = "total", at_least: int = 1) -> None:
    """Make the database itself request the pause, once a field of the job has a value: a fast job would end before."""
    with closing(sqlite3.connect(library / LIBRARY_FILE)) as database, database:
        database.execute(
            f"CREATE TRIGGER halt AFTER UPDATE OF {field} ON jobs"
            f" WHEN NEW.id = 1 AND OLD.{field} < {at_least} AND NEW.{field} >= {at_least}"
            " BEGIN UPDATE jobs SET pause_requested = 1 WHERE id = NEW.id; END"
        )
