"""Ways to add music: a folder, files, the demo collection, and a new library."""

from collections.abc import Callable, Sequence
from pathlib import Path

import streamlit as st

from musicsim.addresses import explain_refusal, is_address
from musicsim.errors import MusicsimError
from musicsim.explorer import Snapshot, open_library
from musicsim.explorer.libraries import create_library, demo_folder, library_folders
from musicsim.explorer.refresh.add_music import keep_upload
from musicsim.library import Library
from musicsim.ui.base import Key, off_if
from musicsim.ui.base.keys import LIBRARY, SECTIONS, forget_library_state
from musicsim.ui.base.option_widgets import UPLOAD_TYPES
from musicsim.ui.base.sections import draw_sections
from musicsim.ui.components import start_job
from musicsim.ui.components.jobs_view import demo_button
from musicsim.ui.library.folder_chooser import choose_folder, folder_in
from musicsim.wording import count

ADD = "library_add"
"""Key of the popover *Add music*."""
PROBLEM: Key[str] = Key("library_problem", str, "why music could not be added, or a library not made")
_FOLDER, _MIX, _NEW = "library_folder", "library_mix", "library_new"  # keys of widgets
_MY_MUSIC = "My music"


def show_ways_to_add(snapshot: Snapshot, *, busy: bool) -> None:
    """Show a folder chooser, an upload box, and a button for the demo if the library is empty."""
    library = snapshot.library
    if demo_folder(library.folder) in library.files.roots():
        st.toggle(
            "Mix my music with the demo", key=_MIX, help=f"Otherwise, it goes into a library of its own, *{_MY_MUSIC}*."
        )
    folder = choose_folder(_FOLDER)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            "Add the folder", icon=":material/create_new_folder:", key="library_add_folder", type="primary",
            on_click=_add_folder, args=(library,), **off_if(folder is None, "Choose a folder first."),
        )  # fmt: skip
        if folder is not None and not _needs_own_library(library):
            draw_sections("folder", snapshot, folder=folder)
    if not snapshot.n_songs and not busy:
        demo_button(snapshot)
    files = st.file_uploader("Or upload files", type=UPLOAD_TYPES, accept_multiple_files=True, key="library_files")
    if files:
        st.button(
            f"Add {count(len(files), 'file')}", icon=":material/upload:", on_click=_add,
            args=(library, lambda target: [keep_upload(target, f.name, f.getvalue()) for f in files]),
        )  # fmt: skip


def _needs_own_library(library: Library) -> bool:
    """Return whether the user's music goes into a library of its own, because this one has the demo."""
    return demo_folder(library.folder) in library.files.roots() and not st.session_state.get(_MIX, False)


def _add_folder(library: Library) -> None:
    folder = folder_in(_FOLDER)
    if folder is None:
        return
    if (reason := explain_refusal(folder)) is not None:
        PROBLEM.set(reason)
    elif not (is_address(folder) or folder.exists()):
        PROBLEM.set(f"{folder}: this folder does not exist on this machine.")
    else:
        _add(library, lambda _: [folder])


def _add(library: Library, paths: Callable[[Library], Sequence[Path]]) -> None:
    """Start adding music to this library, or to one of its own if this is the demo, and show that library."""
    is_own = _needs_own_library(library)
    try:
        if is_own:
            if _MY_MUSIC not in {folder.name for folder in library_folders()}:
                create_library(_MY_MUSIC)
            library = open_library(_MY_MUSIC)
        start_job(library, "add", paths=[str(path) for path in paths(library)])
    except MusicsimError as error:
        PROBLEM.set(str(error))
        return
    st.session_state[ADD] = False  # closes the popover
    st.session_state[_FOLDER] = ""
    if is_own:
        _show_library(library.name)


def show_new_library() -> None:
    """Show a field that makes a new library."""
    st.text_input(
        "New library", key=_NEW, placeholder="Jazz", on_change=_make_library, width=320,
        help="The new library is separate from this one. Switch between them at the top of the sidebar.",
    )  # fmt: skip


def _make_library() -> None:
    try:
        _show_library(create_library(st.session_state[_NEW]).name)
    except MusicsimError as error:
        PROBLEM.set(str(error))


def _show_library(name: str) -> None:
    LIBRARY.set(name)
    SECTIONS["library"].set("")
    forget_library_state()
