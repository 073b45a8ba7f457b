"""A box that finds while one types: songs, artists, albums, what words mean, or names of a list, however many."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
import streamlit as st

from musicsim._arrays import Int64Array
from musicsim.explorer.requests.search import SearchRequest
from musicsim.explorer.search.requested import rows_fitting
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.explorer.snapshot.words import understood
from musicsim.library import Song
from musicsim.ui.base.asset import asset
from musicsim.ui.base.keys import Key
from musicsim.ui.base.text import shown

_MOST = 20
_MAX_TEXT = 200
_MAX_CHOSEN = 100
_FEW = 200  # names up to which a list of all of them is sent to the browser

MatchKind = Literal["artist", "album", "song", "words", "name"]


@dataclass(frozen=True, slots=True)
class Match:
    """One line of what was found."""

    kind: MatchKind
    # the name as it is shown, the song's id, an album's artist and name in two lines, or words that are
    # understood
    value: str
    # what stands there; `sub` more quietly
    title: str
    sub: str = ""


_KINDS: tuple[MatchKind, ...] = ("artist", "album", "song", "words")
_ONLY_SONGS: tuple[MatchKind, ...] = ("song",)


def song_matches(snapshot: Snapshot, text: str, *, kinds: Collection[MatchKind] = _KINDS) -> list[Match]:
    """Artists, albums and songs whose names hold a text, at most twenty, and what it means as words."""
    found = snapshot.find(text, _MOST)
    matches = [Match("artist", shown(name), shown(name), f"artist, {_songs(n)}") for name, n in found.artists]
    matches += [
        Match(
            "album", shown(f"{by}\n{name}"), shown(name), " · ".join(["album", *filter(None, [shown(by)]), _songs(n)])
        )
        for name, by, n in found.albums
    ]
    matches += [_song_match(song) for song in found.songs]
    matches = [match for match in matches if match.kind in kinds]
    return [*matches, *(_meaning(snapshot, text, matches) if "words" in kinds else ())]


def _songs(n: int) -> str:
    return f"{n:,} {'song' if n == 1 else 'songs'}"


def _meaning(snapshot: Snapshot, text: str, named: Sequence[Match]) -> list[Match]:
    """What a text means as words; where some of it means nothing, only if no name holds it either."""
    said = understood(snapshot, text)
    if not said.parts or (named and (said.unknown or all(part.filters.artists for part in said.parts))):
        return []
    sub = "songs that fit these words"
    if said.unknown:
        sub += f"; nothing is known by {', '.join(said.unknown)}"
    return [Match("words", shown(said.known), shown(" · ".join(part.words for part in said.parts)), shown(sub))]


def ids_of_match(snapshot: Snapshot, kind: MatchKind, value: str) -> Int64Array:
    """Ids of the songs that a match is about, int64; of words those first that fit most."""
    if kind == "artist":
        return snapshot.row_ids[snapshot.songs_of_artist(value)]
    if kind == "words":
        return snapshot.row_ids[rows_fitting(snapshot, SearchRequest(words=understood(snapshot, value).known))]
    by, _, name = value.partition("\n")
    ids = snapshot.library.songs_of_album(name, by) if kind == "album" else [int(value)]
    return np.array([song.id for song in snapshot.songs_by_id(ids)], dtype=np.int64)


def name_matches(names: Sequence[str], text: str) -> list[Match]:
    """Names that hold a text in any case, at most twenty, those that begin with it first."""
    wanted = text.casefold()
    found = [name for name in names if wanted in name.casefold()]
    found.sort(key=lambda name: (not name.casefold().startswith(wanted), name))
    return [_name_match(name) for name in found[:_MOST]]


def _song_match(song: Song) -> Match:
    return Match("song", str(song.id), shown(song.title), shown(song.by))


def _name_match(name: str) -> Match:
    return Match("name", shown(name), shown(name))


@st.fragment
def find_song(
    label: str,
    *,
    key: str,
    search: Callable[[str], Sequence[Match]],
    on_pick: Callable[[MatchKind, str], None],
    is_labelled: bool = True,
    placeholder: str = "Title, artist, album, or words: slow piano 1960s",
) -> None:
    """Show a box to type into, with what is found below it while one types.

    A fragment: typing runs nothing else, a choice runs the page.

    Parameters
    ----------
    label : str
        For readers of screens, and above the box where it `is_labelled`.
    key : str
        Unique on the page.
    search : callable of the text
        Gives what is found, best first.
    on_pick : callable of the kind and the value of a match
        Called as a widget's callback; the page runs again after it. The value comes from the browser: it may be
        anything, or have left the library.
    """

    def picked() -> None:
        match = _picked(key)
        if match is not None:
            on_pick(*match)
            st.rerun()

    _box(
        key, _found(key, search), label=label, is_labelled=is_labelled,
        placeholder=placeholder, nothing="Nothing matches.", on_picked_change=picked,
    )  # fmt: skip


def find_songs(
    now: Snapshot, label: str, *, key: str, chosen: Sequence[int], on_change: Callable[[list[int]], None],
    help: str = "", placeholder: str = "Search for a title", most: int = _MAX_CHOSEN,
) -> None:  # fmt: skip
    """A choice of some songs of the library.

    Parameters
    ----------
    key : str
        Unique on the page.
    chosen : sequence of int
        Ids of the songs that are chosen.
    on_change : callable of the ids
        Called as a widget's callback; the page runs again after it.
    most : int
        So many at most; the last ones chosen stay.
    """

    def known(value: str) -> int | None:
        found = now.songs_by_id([int(value)]) if value.isascii() and value.isdigit() else []
        return found[0].id if found else None

    _find_many(
        label, key=key, help=help, placeholder=placeholder,
        chosen=[(song.id, _song_match(song)) for song in now.songs_by_id(chosen)],
        search=partial(song_matches, now, kinds=_ONLY_SONGS), known=known, most=most, on_change=on_change,
    )  # fmt: skip


def drop_unknown(key: Key[list[str]], names: Sequence[str]) -> None:
    """Take out of a choice of names those that are none any more."""
    chosen = key.get()
    if chosen:
        known = set(names)
        if any(name not in known for name in chosen):
            key.set([name for name in chosen if name in known])


def find_names(
    label: str, names: Sequence[str], *, key: Key[list[str]], help: str, placeholder: str = "Choose options"
) -> list[str]:
    """A choice of some names out of few or of very many: a list of all, or a box that finds them.

    Parameters
    ----------
    label : str
        What they are, in the plural.
    key : Key
        Of the chosen ones, in the order in which they were.

    Returns
    -------
    list of str
        Those that are chosen and among the names.
    """
    drop_unknown(key, names)
    if len(names) <= _FEW:
        st.multiselect(
            label, sorted(names), key=key.name, persist_state="session", help=help, format_func=shown,
            placeholder=placeholder,
        )  # fmt: skip
        return key.get()

    _find_many(
        label, key=f"{key.name}_finder", help=help, placeholder=f"Type to search {len(names):,} entries",
        chosen=[(name, _name_match(name)) for name in key.get()], search=partial(name_matches, names),
        known=lambda value: next((name for name in names if shown(name) == value), None),
        most=_MAX_CHOSEN, on_change=key.set,
    )  # fmt: skip
    return key.get()


@st.fragment
def _find_many(
    label: str, *, key: str, chosen: Sequence[tuple[Any, Match]], search: Callable[[str], Sequence[Match]],
    known: Callable[[str], Any], on_change: Callable[[list[Any]], None], most: int, help: str, placeholder: str,
) -> None:  # fmt: skip
    """A box with what was chosen below it; `known` gives what a value of the browser stands for, None for nothing."""

    def picked() -> None:
        match = _picked(key)
        value = known(match[1]) if match else None
        if value is not None:
            on_change([*(before for before, _ in chosen if before != value), value][-most:])
            st.rerun()

    def dropped() -> None:
        sent = st.session_state[key].get("dropped")
        on_change([value for value, match in chosen if match.value != sent])
        st.rerun()

    _box(
        key, _found(key, search), [match for _, match in chosen], label=label, is_labelled=True, help=help,
        placeholder=placeholder, nothing="Nothing matches.", on_picked_change=picked, on_dropped_change=dropped,
    )  # fmt: skip


def _picked(key: str) -> tuple[MatchKind, str] | None:
    """What was taken, as the browser wrote it; None when it is no match."""
    sent = st.session_state[key].get("picked")
    if isinstance(sent, dict) and sent.get("kind") in get_args(MatchKind):
        return sent["kind"], str(sent.get("value"))
    return None


def _found(key: str, search: Callable[[str], Sequence[Match]]) -> list[Match]:
    """What is found for the text that the browser holds."""
    sent = st.session_state.get(key, {}).get("text")
    text = " ".join(sent[:_MAX_TEXT].split()) if isinstance(sent, str) else ""
    return list(search(text)) if text else []


def _box(
    key: str, matches: Sequence[Match], chosen: Sequence[Match] = (), *, help: str = "",
    label: str, is_labelled: bool, placeholder: str, nothing: str, **callbacks: Any,
) -> None:  # fmt: skip
    component = st.components.v2.component(
        "musicsim_finder", css=asset("song_finder.css"), js=asset("song_finder.js"), isolate_styles=False
    )
    component(
        key=key,
        data={
            "label": label,
            "is_labelled": is_labelled,
            "help": help,
            "placeholder": placeholder,
            "nothing": nothing,
            "chosen": [asdict(match) for match in chosen],
            # which text was searched for: the browser may have gone on
            "text": st.session_state.get(key, {}).get("text") or "",
            "matches": [asdict(match) for match in matches],
        },
        height="content",
        on_text_change=lambda: None,
        **callbacks,
    )
