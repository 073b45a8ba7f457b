"""Values of a database that somebody else may have written: their types, ranges, and the names of folders.

SQLite stores any type in any column. Values of the wrong type would fail much later, far from their cause, and names
such as ``../..`` would lead out of the library.
"""

import json
import math
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import sqlalchemy as sa

from musicsim.library.db import schema

_LATEST_S = 253_402_300_799.0  # the end of the year 9999: no later time has a date
_EARLIEST_S = -_LATEST_S / 4  # before the year 1000, after the first
_MAX_NUMBER = 1e15
_RANGES: Mapping[str, tuple[float, float]] = {
    "songs.year": (-32_768, 32_767),  # 16 bits, as in musicsim.library.db.columns
    "songs.track": (-(2**31), 2**31 - 1),
    "songs.duration_s": (0, 1e9),
    "songs.typical_s": (0, 1e9),
    "waiting.value": (-_MAX_NUMBER, _MAX_NUMBER),
}
_TIMES = re.compile(r"(\w+_at|missing_since)")
_SECONDS_IN_BLOBS = ("listens.times", "waiting.times")  # 4 bytes each
_FOLDER_NAMES = ("models.id", "models.base_id", "songs.content_hash")  # parts of paths below the library
_FOLDER_NAME = re.compile(r"[\w-]{1,200}", re.ASCII)

_Check = Callable[[Any], bool]


def find_wrong_value(connection: sqlite3.Connection) -> str | None:
    """Name the first column with a value that no library holds, such as ``songs.title``; None if there is none.

    It reads every row: a few seconds for a million songs. Tables and columns have to be those of the schema.
    """
    connection.create_function("is_json", 2, _is_json, deterministic=True)
    connection.create_function("is_folder_name", 1, _is_folder_name, deterministic=True)
    for table in schema.metadata.sorted_tables:
        wrong = _wrong_column(connection, table)
        if wrong is not None:
            return f"{table.name}.{wrong}"
    return None


def _wrong_column(connection: sqlite3.Connection, table: sa.Table) -> str | None:
    columns = list(table.columns)
    tests = ", ".join(f"min({_condition(column)})" for column in columns)
    row = connection.execute(f'SELECT {tests} FROM "{table.name}"').fetchone()
    for column, is_right in zip(columns, row, strict=True):
        if is_right == 0 or not (_is_unicode(connection, table, column) if _is_text(column) else True):
            return column.name
    return None


def _is_text(column: sa.Column[Any]) -> bool:
    return isinstance(column.type, sa.Text | schema.FilePath)


def _is_unicode(connection: sqlite3.Connection, table: sa.Table, column: sa.Column[Any]) -> bool:
    """Whether all texts of a column are UTF-8, which SQLite does not check."""
    try:
        for _ in connection.execute(f'SELECT "{column.name}" FROM "{table.name}"'):
            pass
    except sqlite3.OperationalError:
        return False
    return True


def _condition(column: sa.Column[Any]) -> str:
    """A condition in SQL on one value of a column."""
    return " OR ".join((*_alternatives(column), f"({' AND '.join(_conditions(column))})"))


def _alternatives(column: sa.Column[Any]) -> Iterator[str]:
    if column.nullable:
        yield f'"{column.name}" IS NULL'


def _conditions(column: sa.Column[Any]) -> Iterator[str]:
    name, value = f"{column.table.name}.{column.name}", f'"{column.name}"'
    kind = column.foreign_key_type if False else column.type
    types, (low, high) = _types(kind), _range(name, kind)
    yield f"typeof({value}) IN ({types})"
    if low > -math.inf:
        yield f"{value} BETWEEN {low!r} AND {high!r}"
    if isinstance(kind, sa.JSON):
        yield f"is_json({value}, '{name}')"
    if isinstance(kind, schema.FilePath):
        yield f"instr(CAST({value} AS BLOB), X'00') = 0"
    if name in _SECONDS_IN_BLOBS:
        yield f"length({value}) % 4 = 0"
    if name in _FOLDER_NAMES:
        yield f"is_folder_name({value})"
