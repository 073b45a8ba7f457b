"""Listen: an empty element, in which the client of the tab shows the map, the search box and the queue."""

import streamlit as st

from musicsim.public import visitor_may
from musicsim.ui.base import component, openers
from musicsim.ui.components.beginnings import beginnings_of
from musicsim.ui.components.jobs_view import stop_without_songs


@visitor_may
def draw() -> None:
    """Draw the page."""
    snapshot = openers.snapshot()
    with st.container(key="listen_title"):  # the sidebar names the page: only screen readers get the title
        st.title("Listen", anchor=False)
    stop_without_songs(snapshot)
    offers = [{"label": one.label, "songs": list(one.song_ids)} for one in beginnings_of(snapshot)]
    component("web/listen/page.js", isolate_styles=False)(key="listen", data={"offers": offers}, height="content")


if __name__ == "__main__":
    draw()
