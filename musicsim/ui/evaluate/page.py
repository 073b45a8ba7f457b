"""Evaluate: how good "similar" and the playlists are on this library."""

import streamlit as st

from musicsim.public import is_public, visitor_may
from musicsim.ui.base.keys import Key
from musicsim.ui.base.openers import snapshot
from musicsim.ui.base.sections import Tab, tabs_of
from musicsim.ui.components.empty import stop_without_songs
from musicsim.ui.evaluate.quality_view import show_library
from musicsim.ui.evaluate.search_view import show_search

_LIBRARY, _SEARCH = "Your library", "Search"
SECTION: Key[str] = Key("evaluate_section", lambda: _LIBRARY, "what the Evaluate page shows")


@visitor_may
def draw() -> None:
    """Draw the page."""
    now = snapshot()
    st.title("Evaluate", anchor=False)
    SECTION.keep()
    core = {_LIBRARY: Tab(_LIBRARY, 10, [show_library])}
    if not is_public():
        core[_SEARCH] = Tab(_SEARCH, 35, [show_search])
    tabs = tabs_of("evaluate", core)
    section = st.segmented_control("Show", list(tabs), key=SECTION.name, label_visibility="collapsed")
    tab = tabs.get(section or "", tabs[_LIBRARY])
    if tab.needs_songs:
        stop_without_songs(now)
    tab.draw(now)


if __name__ == "__main__":
    draw()
