"""The Library page: add music, follow its analysis, review songs and files, and change settings."""

from collections.abc import Callable, Sequence
from pathlib import Path

import streamlit as st

from musicsim.addresses import explain_refusal, is_address
from musicsim.errors import MusicsimError
from musicsim.explorer import Snapshot, jobs, open_library
from musicsim.explorer.libraries import create_library, library_folders
from musicsim.explorer.refresh.add_music import demo_folder, keep_upload
from musicsim.library import Library, absolute
from musicsim.public import is_public, visitor_may
from musicsim.ui.base import openers, plain
from musicsim.ui.base.keys import LIBRARY, forget_library_state
from musicsim.ui.base.option_widgets import UPLOAD_TYPES
from musicsim.ui.base.sections import Tab, choose_tab, tabs_of
from musicsim.ui.components import start_job, watch_job
from musicsim.ui.components.jobs_view import demo_button
from musicsim.ui.library import review
from musicsim.ui.library.listening_review import show_listening
from musicsim.ui.library.settings import show_folders, show_settings
from musicsim.ui.library.songs_table import show_songs
from musicsim.wording import count

_OWN, _MY_MUSIC = "library_own", "My music"
_ADD = "library_add"
_TIDY, _CONNECTIONS, _SETTINGS = "Tidy up", "Connections", "Settings"


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
    if not snapshot.n_songs:
        _show_ways_to_add(snapshot, busy=busy)
    # containers that always exist, so that the page below does not move when their content changes
    sections, add = st.columns([4, 1])
    with st.container():
        if "library_problem" in st.session_state:
            st.error(plain(st.session_state.pop("library_problem")), icon=":material/error:")
    with st.container():
        watch_job(library, revision=snapshot.revision)
    with sections:
        tab = _choose_tab(snapshot)
    if snapshot.n_songs:
        add = add.container(horizontal=True, horizontal_alignment="right")
        with add, st.popover("Add music", icon=":material/add:", type="primary", key=_ADD, on_change="rerun"):
            _show_ways_to_add(snapshot, busy=busy)
    tab.draw(snapshot)


def _show_ways_to_add(snapshot: Snapshot, *, busy: bool) -> None:
    if demo_folder(snapshot.library) in snapshot.library.files.roots():
        exists = any(folder.name == _MY_MUSIC for folder in library_folders())
        goes_into = f"your library *{_MY_MUSIC}*" if exists else "a new library with this name"
        st.text_input(
            "Library for your music" if exists else "New library for your music", _MY_MUSIC, key=_OWN,
            help=f"This is the demo. Your music goes into {goes_into}. Leave the field empty to mix your music with "
            "the demo.",
        )  # fmt: skip
    with st.form("add_folder", border=False):
        st.text_input("Music folder", key="library_folder", placeholder="~/Music")
        st.form_submit_button(
            "Add the folder", icon=":material/create_new_folder:", on_click=_add_folder, args=(snapshot.library,),
            type="secondary" if snapshot.n_songs else "primary",
        )  # fmt: skip
    if not snapshot.n_songs and not busy:
        demo_button(snapshot)
    files = st.file_uploader("Or upload files", type=UPLOAD_TYPES, accept_multiple_files=True, key="library_files")
    if files:
        st.button(
            f"Add {count(len(files), 'file')}", icon=":material/upload:", on_click=_add,
            args=(snapshot.library, lambda target: [keep_upload(target, f.name, f.getvalue()) for f in files]),
        )  # fmt: skip
    st.text_input(
        "Or make a new library", key="library_new", placeholder="Jazz", on_change=_new_library,
        help="The new library is separate from this one. Switch between them at the top of the sidebar.",
    )  # fmt: skip


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
    st.session_state[_ADD] = False  # closes the popover
    if name:
        LIBRARY.set(name)
        forget_library_state()


def _new_library() -> None:
    try:
        LIBRARY.set(create_library(st.session_state["library_new"]).name)
    except MusicsimError as error:
        st.session_state["library_problem"] = str(error)


def _choose_tab(snapshot: Snapshot) -> Tab:
    counts = review.count_to_tidy(snapshot)
    core = {
        "songs": Tab("Songs", 10, [show_songs]),
        "failed": Tab("Failed files", 20, [review.show_failures], group=_TIDY),
        "missing": Tab("Missing songs", 30, [review.show_missing], group=_TIDY),
        "same": Tab("Duplicates", 40, [review.show_duplicates], group=_TIDY),
        "artists": Tab("Artists", 50, [review.show_artists], group=_TIDY),
        "genres": Tab("Genres", 60, [review.show_genres], group=_TIDY),
        "listening": Tab("Listening", 65, [show_listening], group=_CONNECTIONS),
        "servers": Tab("Servers and players", 70, [], group=_CONNECTIONS),  # extensions add its parts
        "folders": Tab("Folders", 80, [show_folders], group=_SETTINGS),
        "settings": Tab("Options and backups", 90, [show_settings], group=_SETTINGS),
    }
    for name, n_items in counts.items():
        core[name].n_items = n_items
    tab = choose_tab("library", tabs_of("library", core))
    # next to the tabs, not in their labels, because a label should not change while the user clicks it
    facts = [f"{core[name].title}: {n:,}" for name, n in counts.items()]
    facts = facts if tab.group == _TIDY else [f"{sum(counts.values()):,} to tidy up"]
    st.caption(" · ".join([count(snapshot.n_songs, "song"), *facts]))
    return tab


if __name__ == "__main__":
    draw()
