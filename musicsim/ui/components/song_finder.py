"""A box that finds while one types: songs, artists, albums, what words mean, or names of a list, however many."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import streamlit as st

from musicsim.explorer.requests.search import SearchRequest
from musicsim.explorer.search.requested import rows_fitting
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.explorer.snapshot.words import understood
from musicsim.ui.base.asset import asset
from musicsim.ui.base.text import shown

__all__ = ["Match", "MatchKind", "find_names", "find_song", "ids_of_match", "name_matches", "song_matches"]

_MOST = 20
_MAX_TEXT = 200
_MAX_CHOSEN = 100
_FEW = 300  # names up to which a list of all of them is sent to the browser

MatchKind = Literal["artist", "album", "song", "words", "name"]


@dataclass(frozen=True, slots=True)
class Match:
    """One line of what was found.

    Attributes
    ----------
    kind : {"artist", "album", "song", "words", "name"}
    value : str
        The name as it is shown, the song's id, an album's artist and name in two lines, or words that are understood.
    title, sub : str
        What stands there; `sub` more quietly.
    """

    kind: MatchKind
    value: str
    title: str
    sub: str = ""


_KINDS: tuple[MatchKind, ...] = ("artist", "album", "song", "words")


def song_matches(snapshot: Snapshot, text: str, *, kinds: Collection[MatchKind] = _KINDS) -> list[Match]:
    """Artists, albums and songs whose names hold a text, at most twenty, and what it means as words."""
    found = snapshot.find(text, _MOST)
    matches = [Match("artist", shown(name), shown(name), f"artist, {_songs(n)}") for name, n in found.artists]
    matches += [
        Match(
            "album",
            shown(f"{by}\n{name}"),
            shown(name),
            " · ".join(["album", *filter(None, [shown(by)]), _songs(n)]),
        )
        for name, by, n in found.albums
    ]
    matches += [Match("song", str(song.id), shown(song.title), shown(song.by)) for song in found.songs]
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
    return [
        Match("words", shown(said.known), shown(" · ".join(part.words for part in said.parts)), shown(sub))
    ]


def ids_of_match(snapshot: Snapshot, kind: MatchKind, value: str) -> npt.NDArray[np.int64]:
    """Ids of the songs that a match is about, int64; of words those first that fit most."""
    if kind == "artist":
        return snapshot.row_ids[snapshot.songs_of_artist(value)]
    if kind == "words":
        return snapshot.row_ids[
            rows_fitting(snapshot, SearchRequest(words=understood(snapshot, value).known))
        ]
    by, _, name = value.partition("\n")
    ids = snapshot.library.songs_of_album(name, by) if kind == "album" else [int(value)]
    return np.array([song.id for song in snapshot.songs_by_id(ids)], dtype=np.int64)


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
        placeholder=placeholder, nothing="Nothing matches.", on_picked_change=picked,
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
