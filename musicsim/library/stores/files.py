"""The files in a library: paths of its songs, files that could not be added, and missing files."""

import json
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import sqlalchemy as sa

from musicsim.addresses import is_address, strip_users
from musicsim.audio import FEATURE_VERSION
from musicsim.library.db import Tables, schema, some_ids

ERROR, NO_SOUND, SHORT, SILENT = "error", "no sound", "short", "silent"
SKIPPED = (SHORT, SILENT)
"""Kinds of files that a scan skips by default."""


def absolute(source: str | Path) -> Path:
    """Return the path without ``~`` and ``..``. Links and addresses (:mod:`musicsim.addresses`) stay unchanged."""
    return Path(source) if is_address(source) else Path(os.path.abspath(Path(source).expanduser()))


def is_below(path: Path, folder: Path) -> bool:
    """Return whether an absolute path is the folder or in it, without reading the disk."""
    inner, outer = os.fspath(path), os.fspath(folder)
    return inner == outer or inner.startswith(os.path.join(outer, ""))


@dataclass(frozen=True, slots=True)
class Failure:
    """A file that was not added, and why."""

    path: Path
    reason: str  # one sentence that contains the file name
    kind: str = ERROR  # one of "error", "no sound", "short" and "silent"


@dataclass(frozen=True, slots=True)
class KnownFile:
    """The state of a file when its song was added."""

    song_id: int
    size: int
    mtime_ns: int
    content_hash: str
    feature_version: int
    is_missing: bool


class FileStore(Tables):
    def roots(self) -> list[Path]:
        """Return the folders and files that were added, oldest first."""
        query = sa.select(schema.roots.c.path).order_by(schema.roots.c.added_at, schema.roots.c.path)
        return self._values(query)

    def add_roots(self, sources: Iterable[str | Path]) -> None:
        """Add folders and files to the roots, unless they are already below a root."""
        roots = self.roots()
        new = [path for path in map(absolute, sources) if not any(is_below(path, root) for root in roots)]
        rows = [{"path": path, "added_at": time.time()} for path in new]
        self._write_rows((schema.roots.insert().prefix_with("OR IGNORE"), rows))

    def forget_root(self, root: Path) -> int:
        """Remove a root, its files and failures, and songs without another file; return the number of songs."""
        others = [other for other in self.roots() if other != root]
        with self._write() as connection:
            connection.execute(schema.roots.delete().where(schema.roots.c.path == root))
            for table in (schema.files, schema.failures):
                for path in connection.scalars(sa.select(table.c.path)).all():
                    if is_below(path, root) and not any(is_below(path, other) for other in others):
                        connection.execute(table.delete().where(table.c.path == path))
            return connection.execute(schema.songs.delete().where(_has_no_file())).rowcount

    def list_known(self) -> dict[Path, KnownFile]:
        """Return all files of songs, keyed by path; about 0.5 kB each."""
        f, s = schema.files.c, schema.songs.c
        is_missing = f.missing_since.is_not(None)
        query = sa.select(f.path, f.song_id, f.size, f.mtime_ns, s.content_hash, s.feature_version, is_missing).join(
            schema.songs, s.id == f.song_id
        )
        return {row[0]: KnownFile(*row[1:]) for row in self._rows(query)}

    def copies(self) -> dict[int, list[Path]]:
        """Return the paths of songs that have several files with the same bytes, keyed by song id."""
        f = schema.files.c
        ids = sa.select(f.song_id).where(f.missing_since.is_(None)).group_by(f.song_id)
        return self._paths(f.song_id.in_(ids.having(sa.func.count() > 1)))

    def paths_of(self, song_ids: Iterable[int]) -> dict[int, list[Path]]:
        return self._paths(schema.files.c.song_id.in_(some_ids(song_ids)))

    def _paths(self, condition: sa.ColumnElement[bool]) -> dict[int, list[Path]]:
        f, paths = schema.files.c, dict[int, list[Path]]()
        query = sa.select(f.song_id, f.path).where(f.missing_since.is_(None), condition)
        for song_id, path in self._rows(query.order_by(f.song_id, f.path)):
            paths.setdefault(song_id, []).append(path)
        return paths

    def here(self) -> Iterator[tuple[int, Path]]:
        f = schema.files.c
        yield from map(tuple, self._rows(sa.select(f.song_id, f.path).where(f.missing_since.is_(None))))

    def albums_of_folders(self) -> dict[str, str]:
        """Return the album of each folder in which no song is of another album, and at least half are of this one."""
        f, s = schema.files.c, schema.songs.c
        folder, album, n = sa.type_coerce(f.folder, sa.Text), sa.func.lower(s.album), sa.func.count()
        query = sa.select(folder.label("folder"), sa.func.min(s.album)).join(schema.songs, s.id == f.song_id)
        query = query.where(f.missing_since.is_(None)).group_by(f.folder)
        query = query.having(sa.func.min(album) == sa.func.max(album), 2 * sa.func.count(s.album) >= n)
        return {schema.path_text(path): name for path, name in self._rows(query)}

    def song_at(self, path: Path, *, missing: bool = False) -> int | None:
        """Return the id of the song in a file, or None; `missing` includes missing files."""
        f = schema.files.c
        exists = sa.true() if missing else f.missing_since.is_(None)
        return self._value(sa.select(f.song_id).where(f.path == path, exists))

    def songs_at(self, paths: Iterable[Path]) -> dict[Path, int]:
        ids = self.songs_at_texts(os.fspath(path) for path in paths)
        return {Path(text): song_id for text, song_id in ids.items()}

    def songs_at_texts(self, paths: Iterable[str]) -> dict[str, int]:
        """Return song ids like :meth:`songs_at`, but keyed by normalized path strings, and five times as fast."""
        f = schema.files.c
        path = sa.type_coerce(f.path, sa.Text)
        texts = json.dumps([schema.encode_text(text) for text in paths])
        wanted = sa.select(sa.func.json_each(texts).table_valued("value").c.value)
        query = sa.select(path.label("path"), f.song_id).where(f.path.in_(wanted), f.missing_since.is_(None))
        return {schema.path_text(row.path): row.song_id for row in self._rows(query)}

    def songs_below(self, folder: Path) -> set[Path]:
        return {path for path in self._values(sa.select(schema.files.c.path)) if is_below(path, folder)}

    def find_outdated(self) -> list[tuple[Path, int]]:
        """Return (file, feature version) of each song with outdated features, except files that have failed."""
        f, s, bad = schema.files.c, schema.songs.c, schema.failures.c
        path = sa.func.min(f.path, type_=schema.FilePath())
        query = sa.select(path, s.feature_version).join(schema.songs, s.id == f.song_id).group_by(s.id)
        query = query.where(f.missing_since.is_(None), s.feature_version < FEATURE_VERSION)
        return [(row[0], row[1]) for row in self._rows(query.where(f.path.not_in(sa.select(bad.path))))]

    def list_failed(self) -> dict[Path, tuple[int, int, str, float | None]]:
        """Return (size, mtime, kind, seconds) of failed files, keyed by path; -1 as size and mtime forces a retry."""
        bad = schema.failures.c
        query = sa.select(bad.path, bad.size, bad.mtime_ns, bad.kind, bad.duration_s)
        return {row.path: (row.size, row.mtime_ns, row.kind, row.duration_s) for row in self._rows(query)}

    def failures(self) -> list[Failure]:
        """Return the files that were not added, ordered by path."""
        bad = schema.failures.c
        query = sa.select(bad.path, bad.reason, bad.kind).order_by(bad.path)
        return [Failure(path, strip_users(reason), kind) for path, reason, kind in self._rows(query)]

    def reject(self, failure: Failure, *, size: int, mtime_ns: int, duration_s: float | None) -> None:
        """Store a file that was not added; a scan opens it again if its size or time changes."""
        row = asdict(failure) | {"size": size, "mtime_ns": mtime_ns, "duration_s": duration_s}
        statement = schema.failures.insert().prefix_with("OR REPLACE")
        self._execute(statement.values(**row, failed_at=time.time()))

    def mark(self, *, missing: Iterable[Path], back: Iterable[Path], unfailed: Iterable[Path] = ()) -> None:
        """Mark files as missing or as existing again, and delete the failures of `unfailed`."""
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
        """Delete old paths of moved songs, and songs without personal data whose file now contains different music."""
        f = schema.files.c
        has_moved = sa.and_(f.missing_since.is_not(None), f.song_id.in_(schema.ids_with_file()))
        tables = (schema.plays, schema.tags, schema.feedback, schema.playlist_songs)
        in_use = [sa.select(table.c.song_id) for table in tables]
        in_use += [sa.select(song).where(song.is_not(None)) for song in schema.JUDGED_SONGS]
        is_unused = sa.and_(*(schema.songs.c.id.not_in(ids) for ids in in_use), schema.songs.c.edits.is_(None))
        is_lost = sa.and_(_has_no_file(), is_unused)
        if any(self._value(sa.select(sa.func.count()).where(condition)) for condition in (has_moved, is_lost)):
            with self._write() as connection:
                connection.execute(schema.files.delete().where(has_moved))
                connection.execute(schema.songs.delete().where(is_lost))

    def forget_songs(self, song_ids: Iterable[int]) -> int:
        """Delete songs whose files are missing, with all their data, and return their number. Other songs stay."""
        s, ids = schema.songs.c, list(song_ids)
        if not ids:  # an empty write would invalidate caches
            return 0
        is_chosen = s.id.in_(some_ids(ids))
        return self._execute(schema.songs.delete().where(is_chosen, s.id.not_in(schema.ids_with_file())))


def _has_no_file() -> sa.ColumnElement[bool]:
    return schema.songs.c.id.not_in(sa.select(schema.files.c.song_id))
