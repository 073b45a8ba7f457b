"""A library's playlists: imported ones, and those saved by the listener."""

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from musicsim.errors import NotFoundError
from musicsim.library.db import Tables, check_details, schema
from musicsim.library.db.columns import some_ids

OWN_PLAYLISTS = "saved"  # the source of playlists that the listener saved in musicsim
GENERATED: Mapping[str, Any] = {"seed": None}
"""Details of a playlist that musicsim generated, if nothing else is known about it."""
# The one rule for evidence. Details have a seed, which may be null, if musicsim chose the songs.
_IS_GENERATED = sa.and_(
    sa.func.json_type(schema.playlists.c.details, "$.seed").is_not(None),
    sa.func.coalesce(sa.func.json_extract(schema.playlists.c.details, "$.edited"), 0) == 0,
)
_MAX_SEARCHED = 10_000  # maximum number of playlists in which shared songs are counted

NewPlaylist = tuple[str, str | None, Sequence[int]] | tuple[str, str | None, Sequence[int], Mapping[str, Any] | None]


@dataclass(frozen=True, slots=True)
class SavedPlaylist:
    id: int
    name: str
    category: str | None
    source: str
    song_ids: tuple[int, ...]
    created_at: float = 0.0  # seconds since 1970
    details: Mapping[str, Any] | None = field(default=None, hash=False)  # reasons, seed and settings, if generated
    is_generated: bool = False  # True if musicsim chose the songs, and nobody has edited the list since


class PlaylistStore(Tables):
    def all(self, source: str | None = None) -> list[SavedPlaylist]:
        """Return all playlists, or those of one source; their songs are in order."""
        m, p = schema.playlist_songs.c, schema.playlists.c
        columns = (p.id, p.name, p.category, p.source, p.created_at, p.details, _IS_GENERATED.label("is_generated"))
        playlists = sa.select(*columns).order_by(p.id)
        songs = sa.select(m.playlist_id, m.song_id).order_by(m.playlist_id, m.position)
        if source is not None:
            playlists = playlists.where(p.source == source)
            songs = songs.join(schema.playlists, p.id == m.playlist_id).where(p.source == source)
        ids: dict[int, list[int]] = {}
        with self._engine.connect() as connection:
            for playlist_id, song_id in connection.execute(songs):
                ids.setdefault(playlist_id, []).append(song_id)
            rows = connection.execute(playlists).all()
        return [
            SavedPlaylist(
                row.id, row.name, row.category, row.source, tuple(ids.get(row.id, ())), row.created_at, row.details,
                bool(row.is_generated),
            )
            for row in rows
        ]  # fmt: skip

    def made_by_people(self, source: str | None = None) -> list[SavedPlaylist]:
        """Return the playlists that are evidence of people's choices: all except generated ones."""
        return [playlist for playlist in self.all(source) if not playlist.is_generated]

    def find_lists(self, song_ids: Iterable[int]) -> dict[int, set[int]]:
        """Return the ids of the playlists that contain each song, keyed by song id.

        Only playlists made by people count. In a library with very many playlists, the result is empty, because
        reading their songs takes too long.
        """
        p, m = schema.playlists.c, schema.playlist_songs.c
        if self._value(sa.select(p.id).offset(_MAX_SEARCHED).limit(1)) is not None:
            return {}
        query = sa.select(m.song_id, m.playlist_id).join(schema.playlists, p.id == m.playlist_id)
        lists = defaultdict[int, set[int]](set)
        for song_id, playlist_id in self._rows(query.where(m.song_id.in_(some_ids(song_ids)), ~_IS_GENERATED)):
            lists[song_id].add(playlist_id)
        return lists

    def add(self, playlists: Iterable[NewPlaylist], source: str) -> int:
        """Add playlists and return their number; those with the same source, name and category are replaced.

        A playlist is (name, category, song ids) or (name, category, song ids, details).
        """
        with self._write() as connection:
            return put_playlists(connection, playlists, source)

    def rename(self, playlist_id: int, name: str) -> None:
        """Rename a playlist; it replaces one with the same source, category and name. May raise NotFoundError."""
        p = schema.playlists.c
        with self._write() as connection:
            row = connection.execute(sa.select(p.source, p.category).where(p.id == playlist_id)).one_or_none()
            if row is None:
                raise NotFoundError(f"this library does not have a playlist {playlist_id}.")
            same = (p.source == row.source, p.name == name, p.category.is_not_distinct_from(row.category))
            connection.execute(schema.playlists.delete().where(*same, p.id != playlist_id))
            connection.execute(schema.playlists.update().where(p.id == playlist_id).values(name=name))

    def delete(self, playlist_id: int) -> None:
        self._execute(schema.playlists.delete().where(schema.playlists.c.id == playlist_id))


def replace_playlists(connection: sa.Connection, playlists: Iterable[NewPlaylist], source: str) -> None:
    """Replace all playlists of a source, in an open transaction."""
    connection.execute(schema.playlists.delete().where(schema.playlists.c.source == source))
    put_playlists(connection, playlists, source)


def put_playlists(connection: sa.Connection, playlists: Iterable[NewPlaylist], source: str) -> int:
    """Add playlists like :meth:`PlaylistStore.add`, in an open transaction."""
    p, n = schema.playlists.c, 0
    for name, category, song_ids, *details in playlists:
        same = (p.source == source, p.name == name, p.category.is_not_distinct_from(category))
        connection.execute(schema.playlists.delete().where(*same))
        values: dict[str, Any] = {"name": name, "category": category, "source": source}
        values |= {"created_at": time.time(), "details": check_details(*details) if details else None}
        playlist_id = connection.execute(schema.playlists.insert().values(**values)).inserted_primary_key[0]  # type: ignore[index]
        rows = [{"playlist_id": playlist_id, "position": at, "song_id": i} for at, i in enumerate(song_ids)]
        if rows:
            connection.execute(schema.playlist_songs.insert(), rows)
        n += 1
    return n
