"""A copy of a library's database for visitors, limited to the content of the public pages.

This module lists every column that is copied, so a new table or column stays private until someone adds it.
"""

import json
import sqlite3
from collections.abc import Callable, Collection
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from musicsim import storage
from musicsim.audio import DESCRIPTORS
from musicsim.library import (
    artist_group,
    begin_log,
    create_tables,
    damage_error,
    open_engine,
    parse_artist,
    read_only_address,
    stand_in_name,
)
from musicsim.library.db import schema

EXCERPTS = "excerpts"  # name of the folder for excerpts
NOWHERE = "."  # folder of a song whose artist is known, so that the real folder stays private
_PLAIN = (
    *("title", "artist", "album_artist", "album", "track", "year", "genre", "duration_s"),
    *("feature_version", "mb_recording_id", "mb_artist_id", "mb_album_id", "sound_hash"),
    *DESCRIPTORS,
    *("key", "mode", "descriptor_version"),
)
_MODEL = (
    *("id", "name", "created_at", "n_songs_fitted", "n_features", "n_dimensions", "is_active", "is_complete"),
    *("kind", "base_id", "is_retired"),
)
# model settings that pages show; others may contain names of files or listeners
_SHOWN = ("supervision", "representation", "label", "n_codewords", "tau", "sources", "model_ids", "vectors")
SETTINGS = frozenset({"hub_reduction", "index_kind"})  # the only library settings in a copy
_HERE = "SELECT id FROM songs"
_LABELS = {"artist": "songs", "genre": "songs", "key": "songs", "mode": "songs", "tag": "tags"}

FILLED: dict[str, dict[str, str]] = {
    "songs": {
        "id": "s.id",
        "content_hash": "printf('%064x', s.id)",  # the real hash would identify the owner's file
        **{name: f"s.{name}" for name in _PLAIN},
        "outline": "outline_of(s.id, s.outline, s.typical_s, s.duration_s)",
        "notes": "''",
        "added_at": "0",
        "is_compared": "1",
        "typical_s": "typical_of(s.id, s.typical_s)",
    },
    "files": {
        "path": "path_of(song_id)",
        "song_id": "song_id",
        "folder": "folder_of(artist, folder)",
        "size": "0",
        "mtime_ns": "0",
    },
    "duplicates": {name: f"s.{name}" for name in ("first_id", "second_id", "similarity", "offset_s", "is_same")},
    "tags": {"song_id": "s.song_id", "tag": "s.tag", "source": "''", "weight": "max(s.weight)"},
    # listeners stay private: only a tercile of each play count is stored, with an artificial listener per song
    "plays": {"listener": "song_id", "song_id": "song_id", "source": "''", "count": "third_of(n)"},
    "playlists": {
        "id": "s.id",
        "name": "s.name",
        "category": "s.category",
        # the sources of imported playlists contain file names
        "source": "CASE source WHEN 'saved' THEN source ELSE 'list ' || s.id END",
        "created_at": "0",
    },
    "playlist_songs": {name: f"s.{name}" for name in ("playlist_id", "position", "song_id")},
    "models": {**{name: f"s.{name}" for name in _MODEL}, "settings": "settings_of(s.settings)"},
    "vectors": {name: f"s.{name}" for name in ("model_id", "row", "song_id")},
}
"""SQL expression for each column of each table in a copy. All other tables are empty, except ``meta``."""

_FROM = {
    "songs": "src.songs s WHERE s.id IN (SELECT song_id FROM src.files WHERE missing_since IS NULL) ORDER BY s.id",
    "files": (
        "(SELECT f.song_id, min(f.folder) folder, s.artist FROM src.files f JOIN src.songs s ON s.id = f.song_id "
        "WHERE f.missing_since IS NULL GROUP BY f.song_id ORDER BY f.song_id)"
    ),
    "duplicates": f"src.duplicates s WHERE s.first_id IN ({_HERE}) AND s.second_id IN ({_HERE})",
    "tags": f"src.tags s WHERE s.song_id IN ({_HERE}) GROUP BY s.song_id, s.tag",
    "plays": (
        f"(SELECT song_id, sum(count) n FROM src.plays GROUP BY song_id) WHERE third_of(n) > 0 AND song_id IN ({_HERE})"
    ),
    "playlists": "src.playlists s WHERE true",
    "playlist_songs": f"src.playlist_songs s WHERE s.song_id IN ({_HERE})",
    "models": "src.models s WHERE is_chosen(s.id)",
    "vectors": f"src.vectors s WHERE s.model_id IN (SELECT id FROM models) AND s.song_id IN ({_HERE})",
}


@dataclass(frozen=True, slots=True)
class Excerpts:
    """The excerpts in a copy; :func:`excerpt_path` returns the path of each."""

    song_ids: Collection[int] = frozenset()
    suffix: str = ".mp3"
    length_s: float = 0.0


def copy_for_visitors(
    source: Path, target: Path, model_ids: Collection[str], thirds: tuple[float, float], excerpts: Excerpts = Excerpts()
) -> None:
    """Copy the public part of a database; `thirds` are the play counts that split the songs into three equal groups."""
    target.touch()
    engine = open_engine(target, read_only=False)
    with engine.begin() as connection:
        create_tables(connection)
        begin_log(connection)
    engine.dispose()
    try:
        with closing(sqlite3.connect(target, uri=True, isolation_level=None)) as copy:
            # fast settings are safe here, because no other process reads the copy before it is complete
            for pragma in ("journal_mode=DELETE", "journal_mode=OFF", "synchronous=OFF", "cache_size=-65536"):
                copy.execute(f"PRAGMA {pragma}")
            copy.execute("ATTACH DATABASE ? AS src", (read_only_address(source),))
            copy.execute("BEGIN")
            _add_functions(copy, frozenset(model_ids), thirds, excerpts)
            for table, columns in FILLED.items():
                names, values = ", ".join(columns), ", ".join(columns.values())
                copy.execute(f"INSERT INTO main.{table} ({names}) SELECT {values} FROM {_FROM[table]}")
            _fill_meta(copy)
            copy.execute("COMMIT")
    except sqlite3.Error as error:
        if (problem := storage.storage_error(error, target)) is not None:
            raise problem from error
        raise damage_error(source, error) from error


def excerpt_path(song_id: int, suffix: str) -> str:
    """Return the path of a song's excerpt, relative to the folder of the copy."""
    return f"{EXCERPTS}/{song_id % 1000:03d}/{song_id}{suffix}"


def _add_functions(
    copy: sqlite3.Connection, model_ids: Collection[str], thirds: tuple[float, float], excerpts: Excerpts
) -> None:
    """Define the SQL functions that :data:`FILLED` and :data:`_FROM` use."""
    with_excerpt = frozenset(excerpts.song_ids)
    roots = [schema.path_of(text) for (text,) in copy.execute("SELECT path FROM src.roots")]
    is_unknown = cache(lambda artist: parse_artist(artist) is None)
    names: dict[str, str] = {}

    @cache
    def stand_in(folder: str) -> str:
        """Return a unique name that replaces the path of a folder; songs without an artist are grouped by folder."""
        path = schema.path_of(folder)
        group = artist_group(None, path, roots)
        if group is None:
            return NOWHERE
        return names.setdefault(group, f"{len(names) + 1}/{stand_in_name(path, roots)}")

    def outline_of(song_id: int, outline: bytes, typical_s: float, duration_s: float) -> bytes:
        if song_id not in with_excerpt or not outline or duration_s <= excerpts.length_s:
            return outline
        ends = np.array([typical_s, typical_s + excerpts.length_s]) / duration_s * len(outline)
        return bytes(np.frombuffer(outline, np.uint8)[slice(*ends.astype(int))])

    def settings_of(text: str) -> str:
        settings = json.loads(text)
        return json.dumps({name: settings[name] for name in _SHOWN if name in settings})

    functions: dict[str, tuple[int, Callable[..., Any]]] = {
        "is_chosen": (1, model_ids.__contains__),
        "path_of": (1, lambda song_id: excerpt_path(song_id, excerpts.suffix)),
        "folder_of": (2, lambda artist, folder: stand_in(folder) if is_unknown(artist) else NOWHERE),
        "typical_of": (2, lambda song_id, typical_s: 0.0 if song_id in with_excerpt else typical_s),
        "outline_of": (4, outline_of),
        "settings_of": (1, settings_of),
        "third_of": (1, lambda n_plays: sum(n_plays > limit for limit in thirds)),
    }
    for name, (n_arguments, function) in functions.items():
        copy.create_function(name, n_arguments, function, deterministic=True)


def _fill_meta(copy: sqlite3.Connection) -> None:
    meta = dict(copy.execute("SELECT key, value FROM src.meta WHERE key IN ('settings', 'colours')"))
    settings = json.loads(meta.get("settings", "{}"))
    all_colors = json.loads(meta.get("colours", "{}"))
    colors = {}
    for kind, table in _LABELS.items():
        names = {name for (name,) in copy.execute(f"SELECT DISTINCT {kind} FROM main.{table}")}
        colors[kind] = {name: color for name, color in all_colors.get(kind, {}).items() if name in names}
    values = {"settings": {n: v for n, v in settings.items() if n in SETTINGS}, "colours": colors}
    rows = [(key, json.dumps(value)) for key, value in values.items()]
    copy.executemany("INSERT INTO main.meta (key, value) VALUES (?, ?)", rows)
