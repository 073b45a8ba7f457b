"""Entering analysed files: which song a file is, whether by its path, its bytes or its sound."""

import time
from dataclasses import asdict
from pathlib import Path

import sqlalchemy as sa

from musicsim.addresses import located
from musicsim.audio import DESCRIPTOR_VERSION, FEATURE_VERSION
from musicsim.library.db import schema
from musicsim.library.scan.analysis import Analysis, Same
from musicsim.library.scan.target import ScanTarget
from musicsim.library.stores.tag_edits import effective_tags


def enter_known(library: ScanTarget, path: Path, same: Same) -> bool:
    """Enter another place of a song's bytes; False if the song has been forgotten meanwhile."""
    s = schema.songs.c
    with library.write() as connection:
        song_id = connection.scalar(sa.select(s.id).where(s.content_hash == same.content_hash))
        if song_id is not None:
            _enter_file(connection, path, song_id, same.size, same.mtime_ns)
    return song_id is not None


def enter_song(library: ScanTarget, path: Path, analysis: Analysis) -> bool:
    """Enter a file and its song; whether the song is new to the library.

    The file is the song with the same bytes; else, if its sound is the same to the last bit, the song that lay at
    this path or whose files have gone: its tags were changed, and it was perhaps moved. Such a song keeps its id, and
    with it plays, playlists and edits.
    """
    tags, aliases = asdict(analysis.tags), library.edits.aliases()
    sound = analysis.sound
    values = {"file_tags": tags, "content_hash": analysis.content_hash, "outline": analysis.outline, "last_path": path}
    values |= {name: getattr(sound, name) for name in ("sound_hash", "duration_s", "typical_s")}
    values |= {"notes": "; ".join(sound.notes), "feature_version": FEATURE_VERSION, "is_compared": False}
    values |= {"descriptor_version": DESCRIPTOR_VERSION, **asdict(analysis.descriptors)}
    s = schema.songs.c
    with library.write() as connection:
        known = _song_of(connection, path, analysis)
        if known is None:
            values |= effective_tags(tags, None, aliases) | {"added_at": time.time()}
            inserted = connection.execute(schema.songs.insert().values(**values))
            song_id = inserted.inserted_primary_key[0]  # type: ignore[index]
        else:
            song_id = known
            edits = connection.scalar(sa.select(s.edits).where(s.id == song_id))
            values |= effective_tags(tags, edits, aliases)
            connection.execute(schema.songs.update().where(s.id == song_id).values(**values))
        _enter_file(connection, path, song_id, analysis.size, analysis.mtime_ns)
    return known is None


def _song_of(connection: sa.Connection, path: Path, analysis: Analysis) -> int | None:
    s, f = schema.songs.c, schema.files.c
    same_bytes = connection.scalar(sa.select(s.id).where(s.content_hash == analysis.content_hash))
    if same_bytes is not None:
        return same_bytes
    same_sound = connection.scalars(
        sa.select(s.id).where(s.sound_hash == analysis.sound.sound_hash).order_by(s.id)
    ).all()
    for song_id in same_sound:
        places = connection.scalars(sa.select(f.path).where(f.song_id == song_id)).all()
        if not any(place != path and located(place).exists() for place in places):
            return song_id
    return None


def _enter_file(connection: sa.Connection, path: Path, song_id: int, size: int, mtime_ns: int) -> None:
    """Note that a song lies at a path; places of the song that have gone are forgotten."""
    f = schema.files.c
    row = {"path": path, "song_id": song_id, "folder": path.parent, "size": size, "mtime_ns": mtime_ns}
    connection.execute(schema.files.insert().prefix_with("OR REPLACE").values(**row, missing_since=None))
    for place in connection.scalars(sa.select(f.path).where(f.song_id == song_id, f.path != path)).all():
        if not located(place).exists():
            connection.execute(schema.files.delete().where(f.path == place))
    connection.execute(schema.failures.delete().where(schema.failures.c.path == path))
