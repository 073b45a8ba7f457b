"""The Research page: quality of similarity and playlists in this library, papers, listening tests and exports."""

import streamlit as st

from musicsim.public import is_public, visitor_may
from musicsim.ui.base import openers
from musicsim.ui.base.sections import Tab, choose_tab, tabs_of
from musicsim.ui.components.jobs_view import stop_without_songs
from musicsim.ui.research.quality_view import show_library
from musicsim.ui.research.search_view import show_search

_EVALUATE = "Evaluate"


@visitor_may
def draw() -> None:
    """Draw the page."""
    snapshot = openers.snapshot()
    st.title("Research", anchor=False)
    core = {"quality": Tab("Your library", 10, [show_library], group=_EVALUATE)}
    if not is_public():
        core["search"] = Tab("Search", 35, [show_search], group=_EVALUATE)
    tab = choose_tab("research", tabs_of("research", core))
    if tab.needs_songs:
        stop_without_songs(snapshot)
    tab.draw(snapshot)


if __name__ == "__main__":
    draw()
