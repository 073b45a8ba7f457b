"""Evaluate: how good "similar" is here, for which genres, which songs are near everything; and the papers' tables."""

import streamlit as st

from musicsim.public import visitor_may
from musicsim.ui.base.state import snapshot
from musicsim.ui.components.empty import stop_without_songs
from musicsim.ui.evaluate.papers_view import show_papers
from musicsim.ui.evaluate.quality_view import SECTION, SECTIONS, show_library


@visitor_may
def draw() -> None:
    """Draw the page."""
    now = snapshot()
    st.title("Evaluate", anchor=False)
    SECTION.keep()
    section = st.segmented_control("Show", SECTIONS, key=SECTION.name, label_visibility="collapsed")
    if section == SECTIONS[1]:
        show_papers(now.library)
    else:
        stop_without_songs(now)
        show_library(now)


if __name__ == "__main__":
    draw()
