"""Tables of a library, their version, and the steps from each older version to the next."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.types import TypeDecorator

from musicsim.errors import LibraryError

__all__ = [
    "SCHEMA_VERSION",
    "FilePath",
    "failures",
    "feedback",
    "files",
    "jobs",
    "meta",
    "migrate",
    "models",
    "playlist_songs",
    "playlists",
    "plays",
    "roots",
    "songs",
    "tags",
    "vectors",
]

SCHEMA_VERSION = 1

# Bytes of a file name that are not UTF-8 reach Python as lone surrogates, which no database stores
# as text. They are kept as characters of a private plane that no real name uses.
_SURROGATE, _PRIVATE = 0xDC00, 0x10FE00
_TO_PRIVATE = {_SURROGATE + byte: _PRIVATE + byte for byte in range(0x80, 0x100)}
_TO_SURROGATE = {private: surrogate for surrogate, private in _TO_PRIVATE.items()}


class FilePath(TypeDecorator[Path]):
    """A path of the file system, whatever bytes its name is made of."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: sa.Dialect) -> str | None:
        """Turn a path into text that can be stored."""
        return None if value is None else os.fspath(value).translate(_TO_PRIVATE)

    def process_result_value(self, value: Any, dialect: sa.Dialect) -> Path | None:
        """Turn stored text into the path it stands for."""
        return None if value is None else Path(value.translate(_TO_SURROGATE))


_metadata = sa.MetaData()

meta = sa.Table(
    "meta",
    _metadata,
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
)

roots = sa.Table(
    "roots",
    _metadata,
    sa.Column("path", FilePath, primary_key=True),
    sa.Column("added_at", sa.Float, nullable=False),
)

songs = sa.Table(
    "songs",
    _metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("content_hash", sa.Text, nullable=False, unique=True),
    sa.Column("title", sa.Text, nullable=False),
    sa.Column("artist", sa.Text),
    sa.Column("album_artist", sa.Text),
    sa.Column("album", sa.Text),
    sa.Column("track", sa.Integer),
    sa.Column("year", sa.Integer),
    sa.Column("genre", sa.Text),
    sa.Column("duration_s", sa.Float, nullable=False),
    sa.Column("notes", sa.Text, nullable=False, default=""),
    sa.Column("outline", sa.LargeBinary, nullable=False, default=b""),  # peaks for drawing, a byte each
    sa.Column("feature_version", sa.Integer, nullable=False),
    sa.Column("added_at", sa.Float, nullable=False),
)

files = sa.Table(
    "files",
    _metadata,
    sa.Column("path", FilePath, primary_key=True),
    sa.Column("song_id", sa.ForeignKey("songs.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("folder", FilePath, nullable=False),
    sa.Column("size", sa.Integer, nullable=False),
    sa.Column("mtime_ns", sa.Integer, nullable=False),
)

failures = sa.Table(
    "failures",
    _metadata,
    sa.Column("path", FilePath, primary_key=True),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("size", sa.Integer, nullable=False),
    sa.Column("mtime_ns", sa.Integer, nullable=False),
    sa.Column("failed_at", sa.Float, nullable=False),
)

tags = sa.Table(
    "tags",
    _metadata,
    sa.Column("song_id", sa.ForeignKey("songs.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("tag", sa.Text, primary_key=True),
    sa.Column("weight", sa.Float, nullable=False),
)

plays = sa.Table(
    "plays",
    _metadata,
    sa.Column("listener", sa.Text, primary_key=True),
    sa.Column("song_id", sa.ForeignKey("songs.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("count", sa.Integer, nullable=False),
)

playlists = sa.Table(
    "playlists",
    _metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("category", sa.Text),
    sa.Column("source", sa.Text, nullable=False),
    sa.Column("created_at", sa.Float, nullable=False),
    sa.UniqueConstraint("source", "name", "category"),
)

playlist_songs = sa.Table(
    "playlist_songs",
    _metadata,
    sa.Column("playlist_id", sa.ForeignKey("playlists.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("position", sa.Integer, primary_key=True),
    sa.Column("song_id", sa.ForeignKey("songs.id", ondelete="CASCADE"), nullable=False),
)

models = sa.Table(
    "models",
    _metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("created_at", sa.Float, nullable=False),
    sa.Column("n_songs_fitted", sa.Integer, nullable=False),
    sa.Column("n_codewords", sa.Integer, nullable=False),
    sa.Column("n_dimensions", sa.Integer, nullable=False),
    sa.Column("is_active", sa.Boolean, nullable=False),
    sa.Column("is_complete", sa.Boolean, nullable=False, default=False),
)

vectors = sa.Table(
    "vectors",
    _metadata,
    sa.Column("model_id", sa.ForeignKey("models.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("row", sa.Integer, primary_key=True),
    sa.Column("song_id", sa.ForeignKey("songs.id", ondelete="CASCADE"), nullable=False),
)

jobs = sa.Table(
    "jobs",
    _metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("arguments", sa.JSON, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("message", sa.Text, nullable=False, default=""),
    sa.Column("done", sa.Integer, nullable=False, default=0),
    sa.Column("total", sa.Integer, nullable=False, default=0),
    sa.Column("failed", sa.Integer, nullable=False, default=0),
    sa.Column("seconds_left", sa.Float),
    sa.Column("songs_per_second", sa.Float),
    sa.Column("cancel_requested", sa.Boolean, nullable=False, default=False),
    sa.Column("pid", sa.Integer),
    sa.Column("created_at", sa.Float, nullable=False),
    sa.Column("updated_at", sa.Float, nullable=False),
)

feedback = sa.Table(
    "feedback",
    _metadata,
    sa.Column("song_id", sa.ForeignKey("songs.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("value", sa.Integer, nullable=False),
    sa.Column("created_at", sa.Float, nullable=False),
)

# MIGRATIONS[v] takes a store of version v to v + 1; it runs inside one transaction.
MIGRATIONS: dict[int, Callable[[sa.Connection], None]] = {}


def migrate(connection: sa.Connection, place: str) -> None:
    """Bring the tables of an open store to :data:`SCHEMA_VERSION`, in the caller's transaction.

    Raises
    ------
    LibraryError
        If the store was written by a newer version of the program.
    """
    if not sa.inspect(connection).has_table("meta"):
        _metadata.create_all(connection)
        connection.execute(meta.insert().values(key="schema_version", value=str(SCHEMA_VERSION)))
        return
    version = int(
        connection.execute(sa.select(meta.c.value).where(meta.c.key == "schema_version")).scalar_one()
    )
    if version > SCHEMA_VERSION:
        raise LibraryError(
            f"{place}: this library was written by a newer musicsim (schema {version}, this program knows "
            f"{SCHEMA_VERSION}). Update musicsim, or name another library."
        )
    for step in range(version, SCHEMA_VERSION):
        MIGRATIONS[step](connection)
    if version < SCHEMA_VERSION:
        connection.execute(
            meta.update().where(meta.c.key == "schema_version").values(value=str(SCHEMA_VERSION))
        )
