"""A box that finds while one types: songs and artists of a library, or names of a list, however many there are."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

import streamlit as st

from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.ui.base.asset import asset
from musicsim.ui.base.text import shown

__all__ = ["Match", "find_names", "find_song", "name_matches", "song_matches"]

_MOST = 20
_MAX_TEXT = 200
_MAX_CHOSEN = 100
_FEW = 300  # names up to which a list of all of them is sent to the browser

MatchKind = Literal["artist", "song", "name"]


@dataclass(frozen=True, slots=True)
class Match:
    """One line of what was found.

    Attributes
    ----------
    kind : {"artist", "song", "name"}
    value : str
        The name as it is shown, or the song's id.
    title, sub : str
        What stands there; `sub` more quietly.
    """

    kind: MatchKind
    value: str
    title: str
    sub: str = ""


def song_matches(snapshot: Snapshot, text: str, *, with_artists: bool = True) -> list[Match]:
    """Artists and songs whose names hold a text, at most twenty."""
    found = snapshot.find(text, _MOST)
    artists = [
        Match("artist", shown(name), shown(name), f"artist, {n:,} {'song' if n == 1 else 'songs'}")
        for name, n in found.artists
    ]
    songs = [Match("song", str(song.id), shown(song.title), shown(song.by)) for song in found.songs]
    return [*artists, *songs] if with_artists else songs


def name_matches(names: Sequence[str], text: str) -> list[Match]:
    """Names that hold a text in any case, at most twenty, those that begin with it first."""
    wanted = text.casefold()
    found = [name for name in names if wanted in name.casefold()]
    found.sort(key=lambda name: (not name.casefold().startswith(wanted), name))
    return [Match("name", shown(name), shown(name)) for name in found[:_MOST]]


@st.fragment
def find_song(
    label: str,
    *,
    key: str,
    search: Callable[[str], Sequence[Match]],
    on_pick: Callable[[MatchKind, str], None],
    is_labelled: bool = True,
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
        Called as a widget's callback; the page runs anew after it. The value comes from the browser: it may be
        anything, or have left the library.
    """

    def picked() -> None:
        sent = st.session_state[key].get("picked")
        if isinstance(sent, dict) and sent.get("kind") in get_args(MatchKind):
            on_pick(sent["kind"], str(sent.get("value")))
            st.rerun()

    _box(
        key, _found(key, search), label=label, is_labelled=is_labelled,
        placeholder="Search for a title or an artist",
        nothing="No matching song or artist.", on_picked_change=picked,
    )  # fmt: skip


def find_names(label: str, names: Sequence[str], *, key: str, help: str) -> list[str]:
    """A choice of some names out of few or of very many: a list of all, or a box that finds them.

    Parameters
    ----------
    label : str
        What they are, in the plural.
    key : str
        Unique on the page.

    Returns
    -------
    list of str
        The chosen ones, in the order in which they were.
    """
    if len(names) <= _FEW:
        return st.multiselect(label, sorted(names), key=key, help=help, format_func=shown)
    _find_names(label, names, key=key)
    st.caption(help)
    sent = st.session_state.get(key, {}).get("chosen")
    if not isinstance(sent, list) or not sent:
        return []
    known = {shown(name): name for name in names}
    return [known[name] for name in sent[:_MAX_CHOSEN] if isinstance(name, str) and name in known]


@st.fragment
def _find_names(label: str, names: Sequence[str], *, key: str) -> None:
    _box(
        key, _found(key, lambda text: name_matches(names, text)), label=label, is_labelled=True,
        placeholder=f"Type to search {len(names):,} entries", nothing="No match.",
        on_chosen_change=st.rerun,
    )  # fmt: skip


def _found(key: str, search: Callable[[str], Sequence[Match]]) -> list[Match]:
    """What is found for the text that the browser holds."""
    sent = st.session_state.get(key, {}).get("text")
    text = " ".join(sent[:_MAX_TEXT].split()) if isinstance(sent, str) else ""
    return list(search(text)) if text else []


def _box(key: str, matches: Sequence[Match], *, on_chosen_change: Any = None, **options: Any) -> None:
    callbacks = {
        "on_picked_change": options.pop("on_picked_change", None),
        "on_chosen_change": on_chosen_change,
    }
    component = st.components.v2.component(
        "musicsim_finder", css=asset("song_finder.css"), js=asset("song_finder.js"), isolate_styles=False
    )
    component(
        key=key,
        data={
            **options,
            "takes_many": on_chosen_change is not None,
            # which text was searched for: the browser may have gone on
            "text": st.session_state.get(key, {}).get("text") or "",
            "matches": [asdict(match) for match in matches],
        },
        height="content",
        on_text_change=lambda: None,
        **{name: callback for name, callback in callbacks.items() if callback is not None},
    )
