"""The blind question on the Playlists page: two songs without names, two reasons and, after the answer, the truth."""

from dataclasses import replace

import streamlit as st

from musicsim.explorer import Snapshot, share_walk
from musicsim.extensions.blind_reasons import question as blind
from musicsim.public import visitor_may
from musicsim.ui import request_of
from musicsim.ui.base import Key, openers, opinions, plain, show_errors
from musicsim.ui.components import Asked, Session, Sitting, show_choices, show_songs
from musicsim.wording import capitalize

_LENGTH = 12  # number of songs in the playlist that a question's step is drawn from
_KEY = "blind_reason"
_LABELS = ("Reason 1 is true", "I cannot tell", "Reason 2 is true")

_SESSION = Session(Key(_KEY, Sitting[blind.ReasonQuestion], "questions about reasons, and the answers"), blind.record)


@visitor_may
def draw(_snapshot: Snapshot, *, busy: bool) -> None:
    """Draw the question or its solution, and the results so far."""
    snapshot = openers.snapshot()
    st.caption(
        "Listen to two consecutive songs of a new playlist for your request. One reason is true: the playlist followed "
        "it. The other reason is about as common, but it is true of the first song only."
    )
    asked = _SESSION.current(snapshot.library)
    if asked is not None:
        show_songs(snapshot.library, asked.question.songs, key=_KEY, is_named=asked.answer_id is not None)
        _show_reasons(asked)
    if asked is None or asked.answer_id is not None:
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
        _SESSION.ask(snapshot.library, question)
        st.rerun()


def _show_reasons(asked: Asked[blind.ReasonQuestion]) -> None:
    """Show the reasons, then the buttons for the answer or the solution."""
    reasons, true = asked.question.reasons, asked.question.true
    st.markdown("\n".join(f"{n}. {plain(capitalize(edge.label))}" for n, edge in enumerate(reasons, start=1)))
    if asked.answer_id is None:
        with st.container(horizontal=True):
            show_choices(_SESSION, _LABELS, key=_KEY)
        return
    told = f"Reason {true + 1} is true: {plain(reasons[true].label)}."
    (st.success if asked.chosen == true else st.info)(told, icon=":material/visibility:")
