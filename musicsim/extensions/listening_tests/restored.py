"""New links for a library that comes from a backup or goes into one."""

import secrets
import sqlite3


def renew_tokens(database: sqlite3.Connection) -> None:
    """Give every link a new token, in the transaction of the caller."""
    ids = database.execute("SELECT id FROM test_listeners").fetchall()
    new = [(secrets.token_urlsafe(18), listener_id) for (listener_id,) in ids]
    database.executemany("UPDATE test_listeners SET token = ? WHERE id = ?", new)
