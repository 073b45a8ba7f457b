"""The frame of every page: navigation, the library and its model, the running job, the player."""

import streamlit as st

from musicsim.errors import MusicsimError
from musicsim.explorer import jobs
from musicsim.explorer.libraries import library_folders
from musicsim.ui import player
from musicsim.ui.frame import FRAME_CSS, LOGO
from musicsim.ui.jobs_view import job_line
from musicsim.ui.listening import PAGES, on_player_event
from musicsim.ui.state import (
    CHOSEN,
    COLOUR_BY,
    EXAMPLE,
    FOUND,
    LIBRARY,
    PLAYLIST,
    active_library,
    take_address,
    warm_up,
)

st.set_page_config(page_title="musicsim", page_icon=":material/graphic_eq:", layout="wide")
st.logo(LOGO, size="large")
st.html(f"<style>{FRAME_CSS}</style>")

TITLES = {
    "explore": ("Explore", ":material/scatter_plot:"),
    "search": ("Search by example", ":material/search:"),
    "playlist": ("Playlist", ":material/queue_music:"),
    "library": ("Library", ":material/library_music:"),
}


def _switched_library() -> None:
    for key in (CHOSEN, EXAMPLE, PLAYLIST):
        key.set(None)
    FOUND.set([])


def _sidebar() -> None:
    names = [folder.name for folder in library_folders()]
    st.selectbox(
        "Library", names, key=LIBRARY.name, on_change=_switched_library, disabled=len(names) == 1,
        help="Other libraries are made on the Library page.",
    )  # fmt: skip
    library = active_library()
    counts, record = library.counts(), library.models.active()
    st.caption(f"{counts['songs']:,} songs · {counts['hours']:.1f} hours")
    st.caption(f"Model: {record.name}, {record.n_codewords:,} codewords" if record else "No model yet")
    job = jobs.current(library)
    if job is not None:
        job_line(library, job.id)
        st.page_link(PAGES["library"], label="Show the job", icon=":material/library_music:")


pages = [
    st.Page(PAGES[name], title=title, icon=icon, url_path=name, default=name == "explore")
    for name, (title, icon) in TITLES.items()
]
page = st.navigation(pages)
try:
    COLOUR_BY.keep()
    active_library()
    take_address()
    with st.sidebar:
        _sidebar()
    with st.bottom:
        player.mount(on_event=on_player_event, thumbs=active_library().feedback())
    page.run()
    warm_up()
except MusicsimError as error:
    st.error(str(error), icon=":material/error:")
