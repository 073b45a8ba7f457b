"""Library: add music, watch it being analysed, see what is there and what is not, and why."""

from pathlib import Path

import streamlit as st

from musicsim.audio import AUDIO_EXTENSIONS
from musicsim.errors import MusicsimError
from musicsim.explorer import jobs
from musicsim.explorer.libraries import create_library
from musicsim.explorer.upkeep.add_music import keep_upload
from musicsim.ui.base.state import LIBRARY, SECTION, snapshot
from musicsim.ui.base.text import plain
from musicsim.ui.components.empty import demo_button
from musicsim.ui.components.jobs_view import job_panel, start_job
from musicsim.ui.library.guess_review import guesses_review
from musicsim.ui.library.listening_review import listening_review
from musicsim.ui.library.review import (
    artists_review,
    duplicates_review,
    failures_review,
    missing_review,
)
from musicsim.ui.library.settings import folders, settings
from musicsim.ui.library.songs_table import songs_table

now = snapshot()
library = now.library
running = jobs.current(library)
st.title("Library", anchor=False)


def add_folder() -> None:
    """Start adding the folder that was typed."""
    typed = st.session_state["library_folder"].strip().strip("'\"")
    folder = Path(typed).expanduser()
    if not typed or not folder.exists():
        st.session_state["library_problem"] = (
            f"{typed or 'Nothing'}: there is no such folder on this machine."
        )
        return
    start_job(library, "add", paths=[str(folder.absolute())])


def add_uploads() -> None:
    """Keep the uploaded files in the library's folder and add them."""
    try:
        paths = [str(keep_upload(library, f.name, f.getvalue())) for f in st.session_state["library_files"]]
    except MusicsimError as error:
        st.session_state["library_problem"] = str(error)
        return
    start_job(library, "add", paths=paths)


def new_library() -> None:
    """Make an empty library and show it."""
    try:
        LIBRARY.set(create_library(st.session_state["library_new"]).name)
    except MusicsimError as error:
        st.session_state["library_problem"] = str(error)


folder, upload, other = st.columns(3, gap="large")
with folder, st.form("add_folder", border=False):
    st.text_input("Folder of music", key="library_folder", placeholder="~/Music")
    st.form_submit_button(
        "Add the folder",
        icon=":material/create_new_folder:",
        on_click=add_folder,
        disabled=running is not None,
    )
with upload:
    files = st.file_uploader(
        "Or upload files", type=sorted(e.lstrip(".") for e in AUDIO_EXTENSIONS), accept_multiple_files=True,
        key="library_files",
    )  # fmt: skip
    if files:
        st.button(
            f"Add {len(files)} files",
            icon=":material/upload:",
            on_click=add_uploads,
            disabled=running is not None,
        )
with other:
    if not now.songs and running is None:
        st.caption("No music at hand?")
        demo_button(now)
    with st.popover("New library", icon=":material/add:"):
        st.text_input("Name", key="library_new", placeholder="Jazz", on_change=new_library)
        st.caption("It is separate from this one; switch at the top of the sidebar.")
# what is there at times stands in a container that is there always, so that all below keeps its place in the page
# when it comes and goes
with st.container():
    if "library_problem" in st.session_state:
        st.error(plain(st.session_state.pop("library_problem")), icon=":material/error:")


@st.fragment(run_every=1.0 if running else None)
def watch() -> None:
    """The job at work; the page runs anew when songs have come or the job has ended."""
    job = jobs.current(library)
    if running is not None and (job is None or library.revision != now.revision):
        st.rerun()
    latest = job or next(iter(library.jobs.recent(1)), None)
    if latest is not None:
        job_panel(library, latest)


with st.container():
    watch()
failures = library.files.failures()
gone = library.missing_songs()
busy = running is not None
labels = {
    "songs": "Songs",
    "failed": "Failed",
    "missing": "Missing",
    "same": "Duplicates",
    "artists": "Artists",
    "genres": "Genres",
    "listening": "Listening",
    "folders": "Folders",
    "settings": "Settings",
}
SECTION.keep()
section = st.segmented_control(
    "Show", list(labels), format_func=labels.__getitem__, key=SECTION.name, label_visibility="collapsed",
    required=True,
)  # fmt: skip
# beside the choice, not in its labels: what is clicked should not change under the hand
numbers = (
    (len(now.songs), "song" if len(now.songs) == 1 else "songs"),
    (len(failures), "failed"),
    (len(gone), "missing"),
    (len(now.representative_of), "duplicate" if len(now.representative_of) == 1 else "duplicates"),
)
st.caption(" · ".join(f"{number:,} {name}" for number, name in numbers))
if section == "failed":
    failures_review(library, failures, busy=busy)
elif section == "missing":
    missing_review(library, gone, busy=busy)
elif section == "same":
    duplicates_review(now, busy=busy)
elif section == "artists":
    artists_review(library)
    st.subheader("Songs without an artist", anchor=False)
    guesses_review(now, "artist")
elif section == "genres":
    guesses_review(now, "genre")
elif section == "listening":
    listening_review(library, busy=busy)
elif section == "folders":
    folders(library, busy=busy)
elif section == "settings":
    settings(library, busy=busy, has_songs=bool(now.songs))
else:
    songs_table(now)
