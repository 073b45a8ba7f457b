"""Add analyzed files to the database: as known songs, recognized by their bytes or sound, or as new songs."""

import time
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

import sqlalchemy as sa

from musicsim.addresses import resolve_address
from musicsim.audio import DESCRIPTOR_VERSION, FEATURE_VERSION
from musicsim.library.db import Write, schema
from musicsim.library.processes.pools import WorkerPool
from musicsim.library.processes.workers import Limits
from musicsim.library.scan.analysis import Analysis, Same
from musicsim.library.stores.files import FileStore
from musicsim.library.stores.frames import FrameStore
from musicsim.library.stores.tag_edits import TagEdits, effective_tags


class ScanTarget(Protocol):
    """The part of a library that a scan uses; avoids an import cycle."""

    folder: Path
    files: FileStore
    frame_files: FrameStore
    edits: TagEdits
    pool: WorkerPool | None

    @property
    def settings(self) -> dict[str, Any]: ...

    @property
    def file_limits(self) -> Limits: ...

    def content_hashes(self) -> list[str]: ...

    def exclusive(self, doing: str = ...) -> AbstractContextManager[None]: ...

    @property
    def write(self) -> Write: ...


def enter_known(library: ScanTarget, path: Path, same: Same) -> bool:
    """Add a file with the same bytes as a song; return False if the song was deleted in the meantime."""
    s = schema.songs.c
    with library.write() as connection:
        song_id = connection.scalar(sa.select(s.id).where(s.content_hash == same.content_hash))
        if song_id is not None:
            _enter_file(connection, path, song_id, same.size, same.mtime_ns)
    return song_id is not None


def enter_song(library: ScanTarget, path: Path, analysis: Analysis) -> bool:
    """Add a file and its song; return whether the song is new. A known song keeps its id and all data.

    A song is recognized by its bytes. It is also recognized by its sound, unless another of its files still exists.
    """
    tags, aliases = asdict(analysis.tags), library.edits.aliases()
    sound = analysis.sound
    values = {"file_tags": tags, "content_hash": analysis.content_hash, "outline": analysis.outline, "last_path": path}
    values |= {name: getattr(sound, name) for name in ("sound_hash", "duration_s", "typical_s")}
    values |= {"notes": "; ".join(sound.notes), "feature_version": FEATURE_VERSION, "is_compared": False}
    values |= {"descriptor_version": DESCRIPTOR_VERSION, **asdict(analysis.descriptors)}
    s = schema.songs.c
    with library.write() as connection:
        known_id = _find_song(connection, path, analysis)
        if known_id is None:
            values |= effective_tags(tags, None, aliases) | {"added_at": time.time()}
            inserted = connection.execute(schema.songs.insert().values(**values))
            song_id = inserted.inserted_primary_key[0]  # type: ignore[index]
        else:
            song_id = known_id
            values |= effective_tags(tags, connection.scalar(sa.select(s.edits).where(s.id == song_id)), aliases)
            connection.execute(schema.songs.update().where(s.id == song_id).values(**values))
        _enter_file(connection, path, song_id, analysis.size, analysis.mtime_ns)
    return known_id is None


def enter_rewritten(library: ScanTarget, song_id: int, path: Path, digest: str) -> None:
    """Store the new bytes of a song's file whose sound is the same; the song keeps its id, features and data.

    Nothing happens if the song was deleted in the meantime. If a different song has the same bytes, the song keeps its
    hash. The features have both names until the new hash is stored, so that a crash never separates them.
    """
    s = schema.songs.c
    status = path.stat()
    with library.write() as connection:
        before = connection.scalar(sa.select(s.content_hash).where(s.id == song_id))
        if before is None:
            return
        _enter_file(connection, path, song_id, status.st_size, status.st_mtime_ns)
        if connection.scalar(sa.select(s.id).where(s.content_hash == digest)) is not None:
            return
        library.frame_files.link(before, digest)
        connection.execute(schema.songs.update().where(s.id == song_id).values(content_hash=digest))
    library.frame_files.drop(before)


def _find_song(connection: sa.Connection, path: Path, analysis: Analysis) -> int | None:
    s, f = schema.songs.c, schema.files.c
    same_bytes = connection.scalar(sa.select(s.id).where(s.content_hash == analysis.content_hash))
    if same_bytes is not None:
        return same_bytes
    query = sa.select(s.id).where(s.sound_hash == analysis.sound.sound_hash).order_by(s.id)
    for song_id in connection.scalars(query).all():
        paths = connection.scalars(sa.select(f.path).where(f.song_id == song_id)).all()
        if not any(other != path and resolve_address(other).exists() for other in paths):
            return song_id
    return None


def _enter_file(connection: sa.Connection, path: Path, song_id: int, size: int, mtime_ns: int) -> None:
    """Store the path of a song, and delete its paths that no longer exist."""
    f = schema.files.c
    row = {"path": path, "song_id": song_id, "folder": path.parent, "size": size, "mtime_ns": mtime_ns}
    connection.execute(schema.files.insert().prefix_with("OR REPLACE").values(**row, missing_since=None))
    for other in connection.scalars(sa.select(f.path).where(f.song_id == song_id, f.path != path)).all():
        if not resolve_address(other).exists():
            connection.execute(schema.files.delete().where(f.path == other))
    connection.execute(schema.failures.delete().where(schema.failures.c.path == path))
