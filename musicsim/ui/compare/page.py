"""Compare: songs side by side, by ear; the answers teach the library what its listeners mean by similar."""

import streamlit as st

from musicsim.public import visitor_may
from musicsim.ui.base.state import snapshot
from musicsim.ui.compare.view import show_compare
from musicsim.ui.components.empty import stop_without_songs


@visitor_may
def draw() -> None:
    """Draw the page."""
    st.title("Compare", anchor=False)
    stop_without_songs(snapshot())
    show_compare()


if __name__ == "__main__":
    draw()
