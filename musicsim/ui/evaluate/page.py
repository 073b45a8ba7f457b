"""Evaluate: how good "similar" is here, an embedding against the sound, and the papers' tables."""

import streamlit as st

from musicsim.public import is_public, visitor_may
from musicsim.ui.base.state import Key, snapshot
from musicsim.ui.components.empty import stop_without_songs
from musicsim.ui.evaluate.against_view import show_against
from musicsim.ui.evaluate.papers_view import show_papers
from musicsim.ui.evaluate.quality_view import show_library

_LIBRARY, _AGAINST, _PAPERS = "Your library", "Ours against theirs", "The papers"
SECTION: Key[str] = Key("evaluate_section", lambda: _LIBRARY, "what the Evaluate page shows")


@visitor_may
def draw() -> None:
    """Draw the page."""
    now = snapshot()
    st.title("Evaluate", anchor=False)
    SECTION.keep()
    sections = (_LIBRARY, _PAPERS) if is_public() else (_LIBRARY, _AGAINST, _PAPERS)
    section = st.segmented_control("Show", sections, key=SECTION.name, label_visibility="collapsed")
    if section == _PAPERS:
        show_papers(now.library)
        return
    stop_without_songs(now)
    if section == _AGAINST and not is_public():
        show_against(now)
    else:
        show_library(now)


if __name__ == "__main__":
    draw()
