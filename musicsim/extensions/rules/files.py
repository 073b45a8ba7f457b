"""Rules as files: the project's own JSON, and Navidrome's smart playlists (``.nsp``).

A JSON file identifies the songs of the condition `similar` by the hash of their sound, because ids differ between
libraries. For the format of smart playlists, see https://github.com/navidrome/navidrome/issues/1417.
"""

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from musicsim.errors import LibraryError
from musicsim.explorer import QUERY_FIELDS, FieldCondition, Snapshot
from musicsim.extensions.rules.finding import find_songs
from musicsim.extensions.rules.rule import Rule, make_rule
from musicsim.extensions.rules.store import RuleStore, SavedRule
from musicsim.library import PLAYLIST_FORMATS, Library, atomic_path, find_ending

ENDINGS = ("json", "nsp", *PLAYLIST_FORMATS)
_MAX_BYTES = 1 << 20
_NAVIDROME = {
    "tempo": "bpm", "year": "year", "minutes": "duration", "rating": "rating", "plays": "playCount",
    "played": "lastPlayed", "added": "dateAdded",
    **{name: name for name in ("artist", "album", "title", "genre")},
}  # fmt: skip
_SECONDS = {"minutes": 60.0}  # factors of fields that Navidrome stores in seconds
_OPERATORS = {">": "gt", "<": "lt", "=": "is", "between": "inTheRange"}
_NAMED = {"is": "is", "is not": "isNot", "contains": "contains", "does not contain": "notContains"}
_DAYS = {"in the last": "inTheLast", "not in the last": "notInTheLast"}
_EVERY_SONG = {"gt": {"playCount": -1}}  # Navidrome requires a condition


def export_rule(snapshot: Snapshot, saved: SavedRule, target: Path) -> int | None:
    """Write a rule to a file in the format of its extension; return the number of songs in a playlist file."""
    content, n_songs = render_rule(snapshot, saved.name, saved.rule, find_ending(target, ENDINGS))
    with atomic_path(target) as temporary:
        temporary.write_bytes(content)
    return n_songs


def render_rule(snapshot: Snapshot, name: str, rule: Rule, ending: str) -> tuple[bytes, int | None]:
    """Return the content of a file, and the number of songs in a playlist file; may raise LibraryError."""
    if ending in PLAYLIST_FORMATS:
        songs = snapshot.songs_at(find_songs(snapshot, rule).rows)
        return PLAYLIST_FORMATS[ending](name, songs), len(songs)
    document = (
        as_navidrome(name, rule)
        if ending == "nsp"
        else _replace_songs({"name": name, **rule.model_dump(mode="json")}, snapshot.library.sound_hash)
    )
    return json.dumps(document, ensure_ascii=False, indent=2).encode("utf-8", "replace"), None


def import_rule(library: Library, source: Path) -> SavedRule:
    """Save the rule in a JSON file, replacing one with the same name; raises LibraryError if it is not valid."""
    try:
        with source.open("rb") as stream:
            content = stream.read(_MAX_BYTES + 1)
        if len(content) > _MAX_BYTES:
            raise LibraryError(f"{source} is larger than 1 MB, so it is not a rule. Choose a different file.")
        document = json.loads(content)
        name = document.pop("name")
        return RuleStore(library).save(name, make_rule(**_replace_songs(document, lambda h: _find_sound(library, h))))
    except OSError as error:
        raise LibraryError(f"{source} cannot be read ({error.strerror}). Check the path.") from error
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise LibraryError(f"{source} is not a rule that `musicsim rules export` wrote: {error}") from error


def _find_sound(library: Library, sound_hash: str) -> int:
    song_id = library.song_with_sound("", sound_hash)
    if song_id is None:
        raise ValueError("a song that the rule compares with is not in this library.")
    return song_id


def _replace_songs(document: Mapping[str, Any], convert: Callable[[Any], Any]) -> dict[str, Any]:
    """Return a document in which each song of its conditions is converted."""
    groups = [
        {
            **group,
            "conditions": [{**one, "songs": [*map(convert, one.get("songs", ()))]} for one in group["conditions"]],
        }
        for group in document["groups"]
    ]
    return {**document, "groups": groups}


def as_navidrome(name: str, rule: Rule) -> dict[str, Any]:
    """Return a rule as a smart playlist; raises LibraryError that names conditions that Navidrome does not have."""
    foreign = [str(one) for one in rule.conditions if one.field not in _NAVIDROME and not _is_loved(one)]
    foreign += [f"order {rule.order}"] if rule.order not in ("random", *_NAVIDROME) else []
    foreign += ["the limit in minutes"] if rule.minutes is not None else []
    if foreign:
        raise LibraryError(
            f"Navidrome does not have: {'; '.join(foreign)}. Export the songs as .m3u8, or send them to the server."
        )
    groups = [(one.match, [*map(_navidrome_condition, one.conditions)]) for one in rule.groups if one.conditions]
    match, parts = groups[0] if len(groups) == 1 else (rule.match, [{match: parts} for match, parts in groups])
    return {
        "name": name, "comment": f"musicsim: {rule}", match: parts or [_EVERY_SONG],
        "sort": _NAVIDROME.get(rule.order, "random"), "order": "desc" if rule.descending else "asc",
        "limit": rule.songs,
    }  # fmt: skip


def _is_loved(condition: FieldCondition) -> bool:
    return condition.field == "tag" and condition.value == ("loved",)


def _navidrome_condition(condition: FieldCondition) -> dict[str, Any]:
    comparison = condition.comparison
    if _is_loved(condition):
        return {"is": {"loved": not condition.is_negative}}
    field, kind = _NAVIDROME[condition.field], QUERY_FIELDS[condition.field]
    if kind == "names":
        parts = [{_NAMED[comparison]: {field: name}} for name in condition.value]
        return parts[0] if len(parts) == 1 else {"all" if condition.is_negative else "any": parts}
    if kind == "days":
        return {_DAYS[comparison]: {field: math.ceil(float(condition.value[0]))}}
    numbers = [_whole(float(value) * _SECONDS.get(condition.field, 1.0)) for value in condition.value]
    if comparison in (">=", "<="):
        return {"any": [{_OPERATORS[comparison[0]]: {field: numbers[0]}}, {"is": {field: numbers[0]}}]}
    return {_OPERATORS[comparison]: {field: numbers if comparison == "between" else numbers[0]}}


def _whole(number: float) -> float | int:
    return int(number) if number.is_integer() else number
