"""Evaluate: how good "similar" and the playlists are on this library."""

import streamlit as st

from musicsim.public import visitor_may
from musicsim.ui.base.sections import Tab, tabs_of
from musicsim.ui.base.state import Key, snapshot
from musicsim.ui.components.empty import stop_without_songs
from musicsim.ui.evaluate.quality_view import show_library

_LIBRARY = "Your library"
SECTION: Key[str] = Key("evaluate_section", lambda: _LIBRARY, "what the Evaluate page shows")


@visitor_may
def draw() -> None:
    """Draw the page."""
    now = snapshot()
    st.title("Evaluate", anchor=False)
    SECTION.keep()
    tabs = tabs_of("evaluate", {_LIBRARY: Tab(_LIBRARY, 10, [show_library])})
    section = st.segmented_control("Show", list(tabs), key=SECTION.name, label_visibility="collapsed")
    tab = tabs.get(section or "", tabs[_LIBRARY])
    if tab.needs_songs:
        stop_without_songs(now)
    tab.draw(now)


if __name__ == "__main__":
    draw()
