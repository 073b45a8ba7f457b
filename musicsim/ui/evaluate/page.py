"""Evaluate: how good "similar" and the playlists are here, which songs are near everything; and the papers' tables."""

import streamlit as st

from musicsim.explorer.playlists.continuation import continue_lists
from musicsim.public import is_open, visitor_may
from musicsim.ui.base.state import snapshot
from musicsim.ui.components.empty import stop_without_songs
from musicsim.ui.evaluate.continuation_view import show_continuation
from musicsim.ui.evaluate.papers_view import show_papers
from musicsim.ui.evaluate.quality_view import SECTION, SECTIONS, show_library


@visitor_may
def draw() -> None:
    """Draw the page."""
    now = snapshot()
    st.title("Evaluate", anchor=False)
    SECTION.keep()
    _, playlists, papers = SECTIONS
    sections = [name for name in SECTIONS if name != playlists or is_open(continue_lists)]
    section = st.segmented_control("Show", sections, key=SECTION.name, label_visibility="collapsed")
    if section == papers:
        show_papers(now.library)
        return
    stop_without_songs(now)
    if section == playlists:
        show_continuation(now)
    else:
        show_library(now)


if __name__ == "__main__":
    draw()
