"""A box that searches as the user types, for songs, artists, albums, words, or names from a list.

The browser searches; the page runs again only after a choice.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, get_args

import streamlit as st

from musicsim.explorer import SearchRequest, Snapshot, options_of
from musicsim.explorer.search.matches import FEW, ONLY_SONGS, MatchKind, TextMatch, name_match, song_match
from musicsim.library import Library
from musicsim.ui.base import Key, component
from musicsim.ui.base.keys import read_event
from musicsim.ui.base.openers import active_library
from musicsim.wording import clean

_MAX_CHOSEN = 100


def find_song(
    library: Library, label: str, *, key: str, kinds: Sequence[MatchKind], on_pick: Callable[[MatchKind, str], None],
    placeholder: str = "",
) -> None:  # fmt: skip
    """Show a search box for artists, albums, songs or words of a library; `key` must be unique on the page.

    A choice calls `on_pick` as a widget's callback, with the kind and the value of a match. The value comes from the
    browser, so it may not exist or no longer exist.
    """

    def pick() -> None:
        match = _parse_match(key)
        if match is not None and match[0] in kinds:
            on_pick(*match)

    _box(key, _songs_of(library, kinds), label=label, placeholder=placeholder, on_picked_change=pick)


def find_entry(
    label: str, entries: Sequence[TextMatch], *, key: str, on_pick: Callable[[str], None], placeholder: str = ""
) -> None:
    """Show a box that searches the titles of entries; a choice calls `on_pick` with the value of one."""
    values = {entry.value for entry in entries}

    def pick() -> None:
        match = _parse_match(key)
        if match is not None and match[1] in values:
            on_pick(match[1])

    _box(key, _entries_of(entries), label=label, placeholder=placeholder, on_picked_change=pick)


def find_songs(
    snapshot: Snapshot, label: str, *, key: str, chosen: Sequence[int], on_change: Callable[[list[int]], None],
    help: str = "", placeholder: str = "Search for a title", most: int = _MAX_CHOSEN,
) -> None:  # fmt: skip
    """Let the user choose songs of the library; `key` must be unique on the page, and `chosen` contains ids.

    A change calls `on_change` with the new ids. Above `most` songs, the first is dropped.
    """

    def id_of(value: str) -> int | None:
        songs = snapshot.songs_by_id([int(value)]) if _is_id(value) else []
        return songs[0].id if songs else None

    _find_many(
        label, key=key, help=help, placeholder=placeholder, source=_songs_of(snapshot.library, ONLY_SONGS),
        chosen=[(song.id, song_match(song)) for song in snapshot.songs_by_id(chosen)],
        parse=id_of, most=most, on_change=on_change,
    )  # fmt: skip


def find_first_song(snapshot: Snapshot, label: str, first: Key[int | None], *, key: str) -> int | None:
    """Show a search box for the first song of a playlist; return its id, or None for a random song each time."""
    song_id = first.get()
    if song_id is not None and snapshot.rows_of([song_id])[0] < 0:  # it was deleted, or is in another library
        first.set(song_id := None)
    find_songs(
        snapshot, label, key=key, chosen=[] if song_id is None else [song_id], placeholder="random each time", most=1,
        on_change=lambda ids: first.set(next(iter(ids), None)),
    )  # fmt: skip
    return song_id


def drop_unknown(key: Key[list[str]], names: Sequence[str]) -> None:
    """Remove names that no longer exist from a choice."""
    chosen = key.get()
    if chosen and not (existing := set(names)).issuperset(chosen):
        key.set([name for name in chosen if name in existing])


def find_names(
    label: str, names: Sequence[str], *, key: Key[list[str]], help: str, placeholder: str = "Choose options",
    field: str = "",
) -> list[str]:  # fmt: skip
    """Let the user choose names, and return the chosen names; with many names, the user types to search.

    If the names are those of a `field` of a search request, the browser asks for matches and does not get all names.
    """
    drop_unknown(key, names)
    if len(names) <= FEW:
        st.multiselect(label, sorted(names), **key.widget(), help=help, format_func=clean, placeholder=placeholder)
    else:
        option = {"option": options_of(SearchRequest)[field].name, "library": active_library().name} if field else {}
        _find_many(
            label, key=f"{key.name}_finder", help=help, placeholder=f"Type to search {len(names):,} entries",
            source=option or _entries_of([name_match(name) for name in sorted(names)]),
            chosen=[(name, name_match(name)) for name in key.get()],
            parse=lambda value: next((name for name in names if clean(name) == value), None),
            most=_MAX_CHOSEN, on_change=key.set,
        )  # fmt: skip
    return key.get()


def _find_many(
    label: str, *, key: str, source: dict[str, Any], chosen: Sequence[tuple[Any, TextMatch]],
    parse: Callable[[str], Any], on_change: Callable[[list[Any]], None], most: int, help: str, placeholder: str,
) -> None:  # fmt: skip
    """Show a box with the chosen values below it; `parse` turns text from the browser into a value or None."""

    def pick() -> None:
        match = _parse_match(key)
        value = parse(match[1]) if match else None
        if value is not None:
            on_change([*(other for other, _ in chosen if other != value), value][-most:])

    def drop() -> None:
        sent = read_event(key, "dropped")
        on_change([value for value, match in chosen if match.value != sent])

    _box(
        key, source, [match for _, match in chosen], label=label, help=help, placeholder=placeholder,
        on_picked_change=pick, on_dropped_change=drop,
    )  # fmt: skip


def _parse_match(key: str) -> tuple[MatchKind, str] | None:
    sent = read_event(key, "picked")
    if not isinstance(sent, dict) or sent.get("kind") not in get_args(MatchKind):
        return None
    kind, value = sent["kind"], str(sent.get("value"))
    return (kind, value) if kind != "song" or _is_id(value) else None


def _is_id(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 19


def _songs_of(library: Library, kinds: Sequence[MatchKind]) -> dict[str, Any]:
    return {"kinds": list(kinds), "library": library.name}


def _entries_of(entries: Sequence[TextMatch]) -> dict[str, Any]:
    return {"entries": [asdict(entry) for entry in entries]}


def _box(
    key: str, source: dict[str, Any], chosen: Sequence[TextMatch] = (), *, label: str, placeholder: str, help: str = "",
    **callbacks: Callable[[], None],
) -> None:  # fmt: skip
    """Show the box; `source` says where the browser searches."""
    words = {"label": label, "help": help, "placeholder": placeholder, "chosen": [asdict(match) for match in chosen]}
    component("web/find/component.js", isolate_styles=False)(
        key=key, height="content", data=words | source, **callbacks
    )
