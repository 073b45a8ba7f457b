"""Evaluate: how good "similar" and the playlists are here, an embedding against the sound, and the papers' tables."""

import streamlit as st

from musicsim.extensions.continuation.continuation import continue_lists
from musicsim.extensions.continuation.page import show_continuation
from musicsim.extensions.model_comparison.comparison import compare_with
from musicsim.extensions.model_comparison.page import show_against
from musicsim.extensions.paper_tables.page import show_papers
from musicsim.public import is_open, visitor_may
from musicsim.ui.base.state import Key, snapshot
from musicsim.ui.components.empty import stop_without_songs
from musicsim.ui.evaluate.quality_view import show_library

_SECTIONS = "Your library", "Ours against theirs", "Playlists", "The papers"
_LIBRARY, _AGAINST, _PLAYLISTS, _PAPERS = _SECTIONS
_NEEDED = {_AGAINST: compare_with, _PLAYLISTS: continue_lists}  # by the sections that not everybody has
SECTION: Key[str] = Key("evaluate_section", lambda: _LIBRARY, "what the Evaluate page shows")


@visitor_may
def draw() -> None:
    """Draw the page."""
    now = snapshot()
    st.title("Evaluate", anchor=False)
    SECTION.keep()
    sections = [name for name in _SECTIONS if name not in _NEEDED or is_open(_NEEDED[name])]
    section = st.segmented_control("Show", sections, key=SECTION.name, label_visibility="collapsed")
    if section == _PAPERS:
        show_papers(now.library)
        return
    stop_without_songs(now)
    if section == _AGAINST:
        show_against(now)
    elif section == _PLAYLISTS:
        show_continuation(now)
    else:
        show_library(now)


if __name__ == "__main__":
    draw()
