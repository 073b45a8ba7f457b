"""Songs compared by ear: who is asked what, the question, and what the answers so far are worth."""

import streamlit as st

from musicsim.errors import MusicsimError
from musicsim.library import Library
from musicsim.library.importing import ME
from musicsim.public import is_public
from musicsim.ui.base.openers import snapshot
from musicsim.ui.base.text import plain, shown
from musicsim.ui.base.visitors import opinions, visitor_name
from musicsim.ui.compare.answers import so_far
from musicsim.ui.compare.cards import show_cards
from musicsim.ui.compare.session import FORM, LISTENER, N_SONGS, SHOW_NAMES, act, last_given, question, turn, who

_FORMS = {"odd": "The odd one out", "like": "More like the first"}


@st.fragment
def show_compare() -> None:
    """The question, its songs, and what the answers are worth; an answer runs nothing else of the page."""
    now = snapshot()
    library = now.library
    listener = _choices(library)
    if now.n_indexed < N_SONGS.get():
        here = "one song" if now.n_indexed == 1 else f"{now.n_indexed} songs"
        st.info(
            f"A question needs {N_SONGS.get()} songs, but only {here} can be compared. Add more on the Library page.",
            icon=":material/info:",
        )
        return
    answers = opinions(library).judgments.answers()
    if listener:
        try:
            asked = question(now, answers, listener)
        except MusicsimError as error:
            st.info(plain(error), icon=":material/info:")
        else:
            given = last_given(library)
            show_cards(
                now, asked, turn=turn(), is_named=SHOW_NAMES.get(), on_action=act,
                last=(given.asked.question, given.chosen) if given else None,
            )  # fmt: skip
    else:
        st.info("Enter the listener's name: answers are saved under it.", icon=":material/person:")
    so_far(library, answers, listener)


def _choices(library: Library) -> str:
    """What is asked, about how many songs, and whom; gives the listener's name, empty where nobody has one."""
    known = opinions(library).judgments.listeners()
    is_owner = not is_public()
    if not is_owner:
        LISTENER.set(visitor_name())
    elif LISTENER.get() is None and len(known) < 2:  # of several, none is known to be the one who sits here
        LISTENER.set(known[0] if known else ME)
    said = LISTENER.get()
    listener = said if said in known else who(said)
    LISTENER.set(listener or None)
    for key in (FORM, N_SONGS, SHOW_NAMES):
        key.get()  # which gives the widget of its name the default to begin with
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        st.segmented_control(
            "Question", list(_FORMS), format_func=_FORMS.__getitem__, key=FORM.name, required=True,
            persist_state="session",
        )  # fmt: skip
        st.segmented_control("Songs", (3, 4), key=N_SONGS.name, required=True, persist_state="session")
        if is_owner:
            st.selectbox(
                "Listener", sorted({*known, listener} - {""}), key=LISTENER.name, index=None,
                format_func=shown, placeholder="choose or type a name", accept_new_options=True, width=220,
                persist_state="session",
            )  # fmt: skip
        st.toggle(
            "Show names", key=SHOW_NAMES.name, persist_state="session",
            help="Names are hidden until you answer, so you judge by ear.",
        )  # fmt: skip
    return listener
