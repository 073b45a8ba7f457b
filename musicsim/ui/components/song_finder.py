"""A box that searches as the user types, for songs, artists, albums, words, or names from a list."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
import streamlit as st

from musicsim._arrays import Int64Array
from musicsim.explorer.requests.search import SearchRequest
from musicsim.explorer.search.requested import find_matching_rows
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.explorer.snapshot.words import Words, parse_sound, parse_words
from musicsim.library import Song
from musicsim.ui.base.frame import component
from musicsim.ui.base.keys import Key, read_event
from musicsim.ui.base.text import clean
from musicsim.wording import count

_MAX_MATCHES = 20
_MAX_TEXT = 200
_MAX_CHOSEN = 100
FEW = 200  # maximum number of names for which the browser receives the whole list

MatchKind = Literal["artist", "album", "song", "words", "name"]


@dataclass(frozen=True, slots=True)
class Match:
    """A match below the box: `title`, followed by `sub` in gray."""

    kind: MatchKind
    value: str  # a name; a song id; an album's artist and name on two lines; or words
    title: str
    sub: str = ""


_KINDS: tuple[MatchKind, ...] = ("artist", "album", "song", "words")
ONLY_SONGS: tuple[MatchKind, ...] = ("song",)


def song_matches(snapshot: Snapshot, text: str, *, kinds: Collection[MatchKind] = _KINDS) -> list[Match]:
    """Return at most twenty artists, albums and songs whose names contain `text`, and a match for `text` as words."""
    results = snapshot.find(text, _MAX_MATCHES)
    matches = [Match("artist", clean(name), clean(name), f"artist, {count(n, 'song')}") for name, n in results.artists]
    for name, by, n in results.albums:
        sub = " · ".join(["album", *filter(None, [clean(by)]), count(n, "song")])
        matches.append(Match("album", clean(f"{by}\n{name}"), clean(name), sub))
    matches += [_song_match(song) for song in results.songs]
    matches = [match for match in matches if match.kind in kinds]
    return matches + _word_matches(snapshot, text, matches) if "words" in kinds else matches


def _word_matches(snapshot: Snapshot, text: str, names: Sequence[Match]) -> list[Match]:
    """Return a match if `text` is understood as words, and one by sound if an extension ranks songs by texts.

    If names also match, all of the text must be understood.
    """
    words, sound = parse_words(snapshot, text), parse_sound(snapshot, text)
    by_sound = [] if sound is None else [_words_match(sound, "songs ranked by sound")]
    is_name = bool(names) and (words.unknown or all(part.filters.artists for part in words.parts))
    if not words.parts or is_name or words == sound:
        return by_sound
    sub = "songs that match these words"
    if words.unknown:
        sub += f"; not understood: {', '.join(words.unknown)}"
    return [_words_match(words, sub), *by_sound]


def _words_match(words: Words, sub: str) -> Match:
    return Match("words", clean(words.known), clean(" · ".join(part.words for part in words.parts)), clean(sub))


def ids_of_match(snapshot: Snapshot, kind: MatchKind, value: str) -> Int64Array:
    """Return the ids of a match's songs, int64; for words, best matches first."""
    if kind == "artist":
        return snapshot.row_ids[snapshot.columns.artist.is_in([value])]
    if kind == "words":
        return snapshot.row_ids[find_matching_rows(snapshot, SearchRequest(words=parse_words(snapshot, value).known))]
    by, _, name = value.partition("\n")
    ids = snapshot.library.songs_of_album(name, by) if kind == "album" else [int(value)]
    return np.array([song.id for song in snapshot.songs_by_id(ids)], dtype=np.int64)


def name_matches(names: Sequence[str], text: str) -> list[Match]:
    """Return at most twenty names that contain `text`, ignoring case; names that begin with it come first."""
    text = text.casefold()
    matching = [name for name in names if text in name.casefold()]
    matching.sort(key=lambda name: (not name.casefold().startswith(text), name))
    return [_name_match(name) for name in matching[:_MAX_MATCHES]]


def _song_match(song: Song) -> Match:
    return Match("song", str(song.id), clean(song.title), clean(song.byline))


def _name_match(name: str) -> Match:
    return Match("name", clean(name), clean(name))


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
        chosen=[(song.id, _song_match(song)) for song in snapshot.songs_by_id(chosen)],
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
            chosen=[(name, _name_match(name)) for name in key.get()], search=partial(name_matches, names),
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
    text = " ".join(sent[:_MAX_TEXT].split()) if isinstance(sent, str) else ""
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
