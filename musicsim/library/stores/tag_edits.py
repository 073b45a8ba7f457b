"""What listeners corrected in the tags of songs: edits, and several spellings of one artist.

Files are never written to. A song keeps its tags as the file has them, its edits, and what follows from
both; taking an edit or an alias back brings the file's tags forth again.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import sqlalchemy as sa

from musicsim.library.db import schema
from musicsim.library.db.columns import some_ids
from musicsim.library.db.database import Tables
from musicsim.library.tags.artists import SpellingGroup, known_artist, similar_spellings
from musicsim.library.tags.file_tags import FileTags

EDITABLE = ("title", "artist", "album_artist", "album", "track", "year", "genre")
_LARGEST = {"track": 9999, "year": 2999}
_TAGS = tuple(field.name for field in fields(FileTags))


def effective_tags(
    tags: Mapping[str, Any], edits: Mapping[str, Any] | None, aliases: Mapping[str, str]
) -> dict[str, Any]:
    """Tags as they are shown: the file's, without placeholders for artists, then aliases, then edits."""
    shown = dict(tags)
    for name in ("artist", "album_artist"):
        artist = known_artist(shown.get(name))
        shown[name] = aliases.get(artist, artist) if artist else None
    return shown | dict(edits or {})


@dataclass(frozen=True, slots=True)
class TagChange:
    """What some tags of a song become if they still are as they were known."""

    song_id: int
    # Mapping of tag name to value: as the song showed them. If one is another by now, the song stays as it
    # is.
    known: Mapping[str, Any]
    # Mapping of tag name to value: edits of the known tags; None empties a tag. Known tags that are not among
    # them lose their edit.
    edits: Mapping[str, Any]


class TagEdits(Tables):
    """Edits of tags and aliases of artists in one library."""

    def edit(self, song_ids: Iterable[int], changes: Mapping[str, Any]) -> None:
        """Change tags of songs: names of :data:`EDITABLE` with their values; None empties a tag.

        Raises ValueError if a name cannot be edited, a title is emptied, or a number is invalid.
        """
        checked = {name: _checked(name, value) for name, value in changes.items()}
        with self._write() as connection:
            self._change(connection, song_ids, lambda edits: edits | checked)

    def change(self, changes: Iterable[TagChange]) -> list[TagChange]:
        """Change tags of songs that nobody has changed meanwhile, in one transaction.

        Returns one TagChange for each changed tag: given here, they take back what nobody has changed since. Raises
        ValueError as :meth:`edit` does, or if an edited tag is not among the known ones; nothing is changed then.
        """
        wanted = [(change, _checked_edits(change)) for change in changes]
        back: list[TagChange] = []
        with self._write() as connection:
            aliases = _aliases(connection)
            for change, edits in wanted:
                row = _row(connection, change.song_id)
                if row is None or any(getattr(row, tag) != value for tag, value in change.known.items()):
                    continue
                earlier = row.edits or {}
                others = {tag: earlier[tag] for tag in earlier.keys() - change.known.keys()}
                shown = _enter(connection, row, others | edits, aliases)
                for tag in change.known:
                    had = {tag: earlier[tag]} if tag in earlier else {}
                    back.append(TagChange(change.song_id, {tag: shown[tag]}, had))
        return back

    def add_recording_ids(self, ids: Mapping[int, str]) -> int:
        """Give songs without a MusicBrainz id of their recording one, by song id; how many got it."""
        n_given = 0
        with self._write() as connection:
            aliases = _aliases(connection)
            for song_id, mbid in ids.items():
                row = _row(connection, song_id)
                if row is not None and row.mb_recording_id is None:
                    _enter(connection, row, (row.edits or {}) | {"mb_recording_id": mbid}, aliases)
                    n_given += 1
        return n_given

    def undo(self, song_ids: Iterable[int]) -> None:
        """Take all edits of songs back."""
        with self._write() as connection:
            self._change(connection, song_ids, lambda _: {})

    def edited(self, ids: Iterable[int] | None = None) -> dict[int, dict[str, Any]]:
        """Edits by song id, of all songs or of some."""
        s = schema.songs.c
        query = sa.select(s.id, s.edits).where(s.edits.is_not(None))
        rows = self._rows(query if ids is None else query.where(s.id.in_(some_ids(ids))))
        return {row.id: row.edits for row in rows if row.edits}

    def _change(self, connection: sa.Connection, song_ids: Iterable[int], change: Any) -> None:
        aliases = _aliases(connection)
        for song_id in song_ids:
            row = _row(connection, song_id)
            if row is not None:
                _enter(connection, row, change(row.edits or {}), aliases)

    def replace(
        self, connection: sa.Connection, edits: Mapping[int, Mapping[str, Any]], aliases: Mapping[str, str]
    ) -> None:
        """Let songs have these edits, by song id, and artists these aliases, and no others."""
        s = schema.songs.c
        which: sa.ColumnElement[bool] = sa.true()
        if _aliases(connection) == aliases:
            which = sa.or_(s.edits.is_not(None), s.id.in_(some_ids(edits)))
        else:
            connection.execute(schema.aliases.delete())
            for spelling, artist in aliases.items():
                connection.execute(schema.aliases.insert().values(spelling=spelling, artist=artist))
        for row in connection.execute(sa.select(schema.songs).where(which)).all():
            _enter(connection, row, edits.get(row.id, {}), aliases)

    # --- artists ------------------------------------------------------------------------------

    def aliases(self) -> dict[str, str]:
        """The artist that each merged spelling stands for."""
        with self._engine.connect() as connection:
            return _aliases(connection)

    def merge(self, spellings: Sequence[str], artist: str) -> None:
        """Let several spellings stand for one artist, now and in songs to come."""
        name = _checked("artist", artist)
        if not name:
            raise ValueError("artist is empty: name the artist to merge the spellings into.")
        with self._write() as connection:
            earlier = {old for old, new in _aliases(connection).items() if new in spellings}
            for spelling in {*spellings, *earlier}:
                connection.execute(schema.aliases.delete().where(schema.aliases.c.spelling == spelling))
                if spelling != name:
                    connection.execute(schema.aliases.insert().values(spelling=spelling, artist=name))
            self._respell(connection, [*spellings, name])

    def part(self, artist: str) -> None:
        """Take a merge back: every spelling stands for itself again."""
        with self._write() as connection:
            connection.execute(schema.aliases.delete().where(schema.aliases.c.artist == artist))
            self._respell(connection, [artist])

    def _respell(self, connection: sa.Connection, artists: Sequence[str]) -> None:
        s = schema.songs.c
        affected = sa.or_(s.artist.in_(artists), s.album_artist.in_(artists))
        self._change(connection, connection.scalars(sa.select(s.id).where(affected)).all(), lambda edits: edits)

    def suggestions(self) -> list[SpellingGroup]:
        """Artists of the library that are very likely one, spelt in several ways."""
        a = schema.songs.c.artist
        query = sa.select(a, sa.func.count()).where(a.is_not(None)).group_by(a)
        return similar_spellings({row[0]: row[1] for row in self._rows(query)})


def _row(connection: sa.Connection, song_id: int) -> Any:
    """A song as the database has it; None where it has gone."""
    return connection.execute(sa.select(schema.songs).where(schema.songs.c.id == song_id)).one_or_none()


def _enter(connection: sa.Connection, row: Any, edits: Mapping[str, Any], aliases: Mapping[str, str]) -> dict[str, Any]:
    """Let a song have these edits and no others; its tags as they are shown then."""
    tags = row.file_tags or {name: getattr(row, name) for name in _TAGS}
    shown = effective_tags(tags, edits, aliases)
    values = shown | {"edits": edits or sa.null(), "file_tags": tags}
    connection.execute(schema.songs.update().where(schema.songs.c.id == row.id).values(**values))
    return shown


def _aliases(connection: sa.Connection) -> dict[str, str]:
    return {row.spelling: row.artist for row in connection.execute(sa.select(schema.aliases))}


def _checked_edits(change: TagChange) -> dict[str, Any]:
    for name in change.known:
        _refuse_fixed(name)
    if unknown := change.edits.keys() - change.known.keys():
        raise ValueError(f"{', '.join(sorted(unknown))}: pass in known what the song shows there before it is edited.")
    return {name: _checked(name, value) for name, value in change.edits.items()}


def _refuse_fixed(name: str) -> None:
    if name not in EDITABLE:
        raise ValueError(f"{name!r} cannot be edited: choose from {', '.join(EDITABLE)}.")


def _checked(name: str, value: Any) -> Any:
    _refuse_fixed(name)
    if name in _LARGEST:
        if value in (None, ""):
            return None
        if not str(value).strip().isdecimal() or not 1 <= int(value) <= _LARGEST[name]:
            raise ValueError(f"{name} {value!r} is not valid: give a whole number of 1 to {_LARGEST[name]}.")
        return int(value)
    text = " ".join(str(value or "").split()) or None
    if name == "title" and text is None:
        raise ValueError("a song needs a title: give one, or leave the field as it is.")
    return text
