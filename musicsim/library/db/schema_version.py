"""The version of a library's tables."""

import re

import sqlalchemy as sa

from musicsim import LIBRARY_FILE
from musicsim.errors import LibraryError
from musicsim.library.db import schema
from musicsim.library.db.tables import all_tables

# To change the tables, edit `schema.py` and raise this number by one. Then let `prepare_tables` bring a library of the
# version before to this one in its transaction. Write its SQL statements out, as later versions may change `schema.py`
# again, and store the new number in the table `meta`. A read-only library cannot be changed: refuse it with a sentence.
# Add a test that starts with the old tables.
SCHEMA_VERSION = 10


def create_tables(connection: sa.Connection) -> None:
    """Create the tables of an empty database, and store their version."""
    schema.metadata.create_all(connection, tables=all_tables())
    connection.execute(schema.meta.insert().values(key="schema_version", value=str(SCHEMA_VERSION)))


def prepare_tables(connection: sa.Connection, place: str, *, read_only: bool = False) -> None:
    """Create the tables of an empty database, or check the version of those that are there.

    Tables of extensions that were installed later are created, too.

    Raises LibraryError if they have another version than :data:`SCHEMA_VERSION`, or belong to another program.
    """
    tables = sa.inspect(connection).get_table_names()
    if not tables and not read_only:
        create_tables(connection)
        return
    found = None
    if "meta" in tables:
        found = connection.scalar(sa.select(schema.meta.c.value).where(schema.meta.c.key == "schema_version"))
    if found is None or not re.fullmatch("[1-9][0-9]{0,8}", str(found)):
        says = "does not say which version of a library it is" if found is None else f"says it is version {found!r}"
        raise LibraryError(
            f"{place}: {LIBRARY_FILE} {says}: it is damaged, or belongs to another program. Restore a "
            "backup, or name another folder."
        )
    if int(found) > SCHEMA_VERSION:
        raise LibraryError(
            f"{place}: this library was written by a newer musicsim (schema {found}, this program knows "
            f"{SCHEMA_VERSION}). Update musicsim, or name another library."
        )
    if int(found) < SCHEMA_VERSION:
        raise LibraryError(
            f"{place}: this library was made by a musicsim before version 1.0 and cannot be opened (schema {found}, "
            f"this program needs {SCHEMA_VERSION}). Add its folders of music to a new library."
        )
    added = [table for table in all_tables() if table.name not in tables and table.name not in schema.CORE_TABLES]
    if added and read_only:
        raise LibraryError(
            f"{place}: this library has no table {added[0].name!r} yet, and cannot be changed. Open it once with "
            "permission to write."
        )
    if added:
        schema.metadata.create_all(connection, tables=added)
