"""The Research page: an overview of papers, evaluations, listening tests and exports, each with a sub-page."""

import streamlit as st

from musicsim.public import is_public, visitor_may
from musicsim.ui.base import openers
from musicsim.ui.base.keys import SECTIONS
from musicsim.ui.base.sections import Tab, tabs_of
from musicsim.ui.components.jobs_view import stop_without_songs
from musicsim.ui.research.overview import MORE, show_overview, show_title
from musicsim.ui.research.quality_view import show_library, summarize_library
from musicsim.ui.research.search_view import show_search
from musicsim.ui.research.walk_view import show_walk


@visitor_may
def draw() -> None:
    """Draw the overview, or the sub-page that the URL names."""
    snapshot = openers.snapshot()
    weights = "The weights that playlists follow, how well they predict yours, and the seed of the next one."
    core = {
        "quality": Tab("Evaluate", 10, [show_library], summary=summarize_library),
        "walk": Tab("Playlist walk", 31, [show_walk], group=MORE, about=weights),
    }
    if not is_public():
        about = "Recall and speed of each kind of search index."
        core["search"] = Tab("Search", 35, [show_search], group=MORE, about=about)
    tabs = tabs_of("research", core)
    tab = tabs.get(SECTIONS["research"].get())
    if tab is None:
        st.title("Research", anchor=False)
        show_overview(snapshot, tabs)
        stop_without_songs(snapshot)
        return
    show_title(tab.title)
    if tab.needs_songs:
        stop_without_songs(snapshot)
    tab.draw(snapshot)


if __name__ == "__main__":
    draw()
