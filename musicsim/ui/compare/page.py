"""The Compare page: listeners compare songs by ear, and models learn similarity from their answers."""

import streamlit as st

from musicsim.public import visitor_may
from musicsim.ui.base import openers
from musicsim.ui.base.keys import Key
from musicsim.ui.base.sections import Tab, choose_tab, tabs_of
from musicsim.ui.compare.view import show_compare
from musicsim.ui.components.jobs_view import stop_without_songs

_QUESTIONS = "Questions"
_SECTION: Key[str] = Key("compare_section", lambda: _QUESTIONS, "open tab of the Compare page")


@visitor_may
def draw() -> None:
    """Draw the page."""
    st.title("Compare", anchor=False)
    snapshot = openers.snapshot()
    stop_without_songs(snapshot)
    tabs = tabs_of("compare", {_QUESTIONS: Tab(_QUESTIONS, 10, [lambda *_, **__: show_compare()])})
    choose_tab(tabs, _SECTION).draw(snapshot)


if __name__ == "__main__":
    draw()
