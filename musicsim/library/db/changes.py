"""Log of the songs and models that each change to a library touches, so that readers reload only those.

Triggers collect the rows that a transaction touches. Readers reload everything if a revision is not in the log.
"""

import json
import secrets
from dataclasses import dataclass
from itertools import chain
from typing import Any

import sqlalchemy as sa

from musicsim.audio import DESCRIPTORS
from musicsim.library.db import schema

_MAX_SONGS = 1000  # maximum number of songs per change; a change to more songs is logged as a change to all songs
MAX_ENTRIES = 10_000  # maximum number of log entries, which take 0.1 kB each
TIDY_INTERVAL = 100  # changes
CHANGES_PREFIX = "change "
_EVERY_SONG = -1

# Columns by which songs are listed, counted, compared and searched. All other columns are read one song at a time.
_TRIGGERS = (
    ("songs", "INSERT", "songs", ("new.id",)),
    (
        "songs", f"UPDATE OF id, title, artist, genre, year, duration_s, key, mode, {', '.join(DESCRIPTORS)}",
        "songs", ("old.id", "new.id"),
    ),
    ("songs", "DELETE", "songs", ("old.id",)),
    ("files", "INSERT", "songs", ("new.song_id",)),
    ("files", "UPDATE OF path, song_id, folder, missing_since", "songs", ("old.song_id", "new.song_id")),
    ("files", "DELETE", "songs", ("old.song_id",)),
    ("duplicates", "INSERT", "songs", ("new.first_id", "new.second_id")),
    ("duplicates", "UPDATE", "songs", ("old.first_id", "old.second_id", "new.first_id", "new.second_id")),
    ("duplicates", "DELETE", "songs", ("old.first_id", "old.second_id")),
    # the roots decide which folders replace an unknown artist
    *(("roots", action, "songs", (str(_EVERY_SONG),)) for action in ("INSERT", "UPDATE", "DELETE")),
    ("vectors", "INSERT", "grown", ("new.model_id",)),
    ("vectors", "UPDATE", "shrunk", ("old.model_id", "new.model_id")),
    ("vectors", "DELETE", "shrunk", ("old.model_id",)),
)  # fmt: skip
_WATCH = (
    "CREATE TEMP TABLE touched (kind TEXT, id, PRIMARY KEY (kind, id)) WITHOUT ROWID",
    *(
        f"CREATE TEMP TRIGGER note_{number} AFTER {action} ON main.{table} BEGIN "
        + "".join(f"INSERT OR IGNORE INTO touched VALUES ('{kind}', {key}); " for key in keys)
        + "END"
        for number, (table, action, kind, keys) in enumerate(_TRIGGERS)
    ),
    "PRAGMA recursive_triggers=ON",  # otherwise rows deleted by REPLACE go unnoticed
)
_TOUCHED = f"""SELECT kind, id FROM touched WHERE kind <> 'songs' UNION ALL SELECT * FROM
    (SELECT kind, id FROM touched WHERE kind = 'songs' ORDER BY id LIMIT {_MAX_SONGS + 1})"""


@dataclass(frozen=True, slots=True)
class LoggedRevision:
    """A revision, and the random token of its log entry, which tells libraries with equal revisions apart."""

    number: int
    token: str | None


@dataclass(frozen=True, slots=True)
class Changes:
    songs: frozenset[int] | None  # ids of songs that were added, deleted or changed; None: possibly all
    grown: frozenset[str]  # ids of models that gained rows
    shrunk: frozenset[str]  # ids of models that lost rows


def begin_log(connection: sa.Connection) -> None:
    """Log the current revision if the last change was made by an older version of musicsim, which did not log it."""
    revision = _revision(connection)
    if not _entries(connection, revision, revision):
        _insert(connection, revision, None, None, None)


def collect_changes(connection: sa.Connection) -> None:
    """Collect the rows that this transaction touches from now on."""
    has_table = connection.exec_driver_sql("SELECT 1 FROM sqlite_temp_master WHERE name = 'touched'")
    if has_table.first() is None:
        for statement in _WATCH:
            connection.exec_driver_sql(statement)


def log_changes(connection: sa.Connection) -> int:
    """Log the collected rows under the new revision, and return it."""
    revision = _revision(connection)
    touched: dict[str, list[Any]] = {"songs": [], "grown": [], "shrunk": []}
    for kind, key in connection.exec_driver_sql(_TOUCHED).all():
        touched[kind].append(key)
    if any(touched.values()):
        connection.exec_driver_sql("DELETE FROM touched")
    songs = touched["songs"]
    is_any = _EVERY_SONG in songs[:1] or len(songs) > _MAX_SONGS
    _insert(connection, revision, None if is_any else songs, touched["grown"], touched["shrunk"])
    if revision % TIDY_INTERVAL == 0:
        m = schema.meta.c
        connection.execute(schema.meta.delete().where(m.key.between(_key(0), _key(revision - MAX_ENTRIES))))
    return revision


def read_revision(connection: sa.Connection) -> LoggedRevision:
    revision = _revision(connection)
    entries = _entries(connection, revision, revision)
    return LoggedRevision(revision, entries[0][0] if entries else None)


def find_changes(connection: sa.Connection, old: LoggedRevision) -> Changes | None:
    """Return the changes since a revision; None if they are unknown."""
    revision = _revision(connection)
    if revision < old.number:  # an earlier state of the library was restored
        return None
    entries = _entries(connection, old.number, revision)
    if old.token is None:  # the revision is before the first entry, so there is no token to compare
        if len(entries) != revision - old.number:
            return None
    elif len(entries) != revision - old.number + 1 or entries.pop(0)[0] != old.token:
        return None
    _, songs, grown, shrunk = zip(*entries, strict=True) if entries else ((), (), (), ())
    if None in grown:
        return None
    changed = None if None in songs else frozenset(chain.from_iterable(songs))
    return Changes(changed, frozenset(chain.from_iterable(grown)), frozenset(chain.from_iterable(shrunk)))


def _entries(connection: sa.Connection, first: int, last: int) -> list[list]:
    m = schema.meta.c
    query = sa.select(m.value).where(m.key.between(_key(first), _key(last))).order_by(m.key)
    return [json.loads(value) for value in connection.scalars(query)]


def _insert(
    connection: sa.Connection, revision: int, songs: list[int] | None, grown: list[str] | None, shrunk: list[str] | None
) -> None:
    """Log a revision; `songs` is None if any song may have changed; `grown` and `shrunk` are None if unknown."""
    entry = json.dumps([secrets.token_hex(8), songs, grown, shrunk])
    connection.exec_driver_sql("INSERT INTO meta (key, value) VALUES (?, ?)", (_key(revision), entry))


def _key(revision: int) -> str:
    return f"{CHANGES_PREFIX}{revision:012d}"


def _revision(connection: sa.Connection) -> int:
    return int(connection.scalar(sa.select(schema.meta.c.value).where(schema.meta.c.key == "revision")) or 0)
