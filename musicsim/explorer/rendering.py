"""Songs, results and models as JSON, for the command line and the HTTP interface."""

from collections.abc import Mapping
from typing import Any

from musicsim.audio import HEARD
from musicsim.library import Song
from musicsim.library.stores.models import ModelRecord

_SONG_FIELDS = ("id", "title", "artist", "album", "track", "year", "genre", "duration_s", "key", "mode", *HEARD)


def render_fields(value: object, /, *names: str, **renamed: str) -> dict[str, Any]:
    """Attributes of an object by name; `renamed` maps names in JSON to other attributes."""
    return {name: getattr(value, name) for name in names} | {
        name: getattr(value, attribute) for name, attribute in renamed.items()
    }


def render_song(song: Song, *, with_files: bool = False) -> dict[str, Any]:
    """A song for machines; `with_files` adds its place on this machine and what analysis noted about its file."""
    files = {"folder": song.folder, "notes": song.notes, "path": str(song.path)} if with_files else {}
    return render_fields(song, *_SONG_FIELDS) | files


def render_result(rank: int, similarity: float | None, reason: str) -> dict[str, Any]:
    """A result without its song; the similarity is None for a search by words alone."""
    return {"rank": rank, "similarity": None if similarity is None else round(similarity, 4), "reason": reason}


def render_model(record: ModelRecord, report: Mapping[str, Any]) -> dict[str, Any]:
    """A model for machines, without its settings, which may name files.

    `report` is that of its training, empty for a model that was not learned. Three fields have two names, because the
    command line and the HTTP interface used different ones.
    """
    names = ("name", "kind", "is_active", "created_at", "n_songs_fitted", "n_dimensions")
    second_names = {"in_use": "is_active", "songs": "n_songs_fitted", "dimensions": "n_dimensions"}
    return render_fields(record, *names, **second_names) | {"leads": report.get("leads")}
