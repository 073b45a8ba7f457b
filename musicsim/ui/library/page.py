"""The Library page: add music, follow its analysis, review songs and files, and change settings."""

from collections.abc import Callable, Sequence
from pathlib import Path

import streamlit as st

from musicsim.addresses import explain_refusal, is_address
from musicsim.errors import MusicsimError
from musicsim.explorer import jobs
from musicsim.explorer.libraries import create_library, library_folders, open_library
from musicsim.explorer.refresh.add_music import demo_folder, keep_upload
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library import Library
from musicsim.library.stores.files import absolute
from musicsim.public import is_public, visitor_may
from musicsim.ui.base import openers
from musicsim.ui.base.keys import LIBRARY, SECTION, forget_library_state
from musicsim.ui.base.option_widgets import UPLOAD_TYPES
from musicsim.ui.base.sections import Tab, choose_tab, tabs_of
from musicsim.ui.base.text import count, plain
from musicsim.ui.components.jobs_view import demo_button, start_job, watch_job
from musicsim.ui.library import review
from musicsim.ui.library.listening_review import show_listening
from musicsim.ui.library.settings import show_folders, show_settings
from musicsim.ui.library.songs_table import show_songs

_OWN = "library_own"


@visitor_may
def draw() -> None:
    """Draw the page."""
    snapshot = openers.snapshot()
    library = snapshot.library
    st.title("Library", anchor=False)
    if is_public():
        show_songs(snapshot)
        st.caption("This is a demonstration: only the owner can add and change music.")
        return
    busy = jobs.current(library) is not None
    _show_ways_to_add(snapshot, busy=busy)
    # containers that always exist, so that the page below does not move when their content changes
    with st.container():
        if "library_problem" in st.session_state:
            st.error(plain(st.session_state.pop("library_problem")), icon=":material/error:")
    with st.container():
        watch_job(library, revision=snapshot.revision)
    _show_tabs(snapshot)


def _show_ways_to_add(snapshot: Snapshot, *, busy: bool) -> None:
    if demo_folder(snapshot.library) in snapshot.library.files.roots():
        st.text_input(
            "New library for your music", "My music", key=_OWN,
            help="This is the demo. Your music goes into a new library with this name. Leave the field empty to mix "
            "your music with the demo.",
        )  # fmt: skip
    folder, upload, other = st.columns(3, gap="large")
    with folder, st.form("add_folder", border=False):
        st.text_input("Music folder", key="library_folder", placeholder="~/Music")
        st.form_submit_button(
            "Add the folder", icon=":material/create_new_folder:", on_click=_add_folder, args=(snapshot.library,),
        )  # fmt: skip
    with upload:
        files = st.file_uploader("Or upload files", type=UPLOAD_TYPES, accept_multiple_files=True, key="library_files")
        if files:
            st.button(
                f"Add {count(len(files), 'file')}", icon=":material/upload:", on_click=_add,
                args=(snapshot.library, lambda target: [keep_upload(target, f.name, f.getvalue()) for f in files]),
            )  # fmt: skip
    with other:
        if not snapshot.n_songs and not busy:
            st.caption("No music at hand?")
            demo_button(snapshot)
        with st.popover("New library", icon=":material/add:"):
            st.text_input("Name", key="library_new", placeholder="Jazz", on_change=_new_library)
            st.caption("The new library is separate from this one. Switch between them at the top of the sidebar.")


def _add_folder(library: Library) -> None:
    text = st.session_state["library_folder"].strip().strip("'\"")
    folder = absolute(text)
    if (reason := explain_refusal(folder)) is not None:
        st.session_state["library_problem"] = reason
    elif not text:
        st.session_state["library_problem"] = "Enter the path of a folder."
    elif not (is_address(folder) or folder.exists()):
        st.session_state["library_problem"] = f"{text}: this folder does not exist on this machine."
    else:
        _add(library, lambda _: [folder])


def _add(library: Library, paths: Callable[[Library], Sequence[Path]]) -> None:
    """Start adding music to this library, or to a new one if the user named one, and show that library."""
    try:
        name = st.session_state.get(_OWN, "").strip()
        if name:
            if name not in {folder.name for folder in library_folders()}:
                create_library(name)
            library = open_library(name)
        start_job(library, "add", paths=[str(path) for path in paths(library)])
    except MusicsimError as error:
        st.session_state["library_problem"] = str(error)
        return
    if name:
        LIBRARY.set(name)
        forget_library_state()


def _new_library() -> None:
    try:
        LIBRARY.set(create_library(st.session_state["library_new"]).name)
    except MusicsimError as error:
        st.session_state["library_problem"] = str(error)


def _show_tabs(snapshot: Snapshot) -> None:
    core = {
        "songs": Tab("Songs", 10, [show_songs]),
        "failed": Tab("Failed", 20, [review.show_failures]),
        "missing": Tab("Missing", 30, [review.show_missing]),
        "same": Tab("Duplicates", 40, [review.show_duplicates]),
        "artists": Tab("Artists", 50, [review.show_artists]),
        "genres": Tab("Genres", 60, [review.show_genres]),
        "listening": Tab("Listening", 65, [show_listening]),
        "folders": Tab("Folders", 80, [show_folders]),
        "settings": Tab("Settings", 90, [show_settings]),
    }
    tab = choose_tab(tabs_of("library", core), SECTION)
    # next to the tabs, not in their labels, because a label should not change while the user clicks it
    failures, missing, copies = review.unusual_files(snapshot)
    n_duplicates = len(snapshot.representative_of) + sum(len(paths) - 1 for paths in copies.values())
    facts = [count(snapshot.n_songs, "song"), f"{len(failures):,} failed", f"{len(missing):,} missing"]
    st.caption(" · ".join([*facts, count(n_duplicates, "duplicate")]))
    tab.draw(snapshot)


if __name__ == "__main__":
    draw()
