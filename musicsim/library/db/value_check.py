"""Checks of an untrusted database: SQLite stores any type in any column, and names may contain ``../..``."""

import json
import re
import sqlite3
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields
from typing import Any

import sqlalchemy as sa

from musicsim.library.db import schema
from musicsim.library.db.changes import CHANGES_PREFIX
from musicsim.library.tags.file_tags import FileTags

_LATEST_S = 253_402_000_000.0  # latest valid time, in 9999, the last year that datetime supports
_EARLIEST_S = -60_000_000_000.0  # earliest valid time, in the year 68
_MAX_NUMBER = 1e15
_RANGES: Mapping[str, tuple[float, float]] = {
    "songs.year": (-(2**15), 2**15 - 1),  # 16 bits, as in musicsim.library.db.columns
    "songs.track": (-(2**31), 2**31 - 1),
    "songs.duration_s": (0, 1e9),
    "songs.typical_s": (0, 1e9),
    "vectors.row": (0, 2**40),
    "judgments.chosen": (-1, len(schema.JUDGED_SONGS) - 1),
}
_TIME = re.compile(r"\w+_at|missing_since")
_TIMES = ("listens.times", "waiting.times")  # columns with 4 bytes per time
_FOLDER_NAMES = ("models.id", "models.base_id", "songs.content_hash")  # columns whose values become parts of paths
_FOLDER_NAME = re.compile(r"[\w-]{1,200}", re.ASCII)
_TEXTS = (sa.Text, sa.JSON, schema.FilePath)
_SQLITE_TYPES = (
    (sa.Boolean | sa.Integer, "'integer'"),
    (sa.Float, "'integer', 'real'"),
    (sa.LargeBinary, "'blob'"),
    (object, "'text'"),
)
_TAG_TYPES = {tag.name: (int if tag.name in ("track", "year") else str, type(None)) for tag in fields(FileTags)}


def find_wrong_value(connection: sqlite3.Connection, tables: Collection[sa.Table] | None = None) -> str | None:
    """Return the first column of `tables` (default: all) with an invalid value, such as ``songs.title``, or None."""
    connection.create_function("is_json_of", 2, _is_json_of, deterministic=True)
    connection.create_function("is_folder_name", 1, _is_folder_name, deterministic=True)
    for table in schema.all_tables() if tables is None else tables:
        columns = list(table.columns)
        tests = ", ".join(f"min({_condition(column)})" for column in columns)
        try:
            row = connection.execute(f'SELECT {tests} FROM "{table.name}"').fetchone()
        except sqlite3.OperationalError:  # a string passed to one of our functions is not UTF-8
            row = [1] * len(columns)
        texts = [column for column in columns if isinstance(column.type, _TEXTS)]
        all_unicode = _are_unicode(connection, texts)
        for column, is_right in zip(columns, row, strict=True):
            if is_right == 0 or not (all_unicode or column not in texts or _are_unicode(connection, [column])):
                return f"{table.name}.{column.name}"
        if table is schema.meta:
            for key, value in connection.execute("SELECT key, value FROM meta"):
                if not _is_valid_entry(key, value):
                    return f"meta.value ({key[:20]})"
    return None


def _are_unicode(connection: sqlite3.Connection, columns: Sequence[sa.Column[Any]]) -> bool:
    """Return whether all strings in some columns of one table are UTF-8, which SQLite does not check."""
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
    name, value, kind = f"{column.table.name}.{column.name}", f'"{column.name}"', column.type
    types = next(types for base, types in _SQLITE_TYPES if isinstance(kind, base))
    conditions = [f"typeof({value}) IN ({types})"]
    if isinstance(kind, sa.Boolean):
        conditions.append(f"{value} IN (0, 1)")
    limits = _RANGES.get(name)
    if limits is None and isinstance(kind, sa.Float):
        limits = (_EARLIEST_S, _LATEST_S) if _TIME.fullmatch(column.name) else (-_MAX_NUMBER, _MAX_NUMBER)
    if limits is not None:
        conditions.append(f"{value} BETWEEN {limits[0]} AND {limits[1]}")
    if isinstance(kind, sa.JSON):
        conditions.append(f"is_json_of({value}, '{name}')")
    if isinstance(kind, schema.FilePath):
        conditions.append(f"instr(CAST({value} AS BLOB), X'00') = 0")
    if name in _TIMES:
        conditions.append(f"length({value}) % 4 = 0")
    if name in _FOLDER_NAMES:
        conditions.append(f"is_folder_name({value})")
    condition = f"({' AND '.join(conditions)})"
    return f"{value} IS NULL OR {condition}" if column.nullable else condition


def _is_folder_name(text: object) -> bool:
    return isinstance(text, str) and _FOLDER_NAME.fullmatch(text) is not None


def _is_json_of(text: object, name: str) -> bool:
    if not isinstance(text, str):
        return False
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    if name in ("songs.file_tags", "songs.edits"):
        tags = {} if value is None else value
        return isinstance(tags, dict) and all(isinstance(tag, _TAG_TYPES.get(key, ())) for key, tag in tags.items())
    table, _, column = name.partition(".")
    check: Callable[[object], bool] | None = schema.metadata.tables[table].c[column].info.get("check")
    return check(value) if check else isinstance(value, dict)


def _is_valid_entry(key: str, value: str) -> bool:
    """Return whether a row of the table meta is valid; settings are checked elsewhere."""
    if key == "revision":
        return re.fullmatch(r"\d{1,12}", value, re.ASCII) is not None
    if key != "colours" and not key.startswith(CHANGES_PREFIX):
        return True
    try:
        content = json.loads(value)
    except (ValueError, RecursionError):
        return False
    if key == "colours":
        return isinstance(content, dict) and all(
            isinstance(palette, dict) and _is_list_of(int, [*palette.values()]) for palette in content.values()
        )
    # an entry of the change log, see musicsim.library.db.changes
    if not isinstance(content, list) or len(content) != 4 or not isinstance(content[0], str):
        return False
    touched = zip((int, str, str), content[1:], strict=True)
    return all(items is None or _is_list_of(kind, items) for kind, items in touched)


def _is_list_of(kind: type, value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, kind) for item in value)
