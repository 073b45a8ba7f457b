"""The version of a library's tables."""

import re
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

from musicsim import LIBRARY_FILE
from musicsim.audio import DESCRIPTORS
from musicsim.errors import LibraryError
from musicsim.library.db import schema

# To change the tables, edit `schema.py` and increase this number by one. Make `prepare_tables` convert libraries of the
# previous version within its transaction. Write out its SQL statements, because later versions may change `schema.py`,
# and store the new number in the table `meta`. Raise an error for a read-only library. Add a test that starts with the
# old tables.
SCHEMA_VERSION = 12

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
    execute(_JUDGMENTS)
    for column in ("listener", "kind", "song_1", "song_2", "song_3", "song_4"):
        execute(f"CREATE INDEX ix_judgments_{column} ON judgments ({column})")
    for table, statement in _FROM_10.items():
        execute(statement)
        execute(f"DROP TABLE {table}")


def create_tables(connection: sa.Connection) -> None:
    schema.metadata.create_all(connection, tables=schema.all_tables())
    connection.execute(schema.meta.insert().values(key="schema_version", value=str(SCHEMA_VERSION)))


def prepare_tables(connection: sa.Connection, place: str, *, read_only: bool = False) -> None:
    """Create the tables in an empty database, or convert tables of version 10 or 11.

    Also create tables of new extensions, and columns of new descriptors.
    """
    inspector = sa.inspect(connection)
    tables = inspector.get_table_names()
    if not tables and not read_only:
        create_tables(connection)
        return
    version = None
    if "meta" in tables:
        version = connection.scalar(sa.select(schema.meta.c.value).where(schema.meta.c.key == "schema_version"))
    if version is None or not re.fullmatch("[1-9][0-9]{0,8}", str(version)):
        problem = "does not contain a library's version" if version is None else f"has the invalid version {version!r}"
        raise LibraryError(
            f"{place}: {LIBRARY_FILE} {problem}: it is damaged, or belongs to another program. Restore a "
            "backup, or choose another folder."
        )
    if int(version) > SCHEMA_VERSION:
        raise LibraryError(
            f"{place}: this library was written by a newer version of musicsim (schema {version}; this version "
            f"supports {SCHEMA_VERSION}). Update musicsim, or choose another library."
        )
    if int(version) in (10, 11):
        if read_only:
            raise LibraryError(
                f"{place}: this library was written by an older version of musicsim (schema {version}) and must be "
                "converted, but it is read-only. Open it once with write permission, or copy it to a folder that you "
                "can write to."
            )
        if int(version) == 10:
            _join_judgments(connection.exec_driver_sql)
        connection.exec_driver_sql("ALTER TABLE jobs ADD COLUMN share FLOAT DEFAULT '0' NOT NULL")
        connection.execute(schema.meta.update().where(schema.meta.c.key == "schema_version").values(value="12"))
    elif int(version) < SCHEMA_VERSION:
        raise LibraryError(
            f"{place}: this library was created by a version of musicsim before 1.0 and cannot be opened (schema "
            f"{version}; this version needs {SCHEMA_VERSION}). Add its music folders to a new library."
        )
    known = {column["name"] for column in inspector.get_columns("songs")}
    for name in [name for name in DESCRIPTORS if name not in known]:
        _check_writable(place, f"the descriptor {name}", read_only)
        connection.exec_driver_sql(f"ALTER TABLE songs ADD COLUMN {name} FLOAT")
    new = [table for table in schema.all_tables() if table.name not in tables and table.name not in schema.CORE_TABLES]
    if new:
        _check_writable(place, f"the table {new[0].name!r}", read_only)
        schema.metadata.create_all(connection, tables=new)


def _check_writable(place: str, lacking: str, read_only: bool) -> None:
    if read_only:
        raise LibraryError(
            f"{place}: this library does not have {lacking} yet, and is read-only. Open it once with write permission."
        )
