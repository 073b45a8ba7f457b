"""Values of a database that somebody else may have written: their types, ranges, and the names of folders.

SQLite stores any type in any column. Values of the wrong type would fail much later, far from their cause, and names
such as ``../..`` would lead out of the library.
"""

import json
import re
import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import fields
from itertools import starmap
from typing import Any

import sqlalchemy as sa

from musicsim.library.db import schema
from musicsim.library.db.changes import CHANGES_PREFIX
from musicsim.library.db.tables import all_tables
from musicsim.library.tags.file_tags import FileTags

_LATEST_S = 253_402_000_000.0  # in the year 9999, the last that a date can have
_EARLIEST_S = -60_000_000_000.0  # in the year 68
_MAX_NUMBER = 1e15
_RANGES: Mapping[str, tuple[float, float]] = {
    "songs.year": (-(2**15), 2**15 - 1),  # 16 bits, as in musicsim.library.db.columns
    "songs.track": (-(2**31), 2**31 - 1),
    "songs.duration_s": (0, 1e9),
    "songs.typical_s": (0, 1e9),
    "vectors.row": (0, 2**40),
}
_TIME = re.compile(r"\w+_at|missing_since")
_TIMES = ("listens.times", "waiting.times")  # 4 bytes each
_FOLDER_NAMES = ("models.id", "models.base_id", "songs.content_hash")  # parts of paths below the library
_FOLDER_NAME = re.compile(r"[\w-]{1,200}", re.ASCII)
_TEXTS = (sa.Text, sa.JSON, schema.FilePath)
_TAGS = frozenset(field.name for field in fields(FileTags))
_NUMBERS = ("track", "year")  # of the tags of a song; all others are texts


def find_wrong_value(connection: sqlite3.Connection, tables: Collection[sa.Table] | None = None) -> str | None:
    """Name the first column with a wrong value, such as ``songs.title``; None if all values are right.

    It looks at all tables by default, and reads every row: half a minute for a million songs. Tables and columns have
    to be those of the schema.
    """
    connection.create_function("is_json_of", 2, _is_json_of, deterministic=True)
    connection.create_function("is_folder_name", 1, _is_folder_name, deterministic=True)
    for table in all_tables() if tables is None else tables:
        columns = list(table.columns)
        tests = ", ".join(f"min({_condition(column)})" for column in columns)
        try:
            row = connection.execute(f'SELECT {tests} FROM "{table.name}"').fetchone()
        except sqlite3.OperationalError:  # a function of ours was given a text that is not UTF-8
            row = [1] * len(columns)
        texts = [column for column in columns if isinstance(column.type, _TEXTS)]
        all_unicode = _are_unicode(connection, texts)
        for column, is_right in zip(columns, row, strict=True):
            if is_right == 0 or not (all_unicode or column not in texts or _are_unicode(connection, [column])):
                return f"{table.name}.{column.name}"
        if table is schema.meta:
            for key, value in connection.execute("SELECT key, value FROM meta"):
                if not _is_meta(key, value):
                    return f"meta.value ({key[:20]})"
    return None


def _are_unicode(connection: sqlite3.Connection, columns: Sequence[sa.Column[Any]]) -> bool:
    """True if all texts of some columns of one table are UTF-8, which SQLite does not check."""
    if not columns:
        return True
    names = ", ".join(f'"{column.name}"' for column in columns)
    try:
        for _ in connection.execute(f'SELECT {names} FROM "{columns[0].table.name}"'):
            pass
    except sqlite3.OperationalError:
        return False
    return True


def _condition(column: sa.Column[Any]) -> str:
    """A condition in SQL on one value of a column."""
    right = f"({' AND '.join(_conditions(column))})"
    return f'"{column.name}" IS NULL OR {right}' if column.nullable else right


def _conditions(column: sa.Column[Any]) -> Iterator[str]:
    name, value, kind = f"{column.table.name}.{column.name}", f'"{column.name}"', column.type
    if isinstance(kind, sa.Boolean):
        yield f"typeof({value}) = 'integer'"
        yield f"{value} IN (0, 1)"
    elif isinstance(kind, sa.Integer):
        yield f"typeof({value}) = 'integer'"
    elif isinstance(kind, sa.Float):
        yield f"typeof({value}) IN ('integer', 'real')"
    elif isinstance(kind, sa.LargeBinary):
        yield f"typeof({value}) = 'blob'"
    else:
        yield f"typeof({value}) = 'text'"
    if (limits := _limits(name, column)) is not None:
        yield f"{value} BETWEEN {limits[0]} AND {limits[1]}"
    if isinstance(kind, sa.JSON):
        yield f"is_json_of({value}, '{name}')"
    if isinstance(kind, schema.FilePath):
        yield f"instr(CAST({value} AS BLOB), X'00') = 0"
    if name in _TIMES:
        yield f"length({value}) % 4 = 0"
    if name in _FOLDER_NAMES:
        yield f"is_folder_name({value})"


def _limits(name: str, column: sa.Column[Any]) -> tuple[float, float] | None:
    """The least and the greatest value; None if any value of its type will do."""
    if name in _RANGES or not isinstance(column.type, sa.Float):
        return _RANGES.get(name)
    return (_EARLIEST_S, _LATEST_S) if _TIME.fullmatch(column.name) else (-_MAX_NUMBER, _MAX_NUMBER)


def _is_folder_name(text: object) -> bool:
    return isinstance(text, str) and _FOLDER_NAME.fullmatch(text) is not None


def _is_json_of(text: object, name: str) -> bool:
    """True if a value is JSON of the form that a column holds."""
    if not isinstance(text, str):
        return False
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return False
    if name in ("songs.file_tags", "songs.edits"):
        return found is None or (isinstance(found, dict) and all(starmap(_is_tag, found.items())))
    if name == "lyrics.words":
        return isinstance(found, dict) and all(isinstance(n, int) for n in found.values())
    table, _, column = name.partition(".")
    check: Callable[[object], bool] | None = schema.metadata.tables[table].c[column].info.get("check")
    return check(found) if check else isinstance(found, dict)


def _is_meta(key: str, value: str) -> bool:
    """True if an entry about the library has the form that its readers expect; settings are read elsewhere."""
    if key == "revision":
        return re.fullmatch(r"\d{1,12}", value, re.ASCII) is not None
    if key != "colours" and not key.startswith(CHANGES_PREFIX):
        return True
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return False
    if key == "colours":
        return isinstance(found, dict) and all(map(_is_palette, found.values()))
    return _is_change(found)


def _is_change(found: object) -> bool:
    """True if this is an entry of :class:`musicsim.library.db.changes.ChangeLog`."""
    if not isinstance(found, list) or len(found) != 4 or not isinstance(found[0], str):
        return False
    touched = zip((int, str, str), found[1:], strict=True)
    return all(items is None or _is_list_of(kind, items) for kind, items in touched)


def _is_palette(found: object) -> bool:
    return isinstance(found, dict) and _is_list_of(int, [*found.values()])


def _is_list_of(kind: type, found: object) -> bool:
    return isinstance(found, list) and all(isinstance(item, kind) for item in found)


def _is_tag(name: str, value: object) -> bool:
    if name not in _TAGS:
        return False
    return value is None or isinstance(value, int if name in _NUMBERS else str)
