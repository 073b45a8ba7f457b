"""All tables of a library: those of the core and those of the extensions.

Two entries of ``info`` have a meaning: ``"in_small_copy": True`` puts the rows of a table in the daily small copy.
``"check"`` of a JSON column is a function that returns whether a decoded value is valid.
"""

import sqlite3
from functools import cache

import sqlalchemy as sa

from musicsim.hooks import extensions, load_hooks
from musicsim.library.db import schema


@cache
def all_tables() -> tuple[sa.Table, ...]:
    """Import the tables of the extensions, and return all tables, each after the tables that it references."""
    for extension in extensions():
        if extension.tables:
            extension.load(extension.tables)
    return tuple(schema.metadata.sorted_tables)


def small_copy_tables() -> tuple[sa.Table, ...]:
    """Return the tables with rows in the daily small copy, in the order of :func:`all_tables`."""
    return tuple(table for table in all_tables() if table.info.get("in_small_copy"))


def renew_tokens(database: sqlite3.Connection) -> None:
    """Call the hooks ``renew_tokens``: functions that replace access tokens in the caller's transaction."""
    for renew in load_hooks("renew_tokens"):
        renew(database)
