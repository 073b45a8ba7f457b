"""Edits to tags, and aliases: spellings shown as one artist. They are never written to files, so they can be undone."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import sqlalchemy as sa

from musicsim.library.db import Tables, schema, some_ids
from musicsim.library.tags.artists import parse_artist, similar_spellings
from musicsim.library.tags.file_tags import FileTags

EDITABLE = ("title", "artist", "album_artist", "album", "track", "year", "genre")
_MAX_VALUES = {"track": 9999, "year": 2999}
_TAGS = tuple(field.name for field in fields(FileTags))


def effective_tags(
    tags: Mapping[str, Any], edits: Mapping[str, Any] | None, aliases: Mapping[str, str]
) -> dict[str, Any]:
    """Return the tags to show: the file's tags without artist placeholders, changed by aliases, then by edits."""
    shown = dict(tags)
    for name in ("artist", "album_artist"):
        artist = parse_artist(shown.get(name))
        shown[name] = aliases.get(artist, artist) if artist else None
    return shown | dict(edits or {})


@dataclass(frozen=True, slots=True)
class TagChange:
    """A change to a song's tags, which is applied only if the tags still have the values in `known`."""

    song_id: int
    known: Mapping[str, Any]  # shown values, keyed by tag; if any has changed since, the song stays unchanged
    edits: Mapping[str, Any]  # new values; None empties a tag; other tags in `known` lose their edits


class TagEdits(Tables):
    def edit(self, song_ids: Iterable[int], changes: Mapping[str, Any]) -> None:
        """Set some :data:`EDITABLE` tags; None empties a tag. Raises ValueError for unknown names or invalid values."""
        values = {name: _check_edit(name, value) for name, value in changes.items()}
        with self._write() as connection:
            self._change(connection, song_ids, lambda _, edits: edits | values)

    def change(self, changes: Iterable[TagChange]) -> list[TagChange]:
        """Apply changes to songs that nobody has changed in the meantime; return one change per tag to undo this."""
        checked = [(change, _check_change(change)) for change in changes]
        undo: list[TagChange] = []
        with self._write() as connection:
            aliases = _aliases(connection)
            for change, edits in checked:
                row = _row(connection, change.song_id)
                if row is None or any(getattr(row, tag) != value for tag, value in change.known.items()):
                    continue
                old = row.edits or {}
                others = {tag: value for tag, value in old.items() if tag not in change.known}
                shown = _set_edits(connection, row, others | edits, aliases)
                for tag in change.known:
                    old_edit = {tag: old[tag]} if tag in old else {}
                    undo.append(TagChange(change.song_id, {tag: shown[tag]}, old_edit))
        return undo

    def add_recording_ids(self, ids: Mapping[int, str]) -> int:
        """Set MusicBrainz recording ids, keyed by song id, for songs without one; return how many were changed."""
        s = schema.songs.c
        query = sa.select(s.id).where(s.mb_recording_id.is_(None), s.id.in_(some_ids(ids)))
        with self._write() as connection:
            new = list(connection.scalars(query))
            self._change(connection, new, lambda song_id, edits: edits | {"mb_recording_id": ids[song_id]})
        return len(new)

    def undo(self, song_ids: Iterable[int]) -> None:
        with self._write() as connection:
            self._change(connection, song_ids, lambda *_: {})

    def all(self, ids: Iterable[int] | None = None) -> dict[int, dict[str, Any]]:
        """Return the edits to all songs, or to some, keyed by song id."""
        s = schema.songs.c
        query = sa.select(s.id, s.edits).where(s.edits.is_not(None))
        rows = self._rows(query if ids is None else query.where(s.id.in_(some_ids(ids))))
        return {row.id: row.edits for row in rows if row.edits}

    def _change(
        self,
        connection: sa.Connection,
        song_ids: Iterable[int],
        change: Callable[[int, dict[str, Any]], dict[str, Any]],
    ) -> None:
        aliases = _aliases(connection)
        for song_id in song_ids:
            row = _row(connection, song_id)
            if row is not None:
                _set_edits(connection, row, change(song_id, row.edits or {}), aliases)

    def replace(
        self, connection: sa.Connection, edits: Mapping[int, Mapping[str, Any]], aliases: Mapping[str, str]
    ) -> None:
        s = schema.songs.c
        affected: sa.ColumnElement[bool] = sa.true()
        if _aliases(connection) == aliases:
            affected = sa.or_(s.edits.is_not(None), s.id.in_(some_ids(edits)))
        else:
            connection.execute(schema.aliases.delete())
            for spelling, artist in aliases.items():
                connection.execute(schema.aliases.insert().values(spelling=spelling, artist=artist))
        for row in connection.execute(sa.select(schema.songs).where(affected)).all():
            _set_edits(connection, row, edits.get(row.id, {}), aliases)

    def aliases(self) -> dict[str, str]:
        """Return the artist of each merged spelling."""
        with self._engine.connect() as connection:
            return _aliases(connection)

    def merge(self, spellings: Sequence[str], artist: str) -> None:
        """Show several spellings as one artist, including in future songs. Raises ValueError if `artist` is empty."""
        name = _check_edit("artist", artist)
        if not name:
            raise ValueError("artist is empty: enter the artist to merge the spellings into.")
        with self._write() as connection:
            earlier = {old for old, new in _aliases(connection).items() if new in spellings}
            for spelling in {*spellings, *earlier}:
                connection.execute(schema.aliases.delete().where(schema.aliases.c.spelling == spelling))
                if spelling != name:
                    connection.execute(schema.aliases.insert().values(spelling=spelling, artist=name))
            self._respell(connection, [*spellings, name])

    def part(self, artist: str) -> None:
        with self._write() as connection:
            connection.execute(schema.aliases.delete().where(schema.aliases.c.artist == artist))
            self._respell(connection, [artist])

    def _respell(self, connection: sa.Connection, artists: Sequence[str]) -> None:
        s = schema.songs.c
        affected = sa.or_(s.artist.in_(artists), s.album_artist.in_(artists))
        self._change(connection, connection.scalars(sa.select(s.id).where(affected)).all(), lambda _, edits: edits)

    def suggestions(self) -> list[tuple[str, ...]]:
        """Return groups of names that are probably spellings of the same artist, the most used name first."""
        a = schema.songs.c.artist
        query = sa.select(a, sa.func.count()).where(a.is_not(None)).group_by(a)
        return similar_spellings({row[0]: row[1] for row in self._rows(query)})


def _row(connection: sa.Connection, song_id: int) -> Any:
    return connection.execute(sa.select(schema.songs).where(schema.songs.c.id == song_id)).one_or_none()


def _set_edits(
    connection: sa.Connection, row: Any, edits: Mapping[str, Any], aliases: Mapping[str, str]
) -> dict[str, Any]:
    tags = row.file_tags or {name: getattr(row, name) for name in _TAGS}
    shown = effective_tags(tags, edits, aliases)
    values = shown | {"edits": edits or sa.null(), "file_tags": tags}
    connection.execute(schema.songs.update().where(schema.songs.c.id == row.id).values(**values))
    return shown


def _aliases(connection: sa.Connection) -> dict[str, str]:
    return {row.spelling: row.artist for row in connection.execute(sa.select(schema.aliases))}


def _check_change(change: TagChange) -> dict[str, Any]:
    for name in change.known:
        _check_name(name)
    if unknown := change.edits.keys() - change.known.keys():
        raise ValueError(f"{', '.join(sorted(unknown))}: `known` must contain the song's current values of these tags.")
    return {name: _check_edit(name, value) for name, value in change.edits.items()}


def _check_name(name: str) -> None:
    if name not in EDITABLE:
        raise ValueError(f"{name!r} cannot be edited: choose from {', '.join(EDITABLE)}.")


def _check_edit(name: str, value: Any) -> Any:
    """Return the value to store; raise ValueError if it is invalid."""
    _check_name(name)
    if name in _MAX_VALUES:
        if value in (None, ""):
            return None
        if not str(value).strip().isdecimal() or not 1 <= int(value) <= _MAX_VALUES[name]:
            raise ValueError(f"{name} {value!r} is not valid: enter a number from 1 to {_MAX_VALUES[name]}.")
        return int(value)
    text = " ".join(str(value or "").split()) or None
    if name == "title" and text is None:
        raise ValueError("a song needs a title: enter one, or leave the field unchanged.")
    return text
