"""The blind question on the Playlist page: two songs without names, two reasons and, after the answer, the truth."""

from dataclasses import dataclass, replace
from pathlib import Path

import streamlit as st

from musicsim.explorer.playlists.shared_walk import share_walk
from musicsim.explorer.playlists.tracks import make_track
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.extensions.blind_reasons import question as blind
from musicsim.library import Library
from musicsim.public import visitor_may
from musicsim.ui.base import openers
from musicsim.ui.base.keys import Key
from musicsim.ui.base.text import plain, show_errors
from musicsim.ui.base.visitors import opinions
from musicsim.ui.components.play_button import play_button
from musicsim.ui.playlist.request_form import request_of
from musicsim.wording import capitalize

_LENGTH = 12  # number of songs in the playlist that a question's step is drawn from
_LABELS: dict[blind.Choice, tuple[str, str]] = {
    "first": ("Reason 1 is true", "1"),
    "unsure": ("I cannot tell", "0"),
    "second": ("Reason 2 is true", "2"),
}


@dataclass(frozen=True, slots=True)
class _Asked:
    library: Path
    question: blind.Question
    chosen: blind.Choice | None = None


_ASKED: Key[_Asked | None] = Key("blind_reason", lambda: None, "the question about two reasons, and its answer")


@visitor_may
def draw(_snapshot: Snapshot, *, busy: bool) -> None:
    """Draw the question or its solution, and the results so far."""
    snapshot = openers.snapshot()
    st.caption(
        "Listen to two consecutive songs of a new playlist for your request. One reason is true: the playlist followed "
        "it. The other reason is about as common, but it is true of the first song only."
    )
    asked = _ASKED.get()
    if asked is not None and asked.library == snapshot.library.folder:
        _show_songs(snapshot.library, asked)
        _show_reasons(asked)
    else:
        asked = None
    if asked is None or asked.chosen is not None:
        label = "Ask a question" if asked is None else "Next question"
        if st.button(label, icon=":material/casino:", key="blind_reason_draw", type="primary", shortcut="n"):
            _ask(snapshot)
    st.header("So far", anchor=False)
    results = blind.summarize(opinions(snapshot.library).judgments.all(blind.KIND))
    st.markdown(plain(blind.describe(results)))
    st.caption("Guessing finds half of them. Decide beforehand how many questions to answer.")


def _ask(snapshot: Snapshot) -> None:
    with show_errors(ValueError):
        request = replace(request_of(snapshot), length=_LENGTH, minutes=None, first=None, through=())
        question = blind.draw_question(share_walk(snapshot), request)
        if question is None:
            st.info(
                "No step has a true and a false reason of similar size. Loosen the request, or add more songs.",
                icon=":material/info:",
            )
            return
        _ASKED.set(_Asked(snapshot.library.folder, question))
        st.rerun()


def _show_songs(library: Library, asked: _Asked) -> None:
    """Show buttons that play the songs; their names stay hidden until the answer, so that only the sound counts."""
    tracks = [
        replace(make_track(library, song), title=f"Song {n}", artist="", cover_url="", is_blind=True)
        if asked.chosen is None
        else make_track(library, song)
        for n, song in enumerate(asked.question.songs, start=1)
    ]
    with st.container(horizontal=True):
        for place, song in enumerate(asked.question.songs):
            label = f"Song {place + 1}" if asked.chosen is None else song.label
            play_button(label, key=f"blind_reason_song_{place}", library=library, tracks=tracks, start=place)


def _show_reasons(asked: _Asked) -> None:
    """Show the reasons, then the buttons for the answer or the solution."""
    reasons, true = asked.question.reasons, asked.question.true
    st.markdown("\n".join(f"{n}. {plain(capitalize(edge.label))}" for n, edge in enumerate(reasons, start=1)))
    if asked.chosen is None:
        with st.container(horizontal=True):
            for choice, (label, shortcut) in _LABELS.items():
                st.button(label, key=f"blind_reason_{choice}", shortcut=shortcut, on_click=_answer, args=(choice,))
        return
    is_found = blind.CHOSEN[asked.chosen] == true
    told = f"Reason {true + 1} is true: {plain(reasons[true].label)}."
    (st.success if is_found else st.info)(told, icon=":material/visibility:")


def _answer(choice: blind.Choice) -> None:
    asked = _ASKED.get()
    if asked is not None and asked.chosen is None:
        blind.record(opinions(openers.snapshot().library), asked.question, choice)
        _ASKED.set(replace(asked, chosen=choice))
