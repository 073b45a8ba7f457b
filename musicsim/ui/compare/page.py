"""Compare: songs side by side, by ear; the answers teach the library what its listeners mean by similar."""

import streamlit as st

from musicsim.extensions.listening_tests.page import show_listening_tests
from musicsim.public import is_public, visitor_may
from musicsim.ui.base.state import Key, snapshot
from musicsim.ui.compare.view import show_compare
from musicsim.ui.components.empty import stop_without_songs

_SECTIONS = ("Questions", "Listening tests")
_SECTION: Key[str] = Key("compare_section", lambda: _SECTIONS[0], "what the Compare page shows")


@visitor_may
def draw() -> None:
    """Draw the page."""
    st.title("Compare", anchor=False)
    now = snapshot()
    stop_without_songs(now)
    if not is_public():
        _SECTION.get()
        section = st.segmented_control(
            "Show", _SECTIONS, key=_SECTION.name, persist_state="session", label_visibility="collapsed",
            required=True,
        )  # fmt: skip
        if section == _SECTIONS[1]:
            show_listening_tests(now.library)
            return
    show_compare()


if __name__ == "__main__":
    draw()
