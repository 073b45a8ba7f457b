"""Tables of a library: the core's tables, and functions that add the extensions' tables.

Three entries in ``info`` are used. ``"in_small_copy": True`` includes a table's rows in the daily small copy.
``"check"`` of a JSON column is a function that returns whether a decoded value is valid. ``"is_token": True`` marks a
column of access tokens, which a restored library replaces.
"""

import os
import secrets
import sqlite3
from functools import cache
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.types import TypeDecorator

from musicsim.addresses import strip_user
from musicsim.audio import DESCRIPTORS
from musicsim.registry import load_each

# Python decodes non-UTF-8 bytes in file names to lone surrogates, which databases cannot store as text. They are stored
# as characters from a private-use plane, which real names do not use.
_SURROGATE, _PRIVATE = 0xDC00, 0x10FE00
_TO_PRIVATE = {_SURROGATE + byte: _PRIVATE + byte for byte in range(0x80, 0x100)}
_TO_SURROGATE = {private: surrogate for surrogate, private in _TO_PRIVATE.items()}


def path_text(stored: str) -> str:
    """Convert a stored string to a path string; the user name and password are removed from an address."""
    return stored if stored.isascii() and "@" not in stored else strip_user(stored.translate(_TO_SURROGATE))


def encode_text(path: str) -> str:
    """Convert a path string to one that can be stored; the user name and password are removed from an address."""
    return path if path.isascii() and "@" not in path else strip_user(path).translate(_TO_PRIVATE)


def encode_path(path: Path) -> str:
    return encode_text(os.fspath(path))


def path_of(text: str) -> Path:
    return Path(path_text(text))


class FilePath(TypeDecorator[Path]):
    """A path in the file system, which need not be UTF-8."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: sa.Dialect) -> str | None:
        return None if value is None else encode_path(value)

    def process_result_value(self, value: Any, dialect: sa.Dialect) -> Path | None:
        return None if value is None else path_of(value)


metadata = sa.MetaData()

IN_SMALL_COPY = {"in_small_copy": True}
"""The `info` of tables that are included in the daily small copy."""


def _table(name: str, *items: sa.schema.SchemaItem, **options: Any) -> sa.Table:
    return sa.Table(name, metadata, *items, **options)


def _people_table(name: str, *items: sa.schema.SchemaItem, **options: Any) -> sa.Table:
    return _table(name, *items, info=IN_SMALL_COPY, **options)


def _columns(kind: type[sa.types.TypeEngine[Any]], *names: str, **options: Any) -> list[sa.Column[Any]]:
    return [sa.Column(name, kind, **options) for name in names]


meta = _table("meta", sa.Column("key", sa.Text, primary_key=True), sa.Column("value", sa.Text, nullable=False))

roots = _table("roots", sa.Column("path", FilePath, primary_key=True), sa.Column("added_at", sa.Float, nullable=False))

songs = _table(
    "songs",
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("content_hash", sa.Text, nullable=False, unique=True),
    sa.Column("title", sa.Text, nullable=False),
    *_columns(sa.Text, "artist", "album_artist", "album"),
    *_columns(sa.Integer, "track", "year"),
    sa.Column("genre", sa.Text),
    sa.Column("duration_s", sa.Float, nullable=False),
    sa.Column("notes", sa.Text, nullable=False, default=""),
    sa.Column("outline", sa.LargeBinary, nullable=False, default=b""),  # peaks for drawing, one byte each
    sa.Column("feature_version", sa.Integer, nullable=False),
    sa.Column("added_at", sa.Float, nullable=False),
    *_columns(sa.Text, "mb_recording_id", "mb_artist_id", "mb_album_id"),
    sa.Column("file_tags", sa.JSON),  # tags read from the file; the columns above include edits and aliases
    sa.Column("edits", sa.JSON),
    sa.Column("sound_hash", sa.Text, index=True),
    sa.Column("typical_s", sa.Float, nullable=False, default=0.0, server_default="0"),
    sa.Column("is_compared", sa.Boolean, nullable=False, default=False, server_default="0"),
    sa.Column("last_path", FilePath),  # last known path, to name a song without a file
    *_columns(sa.Text, "key", "mode"),
    *_columns(sa.Float, *DESCRIPTORS),
    sa.Column("descriptor_version", sa.Integer, nullable=False, default=0, server_default="0"),  # 0: not computed yet
)

files = _table(
    "files",
    sa.Column("path", FilePath, primary_key=True),
    sa.Column("song_id", sa.ForeignKey("songs.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("folder", FilePath, nullable=False),
    *_columns(sa.Integer, "size", "mtime_ns", nullable=False),
    sa.Column("missing_since", sa.Float),
)

failures = _table(
    "failures",
    sa.Column("path", FilePath, primary_key=True),
    sa.Column("reason", sa.Text, nullable=False),
    *_columns(sa.Integer, "size", "mtime_ns", nullable=False),
    sa.Column("failed_at", sa.Float, nullable=False),
    sa.Column("kind", sa.Text, nullable=False, default="error", server_default="error"),
    sa.Column("duration_s", sa.Float),
)

aliases = _people_table(
    "aliases", sa.Column("spelling", sa.Text, primary_key=True), sa.Column("artist", sa.Text, nullable=False)
)

duplicates = _people_table(
    "duplicates",
    sa.Column("first_id", sa.ForeignKey("songs.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("second_id", sa.ForeignKey("songs.id", ondelete="CASCADE"), primary_key=True, index=True),
    *_columns(sa.Float, "similarity", "offset_s", nullable=False),
    sa.Column("is_same", sa.Boolean, nullable=False),  # False: a listener decided that the songs differ
)

tags = _people_table(
    "tags",
    sa.Column("song_id", sa.ForeignKey("songs.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("tag", sa.Text, primary_key=True),
    sa.Column("source", sa.Text, primary_key=True),
    sa.Column("weight", sa.Float, nullable=False),
)

plays = _people_table(
    "plays",
    sa.Column("listener", sa.Text, primary_key=True),
    sa.Column("song_id", sa.ForeignKey("songs.id", ondelete="CASCADE"), primary_key=True, index=True),
    sa.Column("source", sa.Text, primary_key=True),  # an import or another counter; plays from all sources are summed
    sa.Column("count", sa.Integer, nullable=False),
)

imports = _people_table(
    "imports",
    sa.Column("id", sa.Integer, primary_key=True),
    # the listener is empty if the files name the listeners
    *_columns(sa.Text, "name", "kind", "format", "listener", "digest", nullable=False),
    sa.Column("created_at", sa.Float, nullable=False),
    *_columns(sa.Integer, "n_rows", "n_songs", "n_matched", "n_plays", "n_skipped", nullable=False),
    *_columns(sa.Float, "first_at", "last_at"),
    sqlite_autoincrement=True,  # never reuse the id of an import that was undone
)

# Imported entries whose songs are not in the library.
waiting = _people_table(
    "waiting",
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("import_id", sa.ForeignKey("imports.id", ondelete="CASCADE"), nullable=False, index=True),
    *_columns(sa.Text, "artist", "title", "album", "mbid", nullable=False),
    sa.Column("who", sa.Text, nullable=False),  # the listener, or the tag
    sa.Column("value", sa.Float, nullable=False),  # number of plays, or the tag's weight
    sa.Column("times", sa.LargeBinary),  # same format as in the table listens
    sa.Index("ix_waiting_song", "artist", "title"),
)

# Times at which a listener started a song: 4 bytes per start, plus 60 bytes per listener and song.
listens = _people_table(
    "listens",
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("import_id", sa.ForeignKey("imports.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("listener", sa.Text, nullable=False),
    sa.Column("song_id", sa.ForeignKey("songs.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("times", sa.LargeBinary, nullable=False),  # seconds since 1970, each a little-endian uint32
)

# People's decisions on whether an imported name is a song in the library.
spellings = _people_table(
    "spellings",
    sa.Column("artist", sa.Text, primary_key=True),
    sa.Column("title", sa.Text, primary_key=True),
    sa.Column("song_id", sa.ForeignKey("songs.id", ondelete="CASCADE"), primary_key=True, index=True),
    sa.Column("is_same", sa.Boolean, nullable=False),
)

playlists = _people_table(
    "playlists",
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("category", sa.Text),
    sa.Column("source", sa.Text, nullable=False),
    sa.Column("created_at", sa.Float, nullable=False),
    sa.Column("details", sa.JSON(none_as_null=True)),  # reasons, seed and settings of a generated playlist
    sa.UniqueConstraint("source", "name", "category"),
)

playlist_songs = _people_table(
    "playlist_songs",
    sa.Column("playlist_id", sa.ForeignKey("playlists.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("position", sa.Integer, primary_key=True),
    sa.Column("song_id", sa.ForeignKey("songs.id", ondelete="CASCADE"), nullable=False),
)

models = _table(
    "models",
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("created_at", sa.Float, nullable=False),
    *_columns(sa.Integer, "n_songs_fitted", "n_features", "n_dimensions", nullable=False),
    sa.Column("is_active", sa.Boolean, nullable=False),
    sa.Column("is_complete", sa.Boolean, nullable=False, default=False),
    sa.Column("kind", sa.Text, nullable=False, default="native", server_default="native"),
    sa.Column("base_id", sa.Text),  # the model whose features it shares; None if it has its own
    sa.Column("settings", sa.JSON, nullable=False, default=dict, server_default="{}"),
    sa.Column("is_retired", sa.Boolean, nullable=False, default=False, server_default="0"),
)

vectors = _table(
    "vectors",
    sa.Column("model_id", sa.ForeignKey("models.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("row", sa.Integer, primary_key=True),
    sa.Column("song_id", sa.ForeignKey("songs.id", ondelete="CASCADE"), nullable=False),
)

jobs = _table(
    "jobs",
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("arguments", sa.JSON, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("message", sa.Text, nullable=False, default=""),
    *_columns(sa.Integer, "done", "total", "failed", nullable=False, default=0),
    *_columns(sa.Float, "seconds_left", "songs_per_second"),
    sa.Column("cancel_requested", sa.Boolean, nullable=False, default=False),
    *_columns(sa.Boolean, "pause_requested", "finish_requested", nullable=False, default=False, server_default="0"),
    sa.Column("pid", sa.Integer),
    *_columns(sa.Float, "created_at", "updated_at", nullable=False),
    sa.Column("share", sa.Float, nullable=False, default=0.0, server_default="0"),
)

feedback = _people_table(
    "feedback",
    sa.Column("song_id", sa.ForeignKey("songs.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("value", sa.Integer, nullable=False),
    sa.Column("created_at", sa.Float, nullable=False),
)


def _is_context(value: object) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("foreseen"), bool | None):
        return False
    options = value.get("options", ["", ""])
    is_pair = isinstance(options, list) and [type(name) for name in options] == [str, str]
    return is_pair and isinstance(value.get("model", ""), str)


# Listeners' judgments, see musicsim.library.stores.judgments. A judgment is deleted when one of its songs is deleted.
judgments = _people_table(
    "judgments",
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("created_at", sa.Float, nullable=False),
    *_columns(sa.Text, "listener", "kind", nullable=False, index=True),
    *(sa.Column(f"song_{n}", sa.ForeignKey("songs.id", ondelete="CASCADE"), index=True) for n in (1, 2, 3, 4)),
    sa.Column("chosen", sa.Integer),
    sa.Column("context", sa.JSON, nullable=False, info={"check": _is_context}),
    sqlite_autoincrement=True,  # undoing an answer twice must not delete a different answer
)

JUDGED_SONGS = (judgments.c.song_1, judgments.c.song_2, judgments.c.song_3, judgments.c.song_4)
"""Columns with the songs of a judgment, in the order shown on screen."""

CORE_TABLES = frozenset(metadata.tables)
"""Names of the tables above; extensions add more."""


def ids_with_file() -> sa.Select[tuple[int]]:
    return sa.select(files.c.song_id).where(files.c.missing_since.is_(None))


@cache
def all_tables() -> tuple[sa.Table, ...]:
    """Import the extensions' tables, and return all tables, each after the tables that it references."""
    load_each(lambda extension: extension.tables)
    return tuple(metadata.sorted_tables)


def small_copy_tables() -> tuple[sa.Table, ...]:
    """Return the tables that are included in the daily small copy, in the order of :func:`all_tables`."""
    return tuple(table for table in all_tables() if table.info.get("in_small_copy"))


def new_token() -> str:
    """Return a random access token, the secret part of a link."""
    return secrets.token_urlsafe(18)


def renew_tokens(database: sqlite3.Connection) -> None:
    """Replace all access tokens, in the caller's transaction."""
    tokens = [(table.name, column.name) for table in all_tables() for column in table.c if column.info.get("is_token")]
    for table, column in tokens:
        rows = database.execute(f"SELECT rowid FROM {table}").fetchall()
        renewed = [(new_token(), row) for (row,) in rows]
        database.executemany(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", renewed)
