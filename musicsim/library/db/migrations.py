"""The version of a library's tables, and the steps from each older version to the next."""

import re

import sqlalchemy as sa

from musicsim import LIBRARY_FILE
from musicsim.errors import LibraryError
from musicsim.library.db import schema

# Columns and tables that came with version 2, as they were then: later versions may have changed them.
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


# The same for version 9.
_VERSION_9 = (
    """CREATE TABLE server_songs (
        server TEXT NOT NULL, id TEXT NOT NULL, song_id INTEGER REFERENCES songs (id) ON DELETE SET NULL,
        how TEXT NOT NULL, candidates JSON, title TEXT NOT NULL, artist TEXT NOT NULL, album TEXT NOT NULL,
        path TEXT NOT NULL, mbid TEXT NOT NULL, duration_s FLOAT, plays INTEGER NOT NULL, rating INTEGER NOT NULL,
        is_starred BOOLEAN NOT NULL, played_at FLOAT, PRIMARY KEY (server, id))""",
    "CREATE INDEX ix_server_songs_song_id ON server_songs (song_id)",
    """CREATE TABLE server_ids (
        server TEXT NOT NULL, form TEXT NOT NULL, id TEXT NOT NULL, PRIMARY KEY (server, form),
        FOREIGN KEY (server, id) REFERENCES server_songs (server, id) ON DELETE CASCADE)""",
    "CREATE INDEX ix_server_ids_form ON server_ids (form)",
    "CREATE INDEX ix_server_ids_id ON server_ids (server, id)",
    """CREATE TABLE server_lists (
        server TEXT NOT NULL, name TEXT NOT NULL, id TEXT NOT NULL, request JSON, written_at FLOAT NOT NULL,
        PRIMARY KEY (server, name))""",
)


# The same for version 10.
_VERSION_10 = (
    """CREATE TABLE listening_tests (
        id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL, name TEXT NOT NULL, digest TEXT NOT NULL UNIQUE,
        created_at FLOAT NOT NULL, document TEXT NOT NULL)""",
    """CREATE TABLE test_listeners (
        id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
        test_id INTEGER NOT NULL REFERENCES listening_tests (id) ON DELETE CASCADE, number INTEGER NOT NULL,
        name TEXT NOT NULL, token TEXT NOT NULL UNIQUE, consented_at FLOAT)""",
    "CREATE INDEX ix_test_listeners_test_id ON test_listeners (test_id)",
    """CREATE TABLE grades (
        listener_id INTEGER NOT NULL REFERENCES test_listeners (id) ON DELETE CASCADE, pair INTEGER NOT NULL,
        category INTEGER, fine INTEGER, graded_at FLOAT NOT NULL, PRIMARY KEY (listener_id, pair))""",
)


MIGRATIONS = {
    1: _VERSION_2, 2: _VERSION_3, 3: _VERSION_4, 4: _VERSION_5, 5: _VERSION_6, 6: _VERSION_7, 7: _VERSION_8,
    8: _VERSION_9, 9: _VERSION_10,
}  # fmt: skip
"""The statements that take a store of a version to the next one; they run inside one transaction."""

SCHEMA_VERSION = max(MIGRATIONS) + 1


def migrate(connection: sa.Connection, place: str, *, read_only: bool = False) -> None:
    """Bring the tables of an open store to :data:`SCHEMA_VERSION`, in the caller's transaction.

    Raises LibraryError if the store was written by a newer version of the program, or by something else;
    where it can only be read, also if an older version wrote it.
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
        schema.metadata.create_all(connection)
        connection.execute(schema.meta.insert().values(key="schema_version", value=str(SCHEMA_VERSION)))
        return
    for step in range(version, SCHEMA_VERSION):
        for statement in MIGRATIONS[step]:
            connection.exec_driver_sql(statement)
    connection.execute(
        schema.meta.update().where(schema.meta.c.key == "schema_version").values(value=str(SCHEMA_VERSION))
    )


def _version(connection: sa.Connection, place: str) -> int | None:
    """The version of a store's tables; None where there are none."""
    tables = sa.inspect(connection).get_table_names()
    if not tables:
        return None
    found = None
    if "meta" in tables:
        found = connection.scalar(sa.select(schema.meta.c.value).where(schema.meta.c.key == "schema_version"))
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
