"""Which files a library knows: where its songs lie, what could not be added and why, and what has gone."""

import json
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from musicsim.addresses import is_address, text_without_users
from musicsim.audio import FEATURE_VERSION
from musicsim.library.db import schema
from musicsim.library.db.columns import some_ids
from musicsim.library.db.database import Tables

ERROR, NO_SOUND, SHORT, SILENT = "error", "no sound", "short", "silent"
SKIPPED = (SHORT, SILENT)
"""Kinds of files that could be added, were they asked for."""


def absolute(source: str | Path) -> Path:
    """The path without ``~`` and ``..``; links are kept, so that a library follows what was named.

    Addresses (:mod:`musicsim.addresses`) stay as they are.
    """
    return Path(source) if is_address(source) else Path(os.path.abspath(Path(source).expanduser()))


def is_below(path: Path, folder: Path) -> bool:
    """Whether an absolute path is the folder or lies in it, by its name alone: the disk is not asked."""
    inside, outside = os.fspath(path), os.fspath(folder)
    return inside == outside or inside.startswith(os.path.join(outside, ""))


@dataclass(frozen=True, slots=True)
class Failure:
    """A file that was not added, and why."""

    path: Path
    reason: str  # one sentence that names the file
    kind: str = ERROR  # one of those above; what is short or silent can be added when it is asked for


@dataclass(frozen=True, slots=True)
class KnownFile:
    """A file as it stood when it became a song."""

    song_id: int
    size: int
    mtime_ns: int
    content_hash: str
    feature_version: int
    is_missing: bool


class FileStore(Tables):
    """Roots, files and failures of one library."""

    # --- roots --------------------------------------------------------------------------------

    def roots(self) -> list[Path]:
        """Folders and files that were added, oldest first."""
        query = sa.select(schema.roots.c.path).order_by(schema.roots.c.added_at, schema.roots.c.path)
        return self._values(query)

    def add_roots(self, sources: Iterable[str | Path]) -> None:
        """Enter folders and files among the roots, unless they lie below one."""
        roots = self.roots()
        new = [path for path in map(absolute, sources) if not any(is_below(path, root) for root in roots)]
        rows = [{"path": path, "added_at": time.time()} for path in new]
        self._write_rows((schema.roots.insert().prefix_with("OR IGNORE"), rows))

    def forget_root(self, root: Path) -> int:
        """Take a folder out of the library, with its files, failures and the songs that lie nowhere else.

        Returns how many songs were forgotten. The music itself is not touched.
        """
        f, bad = schema.files, schema.failures
        others = [other for other in self.roots() if other != root]

        def goes(path: Path) -> bool:
            return is_below(path, root) and not any(is_below(path, other) for other in others)

        with self._write() as connection:
            connection.execute(schema.roots.delete().where(schema.roots.c.path == root))
            for table in (f, bad):
                gone = [path for path in connection.scalars(sa.select(table.c.path)) if goes(path)]
                for path in gone:
                    connection.execute(table.delete().where(table.c.path == path))
            return _forget(connection, _without_file())

    # --- files --------------------------------------------------------------------------------

    def known(self) -> dict[Path, KnownFile]:
        """Every file that is a song, by path; about 0.5 kB each."""
        f, s = schema.files.c, schema.songs.c
        is_missing = f.missing_since.is_not(None)
        query = sa.select(f.path, f.song_id, f.size, f.mtime_ns, s.content_hash, s.feature_version, is_missing).join(
            schema.songs, s.id == f.song_id
        )
        return {row[0]: KnownFile(*row[1:]) for row in self._rows(query)}

    def copies(self) -> dict[int, list[Path]]:
        """Where songs lie whose very bytes are in more than one file, by song id."""
        f = schema.files.c
        here = sa.select(f.song_id, f.path).where(f.missing_since.is_(None))
        several = sa.select(f.song_id).where(f.missing_since.is_(None)).group_by(f.song_id)
        return self._by_song(here.where(f.song_id.in_(several.having(sa.func.count() > 1))))

    def paths_of(self, song_ids: Iterable[int]) -> dict[int, list[Path]]:
        """The files that are there of some songs, by song id."""
        f = schema.files.c
        here = sa.select(f.song_id, f.path).where(f.missing_since.is_(None), f.song_id.in_(some_ids(song_ids)))
        return self._by_song(here)

    def _by_song(self, query: sa.Select[Any]) -> dict[int, list[Path]]:
        f, found = schema.files.c, dict[int, list[Path]]()
        for song_id, path in self._rows(query.order_by(f.song_id, f.path)):
            found.setdefault(song_id, []).append(path)
        return found

    def here(self) -> Iterator[tuple[int, Path]]:
        """Every file that is there, with the song that it holds."""
        f = schema.files.c
        yield from map(tuple, self._rows(sa.select(f.song_id, f.path).where(f.missing_since.is_(None))))

    def song_at(self, path: Path, *, missing: bool = False) -> int | None:
        """The song that the file at a path holds, or held if missing files count; None where there is none."""
        f = schema.files.c
        here = sa.true() if missing else f.missing_since.is_(None)
        return self._value(sa.select(f.song_id).where(f.path == path, here))

    def songs_at(self, paths: Iterable[Path]) -> dict[Path, int]:
        """Ids of the songs in the files at some paths, by path; paths without a song are left out."""
        found = self.songs_at_texts(os.fspath(path) for path in paths)
        return {Path(text): song_id for text, song_id in found.items()}

    def songs_at_texts(self, paths: Iterable[str]) -> dict[str, int]:
        """Do as :meth:`songs_at` does, with normalized paths as text: long lists take a fifth of the time."""
        f = schema.files.c
        path = sa.type_coerce(f.path, sa.Text)
        listed = json.dumps([schema.stored_text(text) for text in paths])
        wanted = sa.select(sa.func.json_each(listed).table_valued("value").c.value)
        query = sa.select(path.label("path"), f.song_id).where(f.path.in_(wanted), f.missing_since.is_(None))
        return {schema.path_text(row.path): row.song_id for row in self._rows(query)}

    def songs_below(self, folder: Path) -> set[Path]:
        """Paths of the files below a folder that are songs."""
        return {path for path in self._values(sa.select(schema.files.c.path)) if is_below(path, folder)}

    def outdated(self) -> list[tuple[Path, int]]:
        """A file of every song that an older version of the program has described, and that version.

        Those that could not be analysed again are left out: a scan opens them when they have changed.
        """
        f, s, bad = schema.files.c, schema.songs.c, schema.failures.c
        path = sa.func.min(f.path, type_=schema.FilePath())
        query = sa.select(path, s.feature_version).join(schema.songs, s.id == f.song_id).group_by(s.id)
        query = query.where(f.missing_since.is_(None), s.feature_version < FEATURE_VERSION)
        return [(row[0], row[1]) for row in self._rows(query.where(f.path.not_in(sa.select(bad.path))))]

    def failed(self) -> dict[Path, tuple[int, int, str, float | None]]:
        """Size, time, kind and length in seconds of every file that was not added, by path.

        Size and time are -1 where the file was not at fault.
        """
        bad = schema.failures.c
        query = sa.select(bad.path, bad.size, bad.mtime_ns, bad.kind, bad.duration_s)
        return {row.path: (row.size, row.mtime_ns, row.kind, row.duration_s) for row in self._rows(query)}

    def failures(self) -> list[Failure]:
        """Files that were not added, by path."""
        bad = schema.failures.c
        query = sa.select(bad.path, bad.reason, bad.kind).order_by(bad.path)
        return [Failure(path, text_without_users(reason), kind) for path, reason, kind in self._rows(query)]

    def reject(self, failure: Failure, *, size: int, mtime_ns: int, duration_s: float | None) -> None:
        """Enter a file among those that were not added; it is opened again when size or time are other ones."""
        row = asdict(failure) | {"size": size, "mtime_ns": mtime_ns, "duration_s": duration_s}
        with self._write() as connection:
            statement = schema.failures.insert().prefix_with("OR REPLACE")
            connection.execute(statement.values(**row, failed_at=time.time()))

    def mark(self, *, missing: Iterable[Path], back: Iterable[Path], unfailed: Iterable[Path] = ()) -> None:
        """Note which files have gone, which are here again, and which failures have no file any more."""
        f, bad = schema.files, schema.failures
        path = sa.bindparam("which", type_=schema.FilePath())
        is_new = f.c.missing_since.is_(None)
        steps = (
            (f.update().where(f.c.path == path, is_new).values(missing_since=time.time()), missing),
            (f.update().where(f.c.path == path).values(missing_since=None), back),
            (bad.delete().where(bad.c.path == path), unfailed),
        )
        self._write_rows(*((statement, [{"which": p} for p in paths]) for statement, paths in steps))

    def tidy(self) -> None:
        """Forget old places of songs that have moved, and songs that lost their file to other music.

        A song of which listeners have said something (plays, tags, thumbs, edits, playlists, judgments) is never
        forgotten here.
        """
        f = schema.files.c
        here = schema.ids_with_file()
        moved = schema.files.delete().where(f.missing_since.is_not(None), f.song_id.in_(here))
        tables = (schema.plays, schema.tags, schema.feedback, schema.playlist_songs)
        said = [sa.select(table.c.song_id) for table in tables]
        said += [sa.select(song).where(song.is_not(None)) for song in schema.JUDGED_SONGS]
        silent = sa.and_(*(schema.songs.c.id.not_in(query) for query in said), schema.songs.c.edits.is_(None))
        n_old = self._value(sa.select(sa.func.count()).where(f.missing_since.is_not(None), f.song_id.in_(here)))
        n_lost = self._value(sa.select(sa.func.count()).where(_without_file(), silent))
        if n_old or n_lost:
            with self._write() as connection:
                connection.execute(moved)
                _forget(connection, sa.and_(_without_file(), silent))

    def forget_songs(self, song_ids: Iterable[int]) -> int:
        """Forget songs whose files are missing, with all that was said of them; how many. Others are left."""
        s = schema.songs.c
        each = schema.songs.delete().where(s.id == sa.bindparam("which"), s.id.not_in(schema.ids_with_file()))
        rows = [{"which": song_id} for song_id in song_ids]
        if not rows:
            return 0
        with self._write() as connection:
            return connection.execute(each, rows).rowcount


def _without_file() -> sa.ColumnElement[bool]:
    return schema.songs.c.id.not_in(sa.select(schema.files.c.song_id))


def _forget(connection: sa.Connection, which: sa.ColumnElement[bool]) -> int:
    return connection.execute(schema.songs.delete().where(which)).rowcount
