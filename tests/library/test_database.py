"""Tests of connections to a library's database."""

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

from musicsim.library.db.database import open_engine


def test_new_database_opens_while_another_connection_writes(tmp_path: Path) -> None:
    path = tmp_path / "library.db"
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("CREATE TABLE songs (id INTEGER)")
        other.execute("BEGIN IMMEDIATE")
        release = threading.Timer(0.2, other.execute, ["COMMIT"])
        release.start()
        engine = open_engine(path, read_only=False)
        with engine.connect() as connection:
            assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        engine.dispose()
        release.join()
