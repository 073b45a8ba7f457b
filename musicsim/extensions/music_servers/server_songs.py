"""Songs on music servers: their matches in the library, and the ids that servers and players use for them."""

import json
import re
import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from operator import attrgetter
from typing import Any

import sqlalchemy as sa

from musicsim._arrays import Float64Array, Int64Array
from musicsim.errors import NotFoundError
from musicsim.library import IN_SMALL_COPY, Library, Tables, check_details, metadata, some_ids

MAX_ID_LENGTH = 300  # maximum length of an id; ids from real servers have at most 40 characters
"""Virtual folder in the library for songs without local files; it does not exist on disk."""

_CHOSEN, _REFUSED = "chosen", "refused"
BY_A_PERSON = (_CHOSEN, _REFUSED)
"""Values of `how` for matches that a person chose or rejected; a sync does not change them."""


def _is_candidates(value: object) -> bool:
    return value is None or (isinstance(value, list) and all(isinstance(song_id, int) for song_id in value))


# Songs on music servers, as one user of each server sees them.
server_songs = sa.Table(
    "server_songs",
    metadata,
    sa.Column("server", sa.Text, primary_key=True),  # name of the connection: one server and one of its users
    sa.Column("id", sa.Text, primary_key=True),  # the id in the form that the server expects
    sa.Column("song_id", sa.ForeignKey("songs.id", ondelete="SET NULL"), index=True),  # None if the song has no match
    sa.Column("how", sa.Text, nullable=False),  # method of the match, or the reason why there is none
    sa.Column("candidates", sa.JSON(none_as_null=True), info={"check": _is_candidates}),  # songs to choose from
    *(sa.Column(name, sa.Text, nullable=False) for name in ("title", "artist", "album", "path", "mbid")),
    sa.Column("duration_s", sa.Float),
    sa.Column("plays", sa.Integer, nullable=False),
    sa.Column("rating", sa.Integer, nullable=False),  # 1 to 5, or 0
    sa.Column("is_starred", sa.Boolean, nullable=False),
    sa.Column("played_at", sa.Float),  # time of the last play, if the server reports it
)

# All forms in which players send a server's ids, such as 12 and so-12.
server_ids = sa.Table(
    "server_ids",
    metadata,
    sa.Column("server", sa.Text, primary_key=True),
    sa.Column("form", sa.Text, primary_key=True, index=True),
    sa.Column("id", sa.Text, nullable=False),
    sa.ForeignKeyConstraint(["server", "id"], ["server_songs.server", "server_songs.id"], ondelete="CASCADE"),
    sa.Index("ix_server_ids_id", "server", "id"),
)

# Playlists that were written to a server.
server_lists = sa.Table(
    "server_lists",
    metadata,
    sa.Column("server", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("id", sa.Text, nullable=False),  # the server's id for the playlist
    sa.Column("request", sa.JSON(none_as_null=True)),  # request for regenerating it; None if it is never regenerated
    sa.Column("written_at", sa.Float, nullable=False),
    info=IN_SMALL_COPY,
)


@dataclass(frozen=True, slots=True)
class ServerSong:
    """A song on a server, as one of its users sees it; unknown values are empty."""

    id: str
    title: str = ""
    artist: str = ""
    album: str = ""
    path: str = ""  # path relative to the server's music folder
    mbid: str = ""  # MusicBrainz id of the recording
    duration_s: float | None = None
    plays: int = 0
    rating: int = 0  # 1 to 5, or 0
    is_starred: bool = False
    played_at: float | None = None  # time of the last play, in seconds since 1970
    song_id: int | None = None  # the matching song in the library
    how: str = ""  # method of the match, or the reason why there is none
    candidates: tuple[int, ...] | None = None  # songs in the library that a person must choose from

    @property
    def label(self) -> str:
        return " — ".join(filter(None, (self.title, self.artist))) or self.id


@dataclass(frozen=True, slots=True)
class ServerList:
    name: str
    id: str  # the server's id for the playlist
    request: Mapping[str, Any] | None  # request for regenerating it; None if it is never regenerated
    written_at: float  # seconds since 1970


def id_forms(server_id: str) -> list[str]:
    """Return all forms in which players send a song's id, such as 12 and so-12; the server's own form is first."""
    if re.fullmatch("so-[0-9]+", server_id):
        return [server_id, server_id.removeprefix("so-")]
    if re.fullmatch("[0-9]+", server_id):
        return [server_id, f"so-{server_id}"]
    plain = server_id.replace("-", "").lower()
    if not re.fullmatch("[0-9a-f]{32}", plain):
        return [server_id]
    return [server_id, *(form for form in (plain, str(uuid.UUID(plain))) if form != server_id)]


def is_id(text: str) -> bool:
    """Return True if a string can be a server's id: it is printable and not too long."""
    return 0 < len(text) <= MAX_ID_LENGTH and text.isprintable()


class ServerSongs(Tables):
    """Songs and ids on the connected servers. Changes do not increase the library's revision."""

    def __init__(self, library: Library) -> None:
        super().__init__(library.engine, library.write_unseen)

    def find_song(self, server_id: str) -> tuple[str, int] | None:
        """Return the first server that has an id, in any form, and the matching song in the library."""
        if not is_id(server_id):
            return None
        i, s = server_ids.c, server_songs.c
        query = (
            sa.select(s.server, s.song_id)
            .join(server_ids, sa.and_(i.server == s.server, i.id == s.id))
            .where(i.form == server_id, s.song_id.is_not(None))
            .order_by(i.server)
            .limit(1)
        )
        return self._row(query)

    def first_server(self) -> str | None:
        return self._value(sa.select(sa.func.min(server_songs.c.server)))

    def ids_of(self, song_ids: Iterable[int], server: str | None = None) -> dict[int, str]:
        """Return a dict from song id to the server's id; by default, the first server with the song is used."""
        s = server_songs.c
        query = sa.select(s.song_id, s.id, s.server).where(s.song_id.in_(some_ids(song_ids)))
        # The order is descending, because the dict keeps a song's last row: the first server's first id. The condition
        # does not include the server, because SQLite would then scan all songs on the server.
        rows = self._rows(query.order_by(s.server.desc(), s.id.desc()))
        return {row.song_id: row.id for row in rows if server in (None, row.server)}

    def read_songs(self, server: str) -> dict[str, ServerSong]:
        """Return a dict from the server's id to the song, for all songs on a server; takes 0.5 kB per song."""
        return {song.id: song for _, song in self._songs(server_songs.c.server == server)}

    def ambiguous(self) -> list[tuple[str, ServerSong]]:
        """Return (server, song) pairs for the songs whose match a person must choose."""
        return list(self._songs(server_songs.c.candidates.is_not(None)))

    def _songs(self, condition: sa.ColumnElement[bool]) -> Iterable[tuple[str, ServerSong]]:
        s = server_songs.c
        query = sa.select(s.server, *(s[f.name] for f in fields(ServerSong))).where(condition)
        for server, *values in self._rows(query.order_by(s.server, s.id)):
            song = ServerSong(*values)
            yield server, replace(song, candidates=tuple(song.candidates)) if song.candidates else song

    def last_plays(self) -> tuple[Int64Array, Float64Array]:
        """Return the song id and the time of the last play of each matched song with a time."""
        s = server_songs.c
        return self._times_of_songs(s.song_id, s.played_at, s.song_id.is_not(None) & s.played_at.is_not(None))

    def counts(self) -> dict[str, tuple[int, int, int]]:
        """Count each server's songs, its matched songs, and the songs whose match a person must choose."""
        s = server_songs.c
        n = sa.func.count
        query = sa.select(s.server, n(), n(s.song_id), n(s.candidates)).group_by(s.server).order_by(s.server)
        return {row[0]: (row[1], row[2], row[3]) for row in self._rows(query)}

    def write(self, server: str, songs: Iterable[ServerSong], gone: Iterable[str] = ()) -> None:
        """Insert or replace songs, and delete the ids in `gone`, in one transaction."""
        s = server_songs.c
        with self._write() as connection:
            ids = sa.func.json_each(json.dumps(list(gone))).table_valued("value")
            connection.execute(server_songs.delete().where(s.server == server, s.id.in_(sa.select(ids.c.value))))
            _put(connection, server, songs)

    def choose(self, server: str, server_id: str, song_id: int | None) -> None:
        """Save the match that a person chose, or None. Raises NotFoundError if one of the songs no longer exists."""
        s = server_songs.c
        values = {"song_id": song_id, "how": _REFUSED if song_id is None else _CHOSEN, "candidates": None}
        try:
            n_changed = self._execute(server_songs.update().where(s.server == server, s.id == server_id).values(values))
        except sa.exc.IntegrityError:
            n_changed = 0
        if not n_changed:
            raise NotFoundError(
                f"{server}: the song {server_id!r} is no longer on the server or in the library. Sync the server again."
            )

    def forget(self, server: str) -> None:
        """Delete a server's songs, ids and playlists; the library's own songs do not change."""
        with self._write() as connection:
            for table in (server_lists, server_songs):
                connection.execute(table.delete().where(table.c.server == server))

    def lists(self, server: str) -> dict[str, ServerList]:
        """Return a dict from name to playlist, for the playlists that were written to a server."""
        p = server_lists.c
        query = sa.select(p.name, p.id, p.request, p.written_at).where(p.server == server).order_by(p.name)
        return {row.name: ServerList(*row) for row in self._rows(query)}

    def keep_list(self, server: str, name: str, list_id: str, request: Mapping[str, Any] | None) -> None:
        """Record that a playlist was written to a server. Raises ValueError if `request` cannot be written as JSON."""
        row = {"server": server, "name": name, "id": list_id, "request": check_details(request)}
        self._execute(server_lists.insert().prefix_with("OR REPLACE").values(**row, written_at=time.time()))

    def forget_list(self, server: str, name: str) -> None:
        p = server_lists.c
        self._execute(server_lists.delete().where(p.server == server, p.name == name))


def last_plays(library: Library) -> tuple[Int64Array, Float64Array]:
    return ServerSongs(library).last_plays()


_COLUMNS = ("server", *(f.name for f in fields(ServerSong)))
_values = attrgetter(*_COLUMNS[1:-1])
# update existing rows instead of replacing them, because a replacement would delete the forms of their ids
_PUT = (
    f"INSERT INTO server_songs ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))}) "
    f"ON CONFLICT (server, id) DO UPDATE SET {', '.join(f'{c} = excluded.{c}' for c in _COLUMNS[2:])}"
)
_PUT_FORM = "INSERT OR REPLACE INTO server_ids (server, form, id) VALUES (?, ?, ?)"


def _put(connection: sa.Connection, server: str, songs: Iterable[ServerSong]) -> None:
    rows, form_rows = [], []
    for song in songs:
        candidates = None if song.candidates is None else json.dumps(song.candidates)
        rows.append((server, *_values(song), candidates))
        form_rows += [(server, form, song.id) for form in id_forms(song.id)]
    if rows:
        connection.exec_driver_sql(_PUT, rows)
        connection.exec_driver_sql(_PUT_FORM, form_rows)
