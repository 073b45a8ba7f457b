"""Which songs and models each change of a library has touched: what a reader has to read again, and no more.

Triggers note the rows that a transaction of :meth:`Store.write` touches, whichever part of the program writes them;
at its end they are entered under the new revision, in the same transaction. A revision without an entry (an older
version of the program wrote it, or it is long ago) says nothing: its readers read everything again.
"""

import json
import secrets
from dataclasses import dataclass
from itertools import chain
from typing import Any

import sqlalchemy as sa

from musicsim.audio import HEARD
from musicsim.library.db import schema

_MAX_SONGS = 1000  # of one change; more are as good as all
_KEPT = 10_000  # changes; 0.1 kB each
_TIDIED_EVERY = 100  # changes
CHANGES_PREFIX = "change "
_EVERY_SONG = -1

# What songs are listed, counted, compared and found by; whatever else is said of them is read song by song.
_TRIGGERS = (
    ("songs", "INSERT", "songs", ("new.id",)),
    (
        "songs", f"UPDATE OF id, title, artist, genre, year, duration_s, key, mode, {', '.join(HEARD)}",
        "songs", ("old.id", "new.id"),
    ),
    ("songs", "DELETE", "songs", ("old.id",)),
    ("files", "INSERT", "songs", ("new.song_id",)),
    ("files", "UPDATE OF path, song_id, folder, missing_since", "songs", ("old.song_id", "new.song_id")),
    ("files", "DELETE", "songs", ("old.song_id",)),
    ("duplicates", "INSERT", "songs", ("new.first_id", "new.second_id")),
    ("duplicates", "UPDATE", "songs", ("old.first_id", "old.second_id", "new.first_id", "new.second_id")),
    ("duplicates", "DELETE", "songs", ("old.first_id", "old.second_id")),
    # the folders that were added decide which ones stand in for an artist
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
    "PRAGMA recursive_triggers=ON",  # or rows that REPLACE puts aside would go unnoticed
)
_TOUCHED = f"""SELECT kind, id FROM touched WHERE kind <> 'songs' UNION ALL SELECT * FROM
    (SELECT kind, id FROM touched WHERE kind = 'songs' ORDER BY id LIMIT {_MAX_SONGS + 1})"""


@dataclass(frozen=True, slots=True)
class Moment:
    """A revision, and the mark of its entry: another library that reached the same number has another mark."""

    revision: int
    mark: str | None


@dataclass(frozen=True, slots=True)
class Changes:
    """What has been touched between two moments."""

    # ids of songs that were added, forgotten or changed in what all songs are listed with; None for any
    songs: frozenset[int] | None
    # ids of models that got rows, and of those that lost some
    grown: frozenset[str]
    shrunk: frozenset[str]


NOTHING = Changes(frozenset(), frozenset(), frozenset())


class ChangeLog:
    """The entries of one library; every method works in the transaction of its connection."""

    def begin(self, connection: sa.Connection) -> None:
        """Enter the state that is found, unless it is: that shows what an older version left."""
        revision = _revision(connection)
        if not self._entries(connection, revision, revision):
            _insert(connection, revision, None, None, None)

    def watch(self, connection: sa.Connection) -> None:
        """Note what this transaction touches from now on."""
        known = connection.exec_driver_sql("SELECT 1 FROM sqlite_temp_master WHERE name = 'touched'")
        if known.first() is None:
            for statement in _WATCH:
                connection.exec_driver_sql(statement)

    def enter(self, connection: sa.Connection) -> None:
        """Enter what was noted under the revision that the transaction has made."""
        revision = _revision(connection)
        touched: dict[str, list[Any]] = {"songs": [], "grown": [], "shrunk": []}
        for kind, key in connection.exec_driver_sql(_TOUCHED).all():
            touched[kind].append(key)
        if any(touched.values()):
            connection.exec_driver_sql("DELETE FROM touched")
        songs = touched["songs"]
        is_any = _EVERY_SONG in songs[:1] or len(songs) > _MAX_SONGS
        _insert(connection, revision, None if is_any else songs, touched["grown"], touched["shrunk"])
        if revision % _TIDIED_EVERY == 0:
            m = schema.meta.c
            connection.execute(schema.meta.delete().where(m.key.between(_key(0), _key(revision - _KEPT))))

    def now(self, connection: sa.Connection) -> Moment:
        """The moment that the connection sees."""
        revision = _revision(connection)
        entries = self._entries(connection, revision, revision)
        return Moment(revision, entries[0][0] if entries else None)

    def since(self, connection: sa.Connection, moment: Moment) -> Changes | None:
        """What was touched since a moment; None if that cannot be known."""
        revision = _revision(connection)
        if revision < moment.revision:  # the library was put back to an earlier state
            return None
        entries = self._entries(connection, moment.revision, revision)
        if moment.mark is None:  # before the first entry: there is none to compare with
            if len(entries) != revision - moment.revision:
                return None
        elif len(entries) != revision - moment.revision + 1 or entries.pop(0)[0] != moment.mark:
            return None
        _, lists, grown, shrunk = zip(*entries, strict=True) if entries else ((), (), (), ())
        if None in grown:
            return None
        songs = None if None in lists else frozenset(chain.from_iterable(lists))
        return Changes(songs, frozenset(chain.from_iterable(grown)), frozenset(chain.from_iterable(shrunk)))

    def _entries(self, connection: sa.Connection, first: int, last: int) -> list[list]:
        m = schema.meta.c
        query = sa.select(m.value).where(m.key.between(_key(first), _key(last))).order_by(m.key)
        return [json.loads(value) for value in connection.scalars(query)]


def _insert(
    connection: sa.Connection, revision: int, songs: list[int] | None, grown: list[str] | None, shrunk: list[str] | None
) -> None:
    """Enter what a revision has touched; None for any songs, and for any models where nobody watched."""
    entry = json.dumps([secrets.token_hex(8), songs, grown, shrunk])
    connection.exec_driver_sql("INSERT INTO meta (key, value) VALUES (?, ?)", (_key(revision), entry))


def _key(revision: int) -> str:
    return f"{CHANGES_PREFIX}{revision:012d}"


def _revision(connection: sa.Connection) -> int:
    return int(connection.scalar(sa.select(schema.meta.c.value).where(schema.meta.c.key == "revision")) or 0)
