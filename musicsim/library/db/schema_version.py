"""The version of a library's tables."""

import re
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

from musicsim import LIBRARY_FILE
from musicsim.errors import LibraryError
from musicsim.library.db import schema
from musicsim.library.db.tables import all_tables

# To change the tables, edit `schema.py` and raise this number by one. Then let `prepare_tables` bring a library of the
# version before to this one in its transaction. Write its SQL statements out, as later versions may change `schema.py`
# again, and store the new number in the table `meta`. A read-only library cannot be changed: refuse it with a sentence.
# Add a test that starts with the old tables.
SCHEMA_VERSION = 11

_JUDGMENTS = """
CREATE TABLE judgments (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    created_at FLOAT NOT NULL,
    listener TEXT NOT NULL,
    kind TEXT NOT NULL,
    song_1 INTEGER REFERENCES songs (id) ON DELETE CASCADE,
    song_2 INTEGER REFERENCES songs (id) ON DELETE CASCADE,
    song_3 INTEGER REFERENCES songs (id) ON DELETE CASCADE,
    song_4 INTEGER REFERENCES songs (id) ON DELETE CASCADE,
    chosen INTEGER,
    context JSON NOT NULL
)"""
_JUDGMENT_COLUMNS = ("listener", "kind", "song_1", "song_2", "song_3", "song_4")
_FROM_10 = {
    "answers": """
        INSERT INTO judgments SELECT id, created_at, listener, form, song_1, song_2, song_3, song_4, chosen,
            json_object('is_random', json(CASE WHEN is_random THEN 'true' ELSE 'false' END),
                'foreseen', json(CASE foreseen WHEN 1 THEN 'true' WHEN 0 THEN 'false' ELSE 'null' END), 'model', model)
        FROM answers""",
    "judgements": """
        INSERT INTO judgments SELECT NULL, created_at, '', 'result', query_id, song_id, NULL, NULL, value, '{}'
        FROM judgements ORDER BY created_at, query_id, song_id""",
    "preferences": """
        INSERT INTO judgments SELECT NULL, created_at, '', question, NULL, NULL, NULL, NULL,
            CASE chosen WHEN 'a' THEN 0 WHEN 'b' THEN 1 END,
            json_set(coalesce(details, '{}'), '$.options', json_array(model_a, model_b))
        FROM preferences ORDER BY id""",
}


def _join_judgments(execute: Callable[[str], Any]) -> None:
    """Move the rows of the three tables of version 10 with judgments to the one of version 11."""
    execute(_JUDGMENTS)
    for column in _JUDGMENT_COLUMNS:
        execute(f"CREATE INDEX ix_judgments_{column} ON judgments ({column})")
    for table, statement in _FROM_10.items():
        execute(statement)
        execute(f"DROP TABLE {table}")


def create_tables(connection: sa.Connection) -> None:
    """Create the tables of an empty database, and store their version."""
    schema.metadata.create_all(connection, tables=all_tables())
    connection.execute(schema.meta.insert().values(key="schema_version", value=str(SCHEMA_VERSION)))


def prepare_tables(connection: sa.Connection, place: str, *, read_only: bool = False) -> None:
    """Create the tables of an empty database, or bring those of version 10 to :data:`SCHEMA_VERSION`.

    Tables of extensions that were installed later are created, too.

    Raises LibraryError if they have another version, belong to another program, or would have to be changed although
    they are read-only.
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
    if int(found) == 10:
        if read_only:
            raise LibraryError(
                f"{place}: this library was written by an older musicsim (schema 10), and cannot be changed here. Open "
                "it once where it can be written to, or copy it there."
            )
        _join_judgments(connection.exec_driver_sql)
        connection.execute(schema.meta.update().where(schema.meta.c.key == "schema_version").values(value="11"))
    elif int(found) < SCHEMA_VERSION:
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
