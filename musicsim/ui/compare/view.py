"""The question of Compare, its settings, and the survey so far."""

import streamlit as st

from musicsim.errors import MusicsimError
from musicsim.library import Library
from musicsim.library.importing import ME
from musicsim.public import is_public
from musicsim.ui.base import openers, opinions, plain
from musicsim.ui.base.sections import draw_sections
from musicsim.ui.base.visitors import VISITOR_NAME
from musicsim.ui.compare import session
from musicsim.ui.compare.answers import show_progress, show_survey
from musicsim.ui.compare.learned import show_learned
from musicsim.ui.components import show_cards
from musicsim.wording import clean, count

_FORMS = {"odd": "The odd one out", "like": "More like the first"}


@st.fragment
def show_compare() -> None:
    """Show the question and the survey so far; an answer does not rerun other parts of the page."""
    snapshot = openers.snapshot()
    library = snapshot.library
    answers = opinions(library).judgments.answers()
    listener = _choose_listener(library)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        show_progress(library, answers, listener)
        _show_settings(library, listener)
    if not is_public():
        show_learned(library, answers, listener)
    if snapshot.n_indexed < session.N_SONGS.get():
        available = count(snapshot.n_indexed, "song")
        st.info(
            f"A question needs {session.N_SONGS.get()} songs, but only {available} can be compared. "
            "Add more on the Library page.",
            icon=":material/info:",
        )
        return
    if listener:
        try:
            asked = session.pending_question(snapshot, answers, listener)
        except MusicsimError as error:
            st.info(plain(error), icon=":material/info:")
        else:
            show_cards(
                session.SESSION, snapshot, asked, session.SESSION.last_answer(library), key="compare_cards",
                is_named=session.SHOW_NAMES.get(),
            )  # fmt: skip
    else:
        st.info("Enter the listener's name. Answers are saved under this name.", icon=":material/person:")
    show_survey(library, answers, listener)
    if listener:
        draw_sections("answers", snapshot)


def _choose_listener(library: Library) -> str:
    """Return the listener's name; it is empty if several people have answered, and nobody is chosen."""
    known = opinions(library).judgments.listeners()
    if is_public():
        session.LISTENER.set(VISITOR_NAME.get())
    elif session.LISTENER.get() is None and len(known) < 2:  # with several listeners, the person must choose
        session.LISTENER.set(known[0] if known else ME)
    listener = session.LISTENER.get()
    if listener not in known:
        listener = session.clean_name(listener)
    session.LISTENER.set(listener or None)
    if not listener:
        _show_listeners(library, listener)
    return listener


def _show_listeners(library: Library, listener: str) -> None:
    known = opinions(library).judgments.listeners()
    st.selectbox(
        "Listener", sorted({*known, listener} - {""}), **session.LISTENER.widget(), index=None,
        format_func=clean, placeholder="choose or type a name", accept_new_options=True, width=220,
    )  # fmt: skip


def _show_settings(library: Library, listener: str) -> None:
    with st.popover("More"):
        st.segmented_control(
            "Question", list(_FORMS), format_func=_FORMS.__getitem__, **session.FORM.widget(), required=True,
        )  # fmt: skip
        if listener and not is_public():
            _show_listeners(library, listener)
        st.segmented_control("Songs", (3, 4), **session.N_SONGS.widget(), required=True)
        st.toggle(
            "Show names", **session.SHOW_NAMES.widget(),
            help="Names are hidden until you answer, so that you judge by ear.",
        )  # fmt: skip
