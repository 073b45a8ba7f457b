"""All tables of a library: those of the core and those of the extensions.

A table has two facts in :attr:`sqlalchemy.Table.info`: ``"in_small_copy": True`` puts its rows in the daily small copy.
``"check"`` in the ``info`` of a JSON column is a function that returns True if a decoded value is valid.
"""

from functools import cache

import sqlalchemy as sa

from musicsim.hooks import extensions
from musicsim.library.db import schema


@cache
def all_tables() -> tuple[sa.Table, ...]:
    """Import the tables of the extensions, and return all tables; a table follows those that its rows refer to."""
    for extension in extensions():
        if extension.tables:
            extension.load(extension.tables)
    return tuple(schema.metadata.sorted_tables)


def small_copy_tables() -> tuple[sa.Table, ...]:
    """Tables whose rows are in the daily small copy, in the order of :func:`all_tables`."""
    return tuple(table for table in all_tables() if table.info.get("in_small_copy"))
