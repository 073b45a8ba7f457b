"""Tables of a library."""

import os
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.types import TypeDecorator

from musicsim.addresses import without_user

# Bytes of a file name that are not UTF-8 reach Python as lone surrogates, which no database stores
# as text. They are kept as characters of a private plane that no real name uses.
_SURROGATE, _PRIVATE = 0xDC00, 0x10FE00
_TO_PRIVATE = {_SURROGATE + byte: _PRIVATE + byte for byte in range(0x80, 0x100)}
_TO_SURROGATE = {private: surrogate for surrogate, private in _TO_PRIVATE.items()}


def path_text(stored: str) -> str:
    """Turn stored text into a path's text as the file system has it; an address loses its user name and password."""
    return stored if stored.isascii() and "@" not in stored else without_user(stored.translate(_TO_SURROGATE))


def stored_path(path: Path) -> str:
    """Turn a path into text that can be stored; an address loses its user name and password."""
    return stored_text(os.fspath(path))


def stored_text(path: str) -> str:
    """Do as :func:`stored_path` does, for a path's text."""
    return path if path.isascii() and "@" not in path else without_user(path).translate(_TO_PRIVATE)


class FilePath(TypeDecorator[Path]):
    """A path of the file system, whatever bytes its name is made of."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: sa.Dialect) -> str | None:
        """Turn a path into text that can be stored."""
        return None if value is None else stored_path(value)

    def process_result_value(self, value: Any, dialect: sa.Dialect) -> Path | None:
        """Turn stored text into the path it stands for."""
        return None if value is None else path_of(value)


def path_of(text: str) -> Path:
    """The path that a stored text stands for."""
    return Path(path_text(text))


metadata = sa.MetaData()

IN_SMALL_COPY = {"in_small_copy": True}
"""The `info` of tables whose rows are in the daily small copy."""


def _table(name: str, *items: sa.schema.SchemaItem, **options: Any) -> sa.Table:
    return sa.Table(name, metadata, *items, **options)


meta = _table("meta", sa.Column("key", sa.Text, primary_key=True), sa.Column("value", sa.Text, nullable=False))

roots = _table("roots", sa.Column("path", FilePath, primary_key=True), sa.Column("added_at", sa.Float, nullable=False))

songs = _table(
    "songs",
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
    sa.Column("mb_recording_id", sa.Text),
    sa.Column("mb_artist_id", sa.Text),
    sa.Column("mb_album_id", sa.Text),
    sa.Column("file_tags", sa.JSON),  # as the file has them: what stands above is after edits and aliases
    sa.Column("edits", sa.JSON),
    sa.Column("sound_hash", sa.Text, index=True),
    sa.Column("typical_s", sa.Float, nullable=False, default=0.0, server_default="0"),
    sa.Column("is_compared", sa.Boolean, nullable=False, default=False, server_default="0"),
    sa.Column("last_path", FilePath),  # what to call a song that has no file any more
    sa.Column("tempo", sa.Float),  # from here on what can be heard: musicsim.audio.Descriptors
    sa.Column("key", sa.Text),
    sa.Column("mode", sa.Text),
    sa.Column("loudness", sa.Float),
    sa.Column("brightness", sa.Float),
    sa.Column("energy", sa.Float),
    sa.Column("descriptor_version", sa.Integer, nullable=False, default=0, server_default="0"),  # 0: not yet described
)

files = _table(
    "files",
    sa.Column("path", FilePath, primary_key=True),
    sa.Column("song_id", sa.ForeignKey("songs.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("folder", FilePath, nullable=False),
    sa.Column("size", sa.Integer, nullable=False),
    sa.Column("mtime_ns", sa.Integer, nullable=False),
    sa.Column("missing_since", sa.Float),
)

failures = _table(
    "failures",
    sa.Column("path", FilePath, primary_key=True),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("size", sa.Integer, nullable=False),
    sa.Column("mtime_ns", sa.Integer, nullable=False),
    sa.Column("failed_at", sa.Float, nullable=False),
    sa.Column("kind", sa.Text, nullable=False, default="error", server_default="error"),
    sa.Column("duration_s", sa.Float),
)

aliases = _table(
    "aliases",
    sa.Column("spelling", sa.Text, primary_key=True),
    sa.Column("artist", sa.Text, nullable=False),
    info=IN_SMALL_COPY,
)

duplicates = _table(
    "duplicates",
    sa.Column("first_id", sa.ForeignKey("songs.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("second_id", sa.ForeignKey("songs.id", ondelete="CASCADE"), primary_key=True, index=True),
    sa.Column("similarity", sa.Float, nullable=False),
    sa.Column("offset_s", sa.Float, nullable=False),
    sa.Column("is_same", sa.Boolean, nullable=False),  # False: a listener said that these are two songs
    info=IN_SMALL_COPY,
)

tags = _table(
    "tags",
    sa.Column("song_id", sa.ForeignKey("songs.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("tag", sa.Text, primary_key=True),
    sa.Column("source", sa.Text, primary_key=True),
    sa.Column("weight", sa.Float, nullable=False),
    info=IN_SMALL_COPY,
)

plays = _table(
    "plays",
    sa.Column("listener", sa.Text, primary_key=True),
    sa.Column("song_id", sa.ForeignKey("songs.id", ondelete="CASCADE"), primary_key=True, index=True),
    sa.Column("source", sa.Text, primary_key=True),  # an import, or what else counted them: sources add up
    sa.Column("count", sa.Integer, nullable=False),
    info=IN_SMALL_COPY,
)

imports = _table(
    "imports",
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("format", sa.Text, nullable=False),
    sa.Column("listener", sa.Text, nullable=False),  # empty: the files name theirs
    sa.Column("digest", sa.Text, nullable=False),
    sa.Column("created_at", sa.Float, nullable=False),
    sa.Column("n_rows", sa.Integer, nullable=False),
    sa.Column("n_songs", sa.Integer, nullable=False),
    sa.Column("n_matched", sa.Integer, nullable=False),
    sa.Column("n_plays", sa.Integer, nullable=False),
    sa.Column("n_skipped", sa.Integer, nullable=False),
    sa.Column("first_at", sa.Float),
    sa.Column("last_at", sa.Float),
    sqlite_autoincrement=True,  # the number of an import that was undone is never given again
    info=IN_SMALL_COPY,
)

# What was imported of songs that the library does not have, or not yet.
waiting = _table(
    "waiting",
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("import_id", sa.ForeignKey("imports.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("artist", sa.Text, nullable=False),
    sa.Column("title", sa.Text, nullable=False),
    sa.Column("album", sa.Text, nullable=False),
    sa.Column("mbid", sa.Text, nullable=False),
    sa.Column("who", sa.Text, nullable=False),  # the listener, or the tag
    sa.Column("value", sa.Float, nullable=False),  # plays, or the tag's weight
    sa.Column("times", sa.LargeBinary),  # as in listens
    sa.Index("ix_waiting_song", "artist", "title"),
    info=IN_SMALL_COPY,
)

# When a listener started a song, where an import says it: 4 bytes a listen, and 60 for each song of a listener.
listens = _table(
    "listens",
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("import_id", sa.ForeignKey("imports.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("listener", sa.Text, nullable=False),
    sa.Column("song_id", sa.ForeignKey("songs.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("times", sa.LargeBinary, nullable=False),  # seconds since 1970, little-endian uint32 each
    info=IN_SMALL_COPY,
)

# A person said that this name of an import is that song of the library, or is not: nobody is asked again.
spellings = _table(
    "spellings",
    sa.Column("artist", sa.Text, primary_key=True),
    sa.Column("title", sa.Text, primary_key=True),
    sa.Column("song_id", sa.ForeignKey("songs.id", ondelete="CASCADE"), primary_key=True, index=True),
    sa.Column("is_same", sa.Boolean, nullable=False),
    info=IN_SMALL_COPY,
)

playlists = _table(
    "playlists",
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("category", sa.Text),
    sa.Column("source", sa.Text, nullable=False),
    sa.Column("created_at", sa.Float, nullable=False),
    sa.Column("details", sa.JSON(none_as_null=True)),  # what it was drawn with: reasons, seed, settings
    sa.UniqueConstraint("source", "name", "category"),
    info=IN_SMALL_COPY,
)

playlist_songs = _table(
    "playlist_songs",
    sa.Column("playlist_id", sa.ForeignKey("playlists.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("position", sa.Integer, primary_key=True),
    sa.Column("song_id", sa.ForeignKey("songs.id", ondelete="CASCADE"), nullable=False),
    info=IN_SMALL_COPY,
)

models = _table(
    "models",
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("created_at", sa.Float, nullable=False),
    sa.Column("n_songs_fitted", sa.Integer, nullable=False),
    sa.Column("n_features", sa.Integer, nullable=False),
    sa.Column("n_dimensions", sa.Integer, nullable=False),
    sa.Column("is_active", sa.Boolean, nullable=False),
    sa.Column("is_complete", sa.Boolean, nullable=False, default=False),
    sa.Column("kind", sa.Text, nullable=False, default="native", server_default="native"),
    sa.Column("base_id", sa.Text),  # the model whose features it shares; None: it has its own
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
    sa.Column("done", sa.Integer, nullable=False, default=0),
    sa.Column("total", sa.Integer, nullable=False, default=0),
    sa.Column("failed", sa.Integer, nullable=False, default=0),
    sa.Column("seconds_left", sa.Float),
    sa.Column("songs_per_second", sa.Float),
    sa.Column("cancel_requested", sa.Boolean, nullable=False, default=False),
    sa.Column("pause_requested", sa.Boolean, nullable=False, default=False, server_default="0"),
    sa.Column("finish_requested", sa.Boolean, nullable=False, default=False, server_default="0"),
    sa.Column("pid", sa.Integer),
    sa.Column("created_at", sa.Float, nullable=False),
    sa.Column("updated_at", sa.Float, nullable=False),
)

feedback = _table(
    "feedback",
    sa.Column("song_id", sa.ForeignKey("songs.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("value", sa.Integer, nullable=False),
    sa.Column("created_at", sa.Float, nullable=False),
    info=IN_SMALL_COPY,
)

# A bag of words, never the text itself; empty where the files have none, so that they are not opened again.
lyrics = _table(
    "lyrics",
    sa.Column("song_id", sa.ForeignKey("songs.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("words", sa.JSON, nullable=False),  # how often by word
    sa.Column("mtime_ns", sa.Integer, nullable=False),  # of the file, when it was read
    sa.Column("lrc_mtime_ns", sa.Integer),  # of the .lrc file beside it; None: there was none
    sa.Column("read_at", sa.Float, nullable=False),
)

preferences = _table(
    "preferences",
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("created_at", sa.Float, nullable=False),
    sa.Column("question", sa.Text, nullable=False),
    sa.Column("model_a", sa.Text, nullable=False),  # names, which outlive their models
    sa.Column("model_b", sa.Text, nullable=False),
    sa.Column("chosen", sa.Text, nullable=False),  # a, b or same
    sa.Column("details", sa.JSON(none_as_null=True)),
    info=IN_SMALL_COPY,
)

# What listeners said when they were asked to compare songs; an answer goes with the first of its songs that goes.
answers = _table(
    "answers",
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("created_at", sa.Float, nullable=False),
    sa.Column("listener", sa.Text, nullable=False, index=True),
    sa.Column("form", sa.Text, nullable=False),
    sa.Column("song_1", sa.ForeignKey("songs.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("song_2", sa.ForeignKey("songs.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("song_3", sa.ForeignKey("songs.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("song_4", sa.ForeignKey("songs.id", ondelete="CASCADE"), index=True),  # None: three were shown
    sa.Column("chosen", sa.Integer),  # 0 for song_1; None: unsure
    sa.Column("is_random", sa.Boolean, nullable=False),
    sa.Column("foreseen", sa.Boolean),
    sa.Column("model", sa.Text, nullable=False),  # a name, which outlives its model
    sqlite_autoincrement=True,  # whoever takes an answer back twice takes no other one
    info=IN_SMALL_COPY,
)

ANSWER_SONGS = (answers.c.song_1, answers.c.song_2, answers.c.song_3, answers.c.song_4)
"""Where an answer keeps its songs, in the order in which they were shown."""

# Which answers to a search with a song a listener said to be like it, or not, and kept to learn from.
judgements = _table(
    "judgements",
    sa.Column("query_id", sa.ForeignKey("songs.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("song_id", sa.ForeignKey("songs.id", ondelete="CASCADE"), primary_key=True, index=True),
    sa.Column("value", sa.Integer, nullable=False),  # 1: more like this; -1: less
    sa.Column("created_at", sa.Float, nullable=False),
    info=IN_SMALL_COPY,
)

# Listening tests, frozen: see musicsim/explorer/listening_tests. Their songs are named by hashes, inside the document.
listening_tests = _table(
    "listening_tests",
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("digest", sa.Text, nullable=False, unique=True),
    sa.Column("created_at", sa.Float, nullable=False),
    sa.Column("document", sa.Text, nullable=False),  # JSON
    sqlite_autoincrement=True,
    info=IN_SMALL_COPY,
)

# Who takes part in a listening test, each with a link of their own.
test_listeners = _table(
    "test_listeners",
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("test_id", sa.ForeignKey("listening_tests.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("number", sa.Integer, nullable=False),  # of the test, from 0 on: chooses the order
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("token", sa.Text, nullable=False, unique=True),
    sa.Column("consented_at", sa.Float),  # None: not yet
    sqlite_autoincrement=True,
    info=IN_SMALL_COPY,
)

grades = _table(
    "grades",
    sa.Column("listener_id", sa.ForeignKey("test_listeners.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("pair", sa.Integer, primary_key=True),  # its place in the document
    sa.Column("category", sa.Integer),  # 0 not, 1 somewhat, 2 very similar; None: it could not be heard
    sa.Column("fine", sa.Integer),  # 0 to 100; None as above
    sa.Column("graded_at", sa.Float, nullable=False),
    info=IN_SMALL_COPY,
)

CORE_TABLES = frozenset(metadata.tables)
"""Names of the tables above, which every library has; those of extensions come later."""


def ids_with_file() -> sa.Select[tuple[int]]:
    """Ids of the songs that have a file which is not missing."""
    return sa.select(files.c.song_id).where(files.c.missing_since.is_(None))
