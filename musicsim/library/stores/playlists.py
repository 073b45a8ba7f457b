"""Playlists of a library: imported ones, and those saved by the listener."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from musicsim.errors import NotFoundError
from musicsim.library.db import Tables, check_details, schema

OWN_PLAYLISTS = "saved"  # the source of playlists that the listener saved here

NewPlaylist = tuple[str, str | None, Sequence[int]] | tuple[str, str | None, Sequence[int], Mapping[str, Any] | None]


@dataclass(frozen=True, slots=True)
class SavedPlaylist:
    id: int
    name: str
    category: str | None
    source: str
    song_ids: tuple[int, ...]
    created_at: float = 0.0  # seconds since 1970
    details: Mapping[str, Any] | None = field(default=None, hash=False)  # of a generated one: reasons, seed, settings

    @property
    def is_generated(self) -> bool:
        """True if it was generated here, not made by a person."""
        return self.source == OWN_PLAYLISTS and "seed" in (self.details or {})


class PlaylistStore(Tables):
    def all(self, source: str | None = None) -> list[SavedPlaylist]:
        """Return all playlists, or those of one source; their songs are in order."""
        m, p = schema.playlist_songs.c, schema.playlists.c
        playlists = sa.select(p.id, p.name, p.category, p.source, p.created_at, p.details).order_by(p.id)
        songs = sa.select(m.playlist_id, m.song_id).order_by(m.playlist_id, m.position)
        if source is not None:
            playlists = playlists.where(p.source == source)
            songs = songs.join(schema.playlists, p.id == m.playlist_id).where(p.source == source)
        ids: dict[int, list[int]] = {}
        with self._engine.connect() as connection:
            for playlist_id, song_id in connection.execute(songs):
                ids.setdefault(playlist_id, []).append(song_id)
            rows = connection.execute(playlists).all()
        return [SavedPlaylist(*row[:4], tuple(ids.get(row.id, ())), row.created_at, row.details) for row in rows]

    def add(self, playlists: Iterable[NewPlaylist], source: str) -> int:
        """Add playlists and return their number; one of the same source, name and category is replaced.

        Each is (name, category, song ids) or also has details. Raises ValueError if these are not valid JSON values.
        """
        with self._write() as connection:
            return put_playlists(connection, playlists, source)

    def rename(self, playlist_id: int, name: str) -> None:
        """Rename a playlist; replace one of that name, source and category. Raises NotFoundError if missing."""
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
