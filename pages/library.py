"""Library: add music, watch it being analysed, see what is there and what is not, and why."""

from pathlib import Path

import pandas as pd
import streamlit as st

from musicsim.audio import AUDIO_EXTENSIONS
from musicsim.errors import MusicsimError
from musicsim.explorer import jobs
from musicsim.explorer.building import keep_upload
from musicsim.explorer.libraries import create_library
from musicsim.ui.empty import demo_button
from musicsim.ui.jobs_view import job_panel, start_job
from musicsim.ui.listening import play_songs
from musicsim.ui.state import LIBRARY, snapshot
from musicsim.ui.text import plain

now = snapshot()
library = now.library
running = jobs.current(library)
st.title("Library", anchor=False)


def _shown(text: object) -> str:
    """Text as a browser takes it, whatever bytes a file name is made of."""
    return str(text).encode("utf-8", "replace").decode()


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


def play_row() -> None:
    """Play the song whose row was clicked."""
    rows = st.session_state["library_songs"].selection.rows
    if rows:
        play_songs(library, shown, rows[0])


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
        st.caption("Nothing at hand?")
        demo_button(now)
    with st.popover("New library", icon=":material/add:"):
        st.text_input("Name", key="library_new", placeholder="Jazz", on_change=new_library)
        st.caption("It stands beside this one; switch at the top of the side bar.")
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


watch()
failures = library.failures()
songs_tab, failed_tab, settings_tab = st.tabs(
    [f"Songs ({len(now.songs):,})", f"Not added ({len(failures):,})", "Settings"]
)
with songs_tab:
    if not now.songs:
        st.info("No songs yet: add a folder of music or load the demo collection.", icon=":material/info:")
    else:
        wanted = st.text_input(
            "Search songs", key="library_search", placeholder="Search a title or an artist"
        )
        shown = [s for s in now.songs if s.matches(wanted)]
        table = pd.DataFrame(
            {
                "title": [s.title for s in shown],
                "artist": [s.artist for s in shown],
                "album": [s.album for s in shown],
                "year": pd.array([s.year for s in shown], dtype="Int64"),
                "genre": [s.genre for s in shown],
                "seconds": [round(s.duration_s, 1) for s in shown],
                "notes": [s.notes for s in shown],
                "file": [_shown(s.path) for s in shown],
            }
        )
        st.dataframe(
            table, hide_index=True, key="library_songs", on_select=play_row, selection_mode="single-row"
        )
        st.caption(f"{len(shown):,} of {len(now.songs):,} songs. Select a row to play it.")
with failed_tab:
    if not failures:
        st.caption("Every file could be read.")
    else:
        reasons = pd.DataFrame(
            {
                "file": [_shown(f.path.name) for f in failures],
                "reason": [_shown(f.reason.replace(str(f.path), f.path.name)) for f in failures],
                "folder": [_shown(f.path.parent) for f in failures],
            }
        )
        st.dataframe(reasons, hide_index=True, key="library_failed")
        st.button(
            "Try these again", icon=":material/refresh:", disabled=running is not None, on_click=start_job,
            args=(library, "add"), kwargs={"paths": [str(f.path) for f in failures], "retry": True},
        )  # fmt: skip
with settings_tab:
    st.toggle(
        "Keep the frames of songs", library.settings["keep_frames"], key="library_keep_frames",
        on_change=lambda: library.set_setting("keep_frames", st.session_state["library_keep_frames"]),
        help="2.2 kB a second of music. Without them a new codebook has to decode every song again.",
    )  # fmt: skip
    st.button(
        "Fit the model again", icon=":material/model_training:", on_click=start_job, args=(library, "refresh"),
        kwargs={"force": True}, disabled=running is not None or not now.songs,
    )  # fmt: skip
    st.caption(f"This library lies in {plain(library.folder)}.")
    for root in library.roots():
        st.text(f"Folder: {_shown(root)}")
