"""Songs, results and models as JSON, for the command line and the HTTP interface."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any

from musicsim import library
from musicsim.audio import DESCRIPTORS
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.wording import clock

_SONG_FIELDS = ("id", "title", "artist", "album", "track", "year", "genre", "duration_s", "key", "mode", *DESCRIPTORS)


def render_fields(value: object, /, *names: str, **renamed: str) -> dict[str, Any]:
    """Return attributes of an object, keyed by name; `renamed` maps JSON names to attributes."""
    attributes = {name: name for name in names} | renamed
    return {name: getattr(value, attribute) for name, attribute in attributes.items()}


def render_song(song: library.Song, *, with_files: bool = False) -> dict[str, Any]:
    """Return a song as JSON; `with_files` adds its folder, path and analysis notes."""
    files = {"folder": song.folder, "notes": song.notes, "path": str(song.path)} if with_files else {}
    return render_fields(song, *_SONG_FIELDS) | files


def list_facts(song: library.Song) -> list[str]:
    """Return what is known about a song besides its title, in the order in which people read it."""
    tempo = song.tempo and f"{song.tempo:.0f} beats/min"
    facts = [song.byline, song.album, song.genre, song.year and str(song.year), song.key_words, tempo]
    return [fact for fact in (*facts, clock(song.duration_s)) if fact]


def render_result(
    song: library.Song, rank: int, similarity: float | None, reason: str, *, with_files: bool = False
) -> dict[str, Any]:
    """Return a song as JSON, as the result of a search; the similarity is None for a search by words alone."""
    return render_song(song, with_files=with_files) | {"rank": rank} | render_finding(similarity, reason)


def render_finding(similarity: float | None, reason: str) -> dict[str, Any]:
    """Return the similarity of a result or of a song in a queue, and the reason why it is there, as JSON."""
    return {"similarity": None if similarity is None else round(similarity, 4), "reason": reason}


def render_steps(
    songs: Iterable[library.Song], edges: Iterable[Mapping[str, Any]], *, with_files: bool = False
) -> list[dict[str, Any]]:
    """Return the songs of a generated playlist as JSON, each with the facts of the edge that led to it."""
    return [{**render_song(song, with_files=with_files), **edge} for song, edge in zip(songs, edges, strict=True)]


def render_model(record: library.ModelRecord, report: Mapping[str, Any]) -> dict[str, Any]:
    """Return a model as JSON, without its settings, which may contain file names.

    `report` is its training report, empty for a model that was not learned. Three fields have two names, because the
    command line and the HTTP interface used to differ.
    """
    names = ("name", "kind", "is_active", "created_at", "n_songs_fitted", "n_dimensions")
    second_names = {"in_use": "is_active", "songs": "n_songs_fitted", "dimensions": "n_dimensions"}
    return render_fields(record, *names, **second_names) | {"leads": report.get("leads")}


def list_columns(snapshot: Snapshot, song_ids: Iterable[int]) -> dict[str, list[Any]]:
    """Return a table of songs, keyed by column; None is unknown. It creates no object per song, which would be slow."""
    rows = snapshot.rows_of(song_ids)
    rows = rows[rows >= 0]
    names, columns = snapshot.names_at(rows), snapshot.columns
    table: dict[str, list[Any]] = {"title": [title for title, _ in names], "artist": [by for _, by in names]}
    table |= {name: list(getattr(columns, name).texts(rows)) for name in ("genre", "key", "mode")}
    table |= {"year": [year or None for year in columns.year[rows].tolist()]}
    numbers = {name: getattr(columns, name)[rows].tolist() for name in DESCRIPTORS}
    return table | {name: [round(x, 2) if isfinite(x) else None for x in some] for name, some in numbers.items()}
