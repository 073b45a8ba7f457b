"""The Evaluate page: quality of similarity and playlists on this library."""

import streamlit as st

from musicsim.public import is_public, visitor_may
from musicsim.ui.base import openers
from musicsim.ui.base.keys import Key
from musicsim.ui.base.sections import Tab, choose_tab, tabs_of
from musicsim.ui.components.jobs_view import stop_without_songs
from musicsim.ui.evaluate.quality_view import show_library
from musicsim.ui.evaluate.search_view import show_search

_LIBRARY, _SEARCH = "Your library", "Search"
SECTION: Key[str] = Key("evaluate_section", lambda: _LIBRARY, "open tab of the Evaluate page")


@visitor_may
def draw() -> None:
    """Draw the page."""
    snapshot = openers.snapshot()
    st.title("Evaluate", anchor=False)
    core = {_LIBRARY: Tab(_LIBRARY, 10, [show_library])}
    if not is_public():
        core[_SEARCH] = Tab(_SEARCH, 35, [show_search])
    tab = choose_tab(tabs_of("evaluate", core), SECTION)
    if tab.needs_songs:
        stop_without_songs(snapshot)
    tab.draw(snapshot)


if __name__ == "__main__":
    draw()
