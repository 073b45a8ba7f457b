"""Tables of a library, their version, and the steps from each older version to the next."""

import os
import re
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.types import TypeDecorator

from musicsim import LIBRARY_FILE
from musicsim.errors import LibraryError

__all__ = [
    "ANSWER_SONGS",
    "SCHEMA_VERSION",
    "FilePath",
    "aliases",
    "answers",
    "duplicates",
    "failures",
    "feedback",
    "files",
    "ids_with_file",
    "imports",
    "jobs",
    "judgements",
    "listens",
    "lyrics",
    "meta",
    "migrate",
    "models",
    "playlist_songs",
    "playlists",
    "plays",
    "preferences",
    "roots",
    "songs",
    "spellings",
    "tags",
    "vectors",
    "waiting",
]

SCHEMA_VERSION = 8

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
    sa.Column(
        "descriptor_version", sa.Integer, nullable=False, default=0, server_default="0"
    ),  # 0: not yet described
)

files = sa.Table(
    "files",
    _metadata,
    sa.Column("path", FilePath, primary_key=True),
    sa.Column("song_id", sa.ForeignKey("songs.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("folder", FilePath, nullable=False),
    sa.Column("size", sa.Integer, nullable=False),
    sa.Column("mtime_ns", sa.Integer, nullable=False),
    sa.Column("missing_since", sa.Float),
)

failures = sa.Table(
    "failures",
    _metadata,
    sa.Column("path", FilePath, primary_key=True),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("size", sa.Integer, nullable=False),
    sa.Column("mtime_ns", sa.Integer, nullable=False),
    sa.Column("failed_at", sa.Float, nullable=False),
    sa.Column("kind", sa.Text, nullable=False, default="error", server_default="error"),
    sa.Column("duration_s", sa.Float),
)

aliases = sa.Table(
    "aliases",
    _metadata,
    sa.Column("spelling", sa.Text, primary_key=True),
    sa.Column("artist", sa.Text, nullable=False),
)

duplicates = sa.Table(
    "duplicates",
    _metadata,
    sa.Column("first_id", sa.ForeignKey("songs.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("second_id", sa.ForeignKey("songs.id", ondelete="CASCADE"), primary_key=True, index=True),
    sa.Column("similarity", sa.Float, nullable=False),
    sa.Column("offset_s", sa.Float, nullable=False),
    sa.Column("is_same", sa.Boolean, nullable=False),  # False: a listener said that these are two songs
)

tags = sa.Table(
    "tags",
    _metadata,
    sa.Column("song_id", sa.ForeignKey("songs.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("tag", sa.Text, primary_key=True),
    sa.Column("source", sa.Text, primary_key=True),
    sa.Column("weight", sa.Float, nullable=False),
)

plays = sa.Table(
    "plays",
    _metadata,
    sa.Column("listener", sa.Text, primary_key=True),
    sa.Column("song_id", sa.ForeignKey("songs.id", ondelete="CASCADE"), primary_key=True, index=True),
    sa.Column("source", sa.Text, primary_key=True),  # an import, or what else counted them: sources add up
    sa.Column("count", sa.Integer, nullable=False),
)

imports = sa.Table(
    "imports",
    _metadata,
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
)

# What was imported of songs that the library does not have, or not yet.
waiting = sa.Table(
    "waiting",
    _metadata,
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
)

# When a listener started a song, where an import says it: 4 bytes a listen, and 60 for each song of a listener.
listens = sa.Table(
    "listens",
    _metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("import_id", sa.ForeignKey("imports.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("listener", sa.Text, nullable=False),
    sa.Column("song_id", sa.ForeignKey("songs.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("times", sa.LargeBinary, nullable=False),  # seconds since 1970, little-endian uint32 each
)

# A person said that this name of an import is that song of the library, or is not: nobody is asked again.
spellings = sa.Table(
    "spellings",
    _metadata,
    sa.Column("artist", sa.Text, primary_key=True),
    sa.Column("title", sa.Text, primary_key=True),
    sa.Column("song_id", sa.ForeignKey("songs.id", ondelete="CASCADE"), primary_key=True, index=True),
    sa.Column("is_same", sa.Boolean, nullable=False),
)

playlists = sa.Table(
    "playlists",
    _metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("category", sa.Text),
    sa.Column("source", sa.Text, nullable=False),
    sa.Column("created_at", sa.Float, nullable=False),
    sa.Column("details", sa.JSON(none_as_null=True)),  # what it was drawn with: reasons, seed, settings
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
    sa.Column("n_features", sa.Integer, nullable=False),
    sa.Column("n_dimensions", sa.Integer, nullable=False),
    sa.Column("is_active", sa.Boolean, nullable=False),
    sa.Column("is_complete", sa.Boolean, nullable=False, default=False),
    sa.Column("kind", sa.Text, nullable=False, default="native", server_default="native"),
    sa.Column("base_id", sa.Text),  # the model whose features it shares; None: it has its own
    sa.Column("settings", sa.JSON, nullable=False, default=dict, server_default="{}"),
    sa.Column("is_retired", sa.Boolean, nullable=False, default=False, server_default="0"),
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
    sa.Column("pause_requested", sa.Boolean, nullable=False, default=False, server_default="0"),
    sa.Column("finish_requested", sa.Boolean, nullable=False, default=False, server_default="0"),
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

# A bag of words, never the text itself; empty where the files have none, so that they are not opened again.
lyrics = sa.Table(
    "lyrics",
    _metadata,
    sa.Column("song_id", sa.ForeignKey("songs.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("words", sa.JSON, nullable=False),  # how often by word
    sa.Column("mtime_ns", sa.Integer, nullable=False),  # of the file, when it was read
    sa.Column("lrc_mtime_ns", sa.Integer),  # of the .lrc file beside it; None: there was none
    sa.Column("read_at", sa.Float, nullable=False),
)

preferences = sa.Table(
    "preferences",
    _metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("created_at", sa.Float, nullable=False),
    sa.Column("question", sa.Text, nullable=False),
    sa.Column("model_a", sa.Text, nullable=False),  # names, which outlive their models
    sa.Column("model_b", sa.Text, nullable=False),
    sa.Column("chosen", sa.Text, nullable=False),  # a, b or same
    sa.Column("details", sa.JSON(none_as_null=True)),
)

# What listeners said when they were asked to compare songs; an answer goes with the first of its songs that goes.
answers = sa.Table(
    "answers",
    _metadata,
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
)

ANSWER_SONGS = (answers.c.song_1, answers.c.song_2, answers.c.song_3, answers.c.song_4)
"""Where an answer keeps its songs, in the order in which they were shown."""

# Which answers to a search with a song a listener said to be like it, or not, and kept to learn from.
judgements = sa.Table(
    "judgements",
    _metadata,
    sa.Column("query_id", sa.ForeignKey("songs.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("song_id", sa.ForeignKey("songs.id", ondelete="CASCADE"), primary_key=True, index=True),
    sa.Column("value", sa.Integer, nullable=False),  # 1: more like this; -1: less
    sa.Column("created_at", sa.Float, nullable=False),
)

# Columns and tables that came with version 2, as they stood then: later versions may change the tables above.
_VERSION_2 = (
    "ALTER TABLE songs ADD COLUMN mb_recording_id TEXT",
    "ALTER TABLE songs ADD COLUMN mb_artist_id TEXT",
    "ALTER TABLE songs ADD COLUMN mb_album_id TEXT",
    "ALTER TABLE songs ADD COLUMN file_tags JSON",
    "ALTER TABLE songs ADD COLUMN edits JSON",
    "ALTER TABLE songs ADD COLUMN sound_hash TEXT",
    "ALTER TABLE songs ADD COLUMN typical_s FLOAT NOT NULL DEFAULT 0",
    "ALTER TABLE songs ADD COLUMN is_compared BOOLEAN NOT NULL DEFAULT 0",
    "ALTER TABLE songs ADD COLUMN last_path TEXT",
    "CREATE INDEX ix_songs_sound_hash ON songs (sound_hash)",
    "UPDATE songs SET last_path = (SELECT min(path) FROM files WHERE files.song_id = songs.id)",
    "ALTER TABLE files ADD COLUMN missing_since FLOAT",
    "ALTER TABLE failures ADD COLUMN kind TEXT NOT NULL DEFAULT 'error'",
    "ALTER TABLE failures ADD COLUMN duration_s FLOAT",
    "ALTER TABLE jobs ADD COLUMN pause_requested BOOLEAN NOT NULL DEFAULT 0",
    "CREATE TABLE aliases (spelling TEXT NOT NULL PRIMARY KEY, artist TEXT NOT NULL)",
    """CREATE TABLE duplicates (
        first_id INTEGER NOT NULL REFERENCES songs (id) ON DELETE CASCADE,
        second_id INTEGER NOT NULL REFERENCES songs (id) ON DELETE CASCADE,
        similarity FLOAT NOT NULL, offset_s FLOAT NOT NULL, is_same BOOLEAN NOT NULL,
        PRIMARY KEY (first_id, second_id))""",
    "CREATE INDEX ix_duplicates_second_id ON duplicates (second_id)",
)


# The same for version 3.
_VERSION_3 = (
    "ALTER TABLE models RENAME COLUMN n_codewords TO n_features",
    "ALTER TABLE models ADD COLUMN kind TEXT NOT NULL DEFAULT 'native'",
    "ALTER TABLE models ADD COLUMN base_id TEXT",
    "ALTER TABLE models ADD COLUMN settings JSON NOT NULL DEFAULT '{}'",
    "ALTER TABLE models ADD COLUMN is_retired BOOLEAN NOT NULL DEFAULT 0",
    "ALTER TABLE jobs ADD COLUMN finish_requested BOOLEAN NOT NULL DEFAULT 0",
    "ALTER TABLE plays RENAME TO old_plays",
    """CREATE TABLE plays (
        listener TEXT NOT NULL, song_id INTEGER NOT NULL REFERENCES songs (id) ON DELETE CASCADE,
        source TEXT NOT NULL, count INTEGER NOT NULL, PRIMARY KEY (listener, song_id, source))""",
    "INSERT INTO plays SELECT listener, song_id, 'import', count FROM old_plays",
    "DROP TABLE old_plays",
    "ALTER TABLE tags RENAME TO old_tags",
    """CREATE TABLE tags (
        song_id INTEGER NOT NULL REFERENCES songs (id) ON DELETE CASCADE, tag TEXT NOT NULL,
        source TEXT NOT NULL, weight FLOAT NOT NULL, PRIMARY KEY (song_id, tag, source))""",
    "INSERT INTO tags SELECT song_id, tag, 'import', weight FROM old_tags",
    "DROP TABLE old_tags",
    """CREATE TABLE imports (
        id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, name TEXT NOT NULL, kind TEXT NOT NULL,
        format TEXT NOT NULL, listener TEXT NOT NULL, digest TEXT NOT NULL, created_at FLOAT NOT NULL,
        n_rows INTEGER NOT NULL, n_songs INTEGER NOT NULL, n_matched INTEGER NOT NULL,
        n_plays INTEGER NOT NULL, n_skipped INTEGER NOT NULL, first_at FLOAT, last_at FLOAT)""",
    """CREATE TABLE waiting (
        id INTEGER NOT NULL PRIMARY KEY,
        import_id INTEGER NOT NULL REFERENCES imports (id) ON DELETE CASCADE,
        artist TEXT NOT NULL, title TEXT NOT NULL, album TEXT NOT NULL, mbid TEXT NOT NULL,
        who TEXT NOT NULL, value FLOAT NOT NULL, times BLOB)""",
    "CREATE INDEX ix_waiting_import_id ON waiting (import_id)",
    "CREATE INDEX ix_waiting_song ON waiting (artist, title)",
    "CREATE INDEX ix_plays_song_id ON plays (song_id)",
    """CREATE TABLE listens (
        id INTEGER NOT NULL PRIMARY KEY,
        import_id INTEGER NOT NULL REFERENCES imports (id) ON DELETE CASCADE, listener TEXT NOT NULL,
        song_id INTEGER NOT NULL REFERENCES songs (id) ON DELETE CASCADE, times BLOB NOT NULL)""",
    "CREATE INDEX ix_listens_import_id ON listens (import_id)",
    "CREATE INDEX ix_listens_song_id ON listens (song_id)",
    """CREATE TABLE spellings (
        artist TEXT NOT NULL, title TEXT NOT NULL,
        song_id INTEGER NOT NULL REFERENCES songs (id) ON DELETE CASCADE,
        is_same BOOLEAN NOT NULL, PRIMARY KEY (artist, title, song_id))""",
    "CREATE INDEX ix_spellings_song_id ON spellings (song_id)",
)


# The same for version 4.
_VERSION_4 = (
    """CREATE TABLE lyrics (
        song_id INTEGER NOT NULL PRIMARY KEY REFERENCES songs (id) ON DELETE CASCADE, words JSON NOT NULL,
        mtime_ns INTEGER NOT NULL, lrc_mtime_ns INTEGER, read_at FLOAT NOT NULL)""",
    """CREATE TABLE preferences (
        id INTEGER NOT NULL PRIMARY KEY, created_at FLOAT NOT NULL, question TEXT NOT NULL,
        model_a TEXT NOT NULL, model_b TEXT NOT NULL, chosen TEXT NOT NULL, details JSON)""",
    "ALTER TABLE playlists ADD COLUMN details JSON",
    # Lists of an import were known by its name alone, which another import may have too, or a listener's own lists.
    """UPDATE playlists SET source = (
        SELECT i.name || ' (import ' || i.id || ')' FROM imports i
        WHERE i.kind = 'playlists' AND i.name = playlists.source ORDER BY i.id DESC LIMIT 1)
       WHERE source <> 'saved' AND source IN (SELECT name FROM imports WHERE kind = 'playlists')""",
)


# The same for version 5.
_VERSION_5 = (
    """CREATE TABLE answers (
        id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, created_at FLOAT NOT NULL, listener TEXT NOT NULL,
        form TEXT NOT NULL, song_1 INTEGER NOT NULL REFERENCES songs (id) ON DELETE CASCADE,
        song_2 INTEGER NOT NULL REFERENCES songs (id) ON DELETE CASCADE,
        song_3 INTEGER NOT NULL REFERENCES songs (id) ON DELETE CASCADE,
        song_4 INTEGER REFERENCES songs (id) ON DELETE CASCADE,
        chosen INTEGER, is_random BOOLEAN NOT NULL, foreseen BOOLEAN, model TEXT NOT NULL)""",
    "CREATE INDEX ix_answers_listener ON answers (listener)",
    *(f"CREATE INDEX ix_answers_song_{n} ON answers (song_{n})" for n in range(1, 5)),
)


# The same for version 6.
_VERSION_6 = (
    """CREATE TABLE judgements (
        query_id INTEGER NOT NULL REFERENCES songs (id) ON DELETE CASCADE,
        song_id INTEGER NOT NULL REFERENCES songs (id) ON DELETE CASCADE,
        value INTEGER NOT NULL, created_at FLOAT NOT NULL, PRIMARY KEY (query_id, song_id))""",
    "CREATE INDEX ix_judgements_song_id ON judgements (song_id)",
)


# Default names of models up to version 6, and those from version 7 on. The built-in model replaces any other of its
# name when it is refitted: a model that has the new name already gets another.
_MODEL_NAMES = (
    ("Sound", "Sound (mine)"), ("as it sounds", "Sound"), ("as people listen", "Listeners"),
    ("as in one sitting", "Sittings"), ("as on playlists", "Playlists"), ("as tagged", "Tags"), ("by genre", "Genres"),
    ("by artist", "Artists"), ("by folder", "Folders"), ("by thumbs", "Thumbs"), ("as people answer", "Answers"),
)  # fmt: skip

_VERSION_7 = tuple(
    f"UPDATE models SET {change} AND NOT EXISTS (SELECT 1 FROM models WHERE name = '{after}')"
    for before, after in _MODEL_NAMES
    for change in (
        # the settings of a model name those that it was trained on
        f"""settings = replace(settings, '"{before}"', '"{after}"') WHERE true""",
        f"name = '{after}' WHERE name = '{before}'",
    )
)

# The same for version 8.
_VERSION_8 = (
    "ALTER TABLE songs ADD COLUMN tempo FLOAT",
    'ALTER TABLE songs ADD COLUMN "key" TEXT',
    "ALTER TABLE songs ADD COLUMN mode TEXT",
    "ALTER TABLE songs ADD COLUMN loudness FLOAT",
    "ALTER TABLE songs ADD COLUMN brightness FLOAT",
    "ALTER TABLE songs ADD COLUMN energy FLOAT",
    "ALTER TABLE songs ADD COLUMN descriptor_version INTEGER NOT NULL DEFAULT 0",
)


MIGRATIONS = {
    1: _VERSION_2, 2: _VERSION_3, 3: _VERSION_4, 4: _VERSION_5, 5: _VERSION_6, 6: _VERSION_7, 7: _VERSION_8,
}  # fmt: skip
"""The statements that take a store of a version to the next one; they run inside one transaction."""


def migrate(connection: sa.Connection, place: str, *, read_only: bool = False) -> None:
    """Bring the tables of an open store to :data:`SCHEMA_VERSION`, in the caller's transaction.

    Raises
    ------
    LibraryError
        If the store was written by a newer version of the program, or by something else; where it can only be read,
        also if an older version wrote it.
    """
    version = _version(connection, place)
    if version == SCHEMA_VERSION:
        return
    if read_only:
        raise LibraryError(
            f"{place}: this library was written by an older musicsim and cannot be brought up to date where it is "
            f"read-only. Copy it to a folder that can be written to, and open it there."
        )
    if version is None:
        _metadata.create_all(connection)
        connection.execute(meta.insert().values(key="schema_version", value=str(SCHEMA_VERSION)))
        return
    for step in range(version, SCHEMA_VERSION):
        for statement in MIGRATIONS[step]:
            connection.exec_driver_sql(statement)
    connection.execute(meta.update().where(meta.c.key == "schema_version").values(value=str(SCHEMA_VERSION)))


def _version(connection: sa.Connection, place: str) -> int | None:
    """The version of a store's tables; None where there are none."""
    tables = sa.inspect(connection).get_table_names()
    if not tables:
        return None
    found = None
    if "meta" in tables:
        found = connection.scalar(sa.select(meta.c.value).where(meta.c.key == "schema_version"))
    if found is None or not re.fullmatch("[1-9][0-9]{0,8}", str(found)):
        says = (
            "does not say which version of a library it is"
            if found is None
            else f"says it is version {found!r}"
        )
        raise LibraryError(
            f"{place}: {LIBRARY_FILE} {says}: it is damaged, or belongs to another program. Restore a "
            "backup, or name another folder."
        )
    if int(found) > SCHEMA_VERSION:
        raise LibraryError(
            f"{place}: this library was written by a newer musicsim (schema {found}, this program knows "
            f"{SCHEMA_VERSION}). Update musicsim, or name another library."
        )
    return int(found)


def ids_with_file() -> sa.Select[tuple[int]]:
    """Ids of the songs that have a file which is not missing."""
    return sa.select(files.c.song_id).where(files.c.missing_since.is_(None))
