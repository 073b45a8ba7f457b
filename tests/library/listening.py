"""A library of named songs without sound for tests of matching, and writers of listening files."""

import json
import zipfile

from musicsim.library.db import schema

__all__ = ["add_songs", "played", "write_json", "write_zip"]


def add_songs(library, *songs):
    """Add songs, each an artist, a title and further fields by keyword, and return their ids."""
    ids = []
    with library.write() as connection:
        for n, (artist, title, *more) in enumerate(songs):
            digest = f"{artist}/{title}/{n}/{len(library)}"
            values = {
                "content_hash": digest,
                "title": title,
                "artist": artist,
                "duration_s": 100.0,
                "feature_version": 1,
                "added_at": 0.0,
            }
            values |= more[0] if more else {}
            is_missing = values.pop("is_missing", False)
            song_id = connection.execute(schema.songs.insert().values(**values)).inserted_primary_key[0]
            connection.execute(
                schema.files.insert().values(
                    path=library.folder / f"{song_id}.flac",
                    song_id=song_id,
                    folder=library.folder,
                    size=1,
                    mtime_ns=1,
                    missing_since=1.0 if is_missing else None,
                )
            )
            ids.append(song_id)
    return ids


def played(library):
    """Return play counts by listener and song."""
    plays = library.plays()
    return {
        (plays.listeners[who], int(song)): int(count)
        for who, song, count in zip(plays.listener, plays.song_id, plays.count, strict=True)
    }


def write_json(path, value, **how):
    path.write_text(json.dumps(value, **how))
    return path


def write_zip(path, **members):
    """Write a zip archive of texts. In a name, "__" means "/" and "_json" means ".json"."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name.replace("__", "/").replace("_json", ".json"), text)
    return path
