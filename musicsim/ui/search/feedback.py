"""Thumbs on the answers of a search: what was said, undo, and keeping it to learn from."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import streamlit as st

from musicsim.errors import MusicsimError
from musicsim.explorer.search.feedback import Thumbs, what_changed
from musicsim.explorer.search.query import Hit
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library import Library
from musicsim.public import is_public
from musicsim.ui.base.keys import Key
from musicsim.ui.base.text import plain
from musicsim.ui.base.visitors import opinions

THUMBS = {"like": 1, "unlike": -1}
"""What a thumb of the list of answers says."""

_MAX_SEARCHES = 50


@dataclass(frozen=True, slots=True)
class _Search:
    """What was said of the answers to a search, and what was kept of it when the page was drawn last."""

    thumbs: Thumbs
    kept: Mapping[int, int]


_SAID: Key[dict[str, _Search]] = Key("search_feedback", dict, "thumbs by what was searched with")


def feedback_on(now: Snapshot, searched: str, song_id: int | None) -> Thumbs:
    """What was said of the answers to a search, in this session, or kept: of songs that are in the library still.

    `searched` tells what was searched with, in this library, and `song_id` the song of the library, if it was one.
    """
    kept = {} if song_id is None else opinions(now.library).judgments.rated_results(song_id)
    before = _SAID.get().get(searched)
    # where nothing was said beyond what is kept, what another tab has kept or forgotten since is followed
    if before is None or before.thumbs.judged == before.kept != kept:
        thumbs = Thumbs(tuple(kept.items()))
    else:
        ids = dict(before.thumbs.said)
        here = {song.id for song in now.songs_by_id(ids)}
        if len(here) < len(ids):  # their files at most
            here |= {song.id for song in now.library.songs(ids, missing=True)}
        thumbs = before.thumbs.of_songs(here)
    _remember(searched, _Search(thumbs, kept))
    return thumbs


def _search(searched: str) -> _Search:
    return _SAID.get().get(searched) or _Search(Thumbs(), {})


def _remember(searched: str, search: _Search) -> None:
    """Hold it, and let go of what was searched with longest ago."""
    said = {name: of for name, of in _SAID.get().items() if name != searched} | {searched: search}
    _SAID.set(dict(list(said.items())[-_MAX_SEARCHES:]))


def _follow(searched: str, thumbs: Thumbs) -> None:
    _remember(searched, replace(_search(searched), thumbs=thumbs))


def say(searched: str, song_id: int, value: int) -> None:
    """Press a thumb, or let go of it where it was pressed; for callbacks."""
    thumbs = _search(searched).thumbs
    _follow(searched, thumbs.saying(song_id, 0 if thumbs.judged.get(song_id) == value else value))


def _undo(searched: str) -> None:
    _follow(searched, _search(searched).thumbs.undone())


def _start_over(searched: str) -> None:
    _follow(searched, _search(searched).thumbs.started_over())


def _keep(library: Library, song_id: int, judged: dict[int, int]) -> None:
    try:
        library.judgments.rate_results(song_id, judged)
    except MusicsimError as error:
        st.toast(plain(error), icon=":material/warning:")
        return
    words = "Kept: the Train page can learn from it." if judged else "Discarded."
    st.toast(words, icon=":material/check:")


def _changes(before: list[Hit], after: list[Hit]) -> str:
    return plain(what_changed([hit.song for hit in before], [hit.song for hit in after]))


def _keep_button(library: Library, song_id: int | None, judged: dict[int, int], kept: Mapping[int, int]) -> None:
    can_learn = song_id is not None
    st.button(
        "Keep", icon=":material/bookmark:", key="feedback_keep", on_click=_keep, args=(library, song_id, judged),
        disabled=not can_learn or judged == kept,
        help="Keep these thumbs to learn a model from, on the Train page."
        if can_learn
        else "Only thumbs for a song in your collection can be learned from: add the file first.",
    )  # fmt: skip


def feedback_bar(snapshot: Snapshot, searched: str, song_id: int | None, before: list[Hit], after: list[Hit]) -> None:
    """One line on what thumbs have changed, songs that do not fit, and what can be done about it.

    `before` and `after` are the answers without the last word, and with it.
    """
    library, search = snapshot.library, _search(searched)
    thumbs, kept = search.thumbs, search.kept
    can_undo = bool(thumbs.said) or thumbs.earlier is not None
    if not can_undo and not kept:
        st.caption("Use the thumbs to say what fits; the list updates right away.")
        return
    st.caption(_changes(before, after) if thumbs.said else "The last thumb was undone.")
    with st.container(horizontal=True):
        st.button(
            "Undo", icon=":material/undo:", key="feedback_undo", on_click=_undo, args=(searched,), disabled=not can_undo
        )
        st.button(
            "Start over", icon=":material/restart_alt:", key="feedback_over", on_click=_start_over,
            args=(searched,), disabled=not thumbs.said,
        )  # fmt: skip
        if not is_public():  # there is nothing that could learn from them
            _keep_button(library, song_id, thumbs.judged, kept)
    gone = snapshot.songs_by_id(thumbs.unfitting)
    if gone:
        labels = {song.id: plain(song.label) for song in gone}

        def take_back() -> None:
            picked = st.session_state["feedback_unfitting"]
            if picked is not None:
                say(searched, picked, -1)

        st.pills(
            "Hidden (click to undo)", list(labels), format_func=lambda i: f"{labels[i]} ✕",
            key="feedback_unfitting", on_change=take_back,
        )  # fmt: skip
