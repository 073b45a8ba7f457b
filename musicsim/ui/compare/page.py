"""Compare: songs side by side, by ear; the answers teach the library what its listeners mean by similar."""

import streamlit as st

from musicsim.public import visitor_may
from musicsim.ui.base.keys import Key
from musicsim.ui.base.openers import snapshot
from musicsim.ui.base.sections import Tab, tabs_of
from musicsim.ui.compare.view import show_compare
from musicsim.ui.components.empty import stop_without_songs

_QUESTIONS = "Questions"
_SECTION: Key[str] = Key("compare_section", lambda: _QUESTIONS, "what the Compare page shows")


@visitor_may
def draw() -> None:
    """Draw the page."""
    st.title("Compare", anchor=False)
    now = snapshot()
    stop_without_songs(now)
    tabs = tabs_of("compare", {_QUESTIONS: Tab(_QUESTIONS, 10, [lambda _: show_compare()])})
    section: str | None = _QUESTIONS
    if len(tabs) > 1:
        _SECTION.get()
        section = st.segmented_control(
            "Show", list(tabs), key=_SECTION.name, persist_state="session", label_visibility="collapsed", required=True
        )
    tabs.get(section or "", tabs[_QUESTIONS]).draw(now)


if __name__ == "__main__":
    draw()
