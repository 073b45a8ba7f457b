"""A box that searches as the user types, for songs, artists, albums, words, or names from a list."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, get_args

import streamlit as st

from musicsim.explorer.search.matches import (
    FEW,
    ONLY_SONGS,
    Match,
    MatchKind,
    name_match,
    name_matches,
    song_match,
    song_matches,
    trim_text,
)
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.ui.base.keys import Key, read_event
from musicsim.ui.base.scripts import component
from musicsim.wording import clean

_MAX_CHOSEN = 100


@st.fragment
def find_song(
    label: str, *, key: str, search: Callable[[str], Sequence[Match]], on_pick: Callable[[MatchKind, str], None],
    is_labelled: bool = True, placeholder: str = "Title, artist, album, or words: slow piano 1960s",
    suggest: Callable[[], Sequence[str]] = tuple,
) -> None:  # fmt: skip
    """Show a search box with the matches of `search` below it; `key` must be unique on the page.

    If nothing matches, the box lists the words from `suggest`. This is a fragment: typing does not rerun other parts of
    the page. A choice calls `on_pick` with the kind and the value of a match, then reruns the page. The value comes
    from the browser, so it may be invalid or no longer exist.
    """

    def pick() -> None:
        match = _parse_match(key)
        if match is not None:
            on_pick(*match)
            st.rerun()

    _box(
        key, search, label=label, is_labelled=is_labelled, placeholder=placeholder, suggest=suggest,
        on_picked_change=pick,
    )  # fmt: skip


def find_songs(
    snapshot: Snapshot, label: str, *, key: str, chosen: Sequence[int], on_change: Callable[[list[int]], None],
    help: str = "", placeholder: str = "Search for a title", most: int = _MAX_CHOSEN,
) -> None:  # fmt: skip
    """Let the user choose songs of the library; `key` must be unique on the page, and `chosen` contains ids.

    A change calls `on_change` with the new ids, then reruns the page. Above `most` songs, the first is dropped.
    """

    def id_of(value: str) -> int | None:
        songs = snapshot.songs_by_id([int(value)]) if value.isascii() and value.isdigit() else []
        return songs[0].id if songs else None

    _find_many(
        label, key=key, help=help, placeholder=placeholder,
        chosen=[(song.id, song_match(song)) for song in snapshot.songs_by_id(chosen)],
        search=partial(song_matches, snapshot, kinds=ONLY_SONGS), parse=id_of, most=most, on_change=on_change,
    )  # fmt: skip


def drop_unknown(key: Key[list[str]], names: Sequence[str]) -> None:
    """Remove names that no longer exist from a choice."""
    chosen = key.get()
    if chosen and not (existing := set(names)).issuperset(chosen):
        key.set([name for name in chosen if name in existing])


def find_names(
    label: str, names: Sequence[str], *, key: Key[list[str]], help: str, placeholder: str = "Choose options"
) -> list[str]:
    """Let the user choose names, and return the chosen names; with many names, the user types to search."""
    drop_unknown(key, names)
    if len(names) <= FEW:
        st.multiselect(label, sorted(names), **key.widget(), help=help, format_func=clean, placeholder=placeholder)
    else:
        _find_many(
            label, key=f"{key.name}_finder", help=help, placeholder=f"Type to search {len(names):,} entries",
            chosen=[(name, name_match(name)) for name in key.get()], search=partial(name_matches, names),
            parse=lambda value: next((name for name in names if clean(name) == value), None),
            most=_MAX_CHOSEN, on_change=key.set,
        )  # fmt: skip
    return key.get()


@st.fragment
def _find_many(
    label: str, *, key: str, chosen: Sequence[tuple[Any, Match]], search: Callable[[str], Sequence[Match]],
    parse: Callable[[str], Any], on_change: Callable[[list[Any]], None], most: int, help: str, placeholder: str,
) -> None:  # fmt: skip
    """Show a box with the chosen values below it; `parse` turns text from the browser into a value or None."""

    def pick() -> None:
        match = _parse_match(key)
        value = parse(match[1]) if match else None
        if value is not None:
            on_change([*(other for other, _ in chosen if other != value), value][-most:])
            st.rerun()

    def drop() -> None:
        sent = read_event(key, "dropped")
        on_change([value for value, match in chosen if match.value != sent])
        st.rerun()

    _box(
        key, search, [match for _, match in chosen], label=label, is_labelled=True, help=help,
        placeholder=placeholder, on_picked_change=pick, on_dropped_change=drop,
    )  # fmt: skip


def _parse_match(key: str) -> tuple[MatchKind, str] | None:
    sent = read_event(key, "picked")
    if isinstance(sent, dict) and sent.get("kind") in get_args(MatchKind):
        return sent["kind"], str(sent.get("value"))
    return None


def _box(
    key: str, search: Callable[[str], Sequence[Match]], chosen: Sequence[Match] = (), *, label: str,
    is_labelled: bool, placeholder: str, help: str = "", suggest: Callable[[], Sequence[str]] = tuple, **callbacks: Any,
) -> None:  # fmt: skip
    sent = read_event(key, "text")
    text = trim_text(sent) if isinstance(sent, str) else ""
    matches = search(text) if text else ()
    known = suggest() if text and not matches else ()
    component("song_finder", isolate_styles=False)(
        key=key, height="content", on_text_change=lambda: None, **callbacks,
        data={
            "label": label, "is_labelled": is_labelled, "help": help, "placeholder": placeholder,
            "nothing": f"Nothing matches. Words to try: {', '.join(known)}." if known else "Nothing matches.",
            "chosen": [asdict(match) for match in chosen],
            "text": sent or "",  # the text that was searched for; the user may have typed more since then
            "matches": [asdict(match) for match in matches],
        },
    )  # fmt: skip
