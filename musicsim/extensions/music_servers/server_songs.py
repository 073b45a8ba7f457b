"""Songs of music servers: which song here each one is, and by which ids the server and its players call it."""

import json
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from operator import attrgetter
from typing import Any

import sqlalchemy as sa

from musicsim.errors import NotFoundError
from musicsim.extensions.music_servers import tables
from musicsim.library import Library
from musicsim.library.db.columns import some_ids
from musicsim.library.db.database import Tables
from musicsim.library.stores.opinions import checked_details

MAX_ID_LENGTH = 300
"""Characters of a server's id: those in use have at most 40."""

SERVERS_FOLDER = "servers"
"""Below it in a library's folder songs of servers are listed that have no file here; no file is there."""

_CHOSEN, _REFUSED = "chosen", "refused"
BY_A_PERSON = (_CHOSEN, _REFUSED)
"""How a song was matched, or left, by a person: no later sync changes it."""


@dataclass(frozen=True, slots=True)
class ServerSong:
    """A song as a server lists it for one of its users; what it does not say is empty."""

    id: str
    title: str = ""
    artist: str = ""
    album: str = ""
    path: str = ""  # relative to the server's folder of music
    mbid: str = ""  # MusicBrainz id of the recording
    duration_s: float | None = None
    plays: int = 0
    rating: int = 0  # 1 to 5; 0: none
    is_starred: bool = False
    played_at: float | None = None  # last, seconds since 1970
    # the song here that it is, and how that is known; else why it is not
    song_id: int | None = None
    how: str = ""
    candidates: tuple[int, ...] | None = None  # songs here that a person has to choose from


@dataclass(frozen=True, slots=True)
class ServerList:
    """A playlist that was written to a server."""

    name: str
    id: str  # on the server
    request: Mapping[str, Any] | None  # what it is drawn with again and again; None: it is as it is
    written_at: float  # seconds since 1970


def id_forms(server_id: str) -> list[str]:
    """The forms in which players and plugins ask for a song, the server's own first.

    Ampache's own interface says 12 where its Subsonic interface says so-12; Jellyfin's ids have hyphens or none.
    """
    forms = [server_id]
    if re.fullmatch("so-[0-9]+", server_id):
        forms.append(server_id.removeprefix("so-"))
    elif re.fullmatch("[0-9]+", server_id):
        forms.append(f"so-{server_id}")
    else:
        plain = server_id.replace("-", "").lower()
        if re.fullmatch("[0-9a-f]{32}", plain):
            hyphened = "-".join((plain[:8], plain[8:12], plain[12:16], plain[16:20], plain[20:]))
            forms += [form for form in (plain, hyphened) if form != server_id]
    return forms


def is_id(text: str) -> bool:
    """Whether a text may be a server's id: printable, and not longer than any in use."""
    return 0 < len(text) <= MAX_ID_LENGTH and text.isprintable()


class ServerSongs(Tables):
    """Songs of servers and their ids, by the name of the connection ("server" below).

    They are no change that pages have to be drawn again for: the library's revision stays.
    """

    def __init__(self, library: Library) -> None:
        super().__init__(library.engine, library.write_unseen)

    # --- ids ----------------------------------------------------------------------------------

    def song_of(self, server_id: str, server: str | None = None) -> int | None:
        """The song here that any form of a server's id means; None where there is none.

        Without `server` every server is looked at, in the order of their names.
        """
        found = self.known(server_id, server)
        return None if found is None else found[1]

    def known(self, server_id: str, server: str | None = None) -> tuple[str, int] | None:
        """The server that an id is of, and the song here that it means; see :meth:`song_of`."""
        if not is_id(server_id):
            return None
        i, s = tables.server_ids.c, tables.server_songs.c
        query = (
            sa.select(s.server, s.song_id)
            .join(tables.server_ids, sa.and_(i.server == s.server, i.id == s.id))
            .where(i.form == server_id, s.song_id.is_not(None))
        )
        if server is not None:
            query = query.where(i.server == server)
        return next(iter(list(self._rows(query.order_by(i.server).limit(1)))), None)

    def first_server(self) -> str | None:
        """The first server by name that songs are known of; None where there is none."""
        return self._value(sa.select(sa.func.min(tables.server_songs.c.server)))

    def id_of(self, song_id: int, server: str | None = None) -> str | None:
        """The id with which a server is asked for a song; None where it does not have it."""
        return self.ids_of([song_id], server).get(song_id)

    def ids_of(self, song_ids: Iterable[int], server: str | None = None) -> dict[int, str]:
        """Ids with which a server is asked for songs, by song id, of those that it has; see :meth:`song_of`."""
        s = tables.server_songs.c
        query = sa.select(s.song_id, s.id, s.server).where(s.song_id.in_(some_ids(song_ids)))
        # of several the first server's, and of copies on it the first id, is the last to be entered; were the server
        # a condition, SQLite would look through all of its songs
        rows = self._rows(query.order_by(s.server.desc(), s.id.desc()))
        return {row.song_id: row.id for row in rows if server in (None, row.server)}

    def remember(self, server: str, songs: Iterable[tuple[int, Sequence[str]]]) -> None:
        """Note which songs here a server has: (song id, forms of its id, the one it is asked with first)."""
        with self._write() as connection:
            _put(connection, server, ((ServerSong(forms[0], song_id=i), forms) for i, forms in songs))

    # --- songs --------------------------------------------------------------------------------

    def of(self, server: str) -> dict[str, ServerSong]:
        """Songs of a server by their ids there; 0.5 kB each."""
        return {song.id: song for _, song in self._songs(tables.server_songs.c.server == server)}

    def ambiguous(self) -> list[tuple[str, ServerSong]]:
        """Songs that a person has to choose for, with their servers."""
        return list(self._songs(tables.server_songs.c.candidates.is_not(None)))

    def _songs(self, which: sa.ColumnElement[bool]) -> Iterable[tuple[str, ServerSong]]:
        s = tables.server_songs.c
        query = sa.select(s.server, *(s[f.name] for f in fields(ServerSong))).where(which)
        for server, *values in self._rows(query.order_by(s.server, s.id)):
            song = ServerSong(*values)
            yield server, replace(song, candidates=tuple(song.candidates)) if song.candidates else song

    def counts(self) -> dict[str, tuple[int, int, int]]:
        """By server: songs, those that are matched, and those that a person has to choose for."""
        s = tables.server_songs.c
        n = sa.func.count
        query = sa.select(s.server, n(), n(s.song_id), n(s.candidates)).group_by(s.server).order_by(s.server)
        return {row[0]: (row[1], row[2], row[3]) for row in self._rows(query)}

    def write(self, server: str, songs: Iterable[ServerSong], gone: Iterable[str] = ()) -> None:
        """Enter songs in place of what is known of them, and forget those that have gone, in one transaction."""
        s = tables.server_songs.c
        with self._write() as connection:
            listed = sa.func.json_each(json.dumps(list(gone))).table_valued("value")
            connection.execute(
                tables.server_songs.delete().where(s.server == server, s.id.in_(sa.select(listed.c.value)))
            )
            _put(connection, server, ((song, id_forms(song.id)) for song in songs))

    def choose(self, server: str, server_id: str, song_id: int | None) -> None:
        """Let a person say which song here a song of a server is; None for none of them.

        Raises NotFoundError if either is not there any more.
        """
        s = tables.server_songs.c
        values = {"song_id": song_id, "how": _REFUSED if song_id is None else _CHOSEN, "candidates": None}
        try:
            with self._write() as connection:
                change = tables.server_songs.update().where(s.server == server, s.id == server_id)
                n_changed = connection.execute(change.values(**values)).rowcount
        except sa.exc.IntegrityError:
            n_changed = 0
        if not n_changed:
            raise NotFoundError("the song has gone from the server or from this library. Sync again.")

    def forget(self, server: str) -> None:
        """Forget a server's songs, ids and playlists; what is said of songs here stays."""
        with self._write() as connection:
            for table in (tables.server_lists, tables.server_songs):
                connection.execute(table.delete().where(table.c.server == server))

    # --- playlists ----------------------------------------------------------------------------

    def lists(self, server: str) -> dict[str, ServerList]:
        """Playlists that were written to a server, by their names."""
        p = tables.server_lists.c
        query = sa.select(p.name, p.id, p.request, p.written_at).where(p.server == server).order_by(p.name)
        return {row.name: ServerList(*row) for row in self._rows(query)}

    def keep_list(self, server: str, name: str, list_id: str, request: Mapping[str, Any] | None = None) -> None:
        """Note a playlist that was written to a server.

        Raises ValueError if JSON cannot hold the request.
        """
        row = {"server": server, "name": name, "id": list_id, "request": checked_details(request)}
        with self._write() as connection:
            statement = tables.server_lists.insert().prefix_with("OR REPLACE")
            connection.execute(statement.values(**row, written_at=time.time()))

    def forget_list(self, server: str, name: str) -> None:
        """Forget a playlist that was written to a server."""
        p = tables.server_lists.c
        with self._write() as connection:
            connection.execute(tables.server_lists.delete().where(p.server == server, p.name == name))


_COLUMNS = ("server", *(f.name for f in fields(ServerSong)))
_values = attrgetter(*_COLUMNS[1:-1])
# an id that has stayed keeps its row, and its forms with it
_PUT = (
    f"INSERT INTO server_songs ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))}) "
    f"ON CONFLICT (server, id) DO UPDATE SET {', '.join(f'{c} = excluded.{c}' for c in _COLUMNS[2:])}"
)
_PUT_FORM = "INSERT OR REPLACE INTO server_ids (server, form, id) VALUES (?, ?, ?)"


def _put(connection: sa.Connection, server: str, songs: Iterable[tuple[ServerSong, Sequence[str]]]) -> None:
    rows, forms = [], []
    for song, its_forms in songs:
        candidates = None if song.candidates is None else json.dumps(song.candidates)
        rows.append((server, *_values(song), candidates))
        forms += [(server, form, song.id) for form in its_forms]
    if rows:
        connection.exec_driver_sql(_PUT, rows)
        connection.exec_driver_sql(_PUT_FORM, forms)
