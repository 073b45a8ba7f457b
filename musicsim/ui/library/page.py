"""Library: add music, watch it being analysed, see what is there and what is not, and why."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from musicsim.addresses import is_address, refusal
from musicsim.errors import MusicsimError
from musicsim.explorer import jobs
from musicsim.explorer.libraries import create_library, library_folders, open_library
from musicsim.explorer.refresh.add_music import demo_folder, keep_upload
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library import Failure, Library, Song
from musicsim.library.stores.files import absolute
from musicsim.public import is_public, visitor_may
from musicsim.ui.base.keys import LIBRARY, SECTION, forget_library_state
from musicsim.ui.base.openers import snapshot
from musicsim.ui.base.option_widgets import UPLOAD_TYPES
from musicsim.ui.base.sections import Tab, tabs_of
from musicsim.ui.base.text import plain
from musicsim.ui.components.empty import demo_button
from musicsim.ui.components.jobs_view import job_panel, start_job
from musicsim.ui.library.listening_review import listening_review
from musicsim.ui.library.review import artists_review, duplicates_review, failures_review, genres_review, missing_review
from musicsim.ui.library.settings import folders, settings
from musicsim.ui.library.songs_table import songs_table

_OWN = "library_own"
_PLACES = {
    "songs": 10, "failed": 20, "missing": 30, "same": 40, "artists": 50, "genres": 60, "listening": 65, "folders": 80,
    "settings": 90,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Contents:
    """What the sections show."""

    now: Snapshot
    failures: Sequence[Failure]  # files that were not added
    missing: Sequence[Song]  # songs whose files have gone
    # mapping of song id to list of Path: files that hold the very same bytes
    copies: Mapping[int, Sequence[Path]]
    busy: bool  # whether a job is at work, so that no other can start

    @property
    def library(self) -> Library:
        """The library itself."""
        return self.now.library


def _tabs(of: _Contents) -> dict[str, Tab]:
    core: dict[str, tuple[str, Callable[[], None]]] = {
        "songs": ("Songs", lambda: songs_table(of.now, is_owner=True)),
        "failed": ("Failed", lambda: failures_review(of.library, of.failures, busy=of.busy)),
        "missing": ("Missing", lambda: missing_review(of.library, of.missing, busy=of.busy)),
        "same": ("Duplicates", lambda: duplicates_review(of.now, of.copies, busy=of.busy)),
        "artists": ("Artists", lambda: artists_review(of.library)),
        "genres": ("Genres", lambda: genres_review(of.now)),
        "listening": ("Listening", lambda: listening_review(of.library, busy=of.busy)),
        "folders": ("Folders", lambda: folders(of.library, busy=of.busy)),
        "settings": ("Settings", lambda: settings(of.library, busy=of.busy, has_songs=of.now.n_songs > 0)),
    }
    return tabs_of(
        "library",
        {
            name: Tab(title, _PLACES[name], [lambda _, draw=draw: draw()])  # type: ignore[misc]
            for name, (title, draw) in core.items()
        },
    )


@visitor_may
def draw() -> None:
    """Draw the page."""
    now = snapshot()
    library = now.library
    st.title("Library", anchor=False)
    if is_public():
        songs_table(now, is_owner=False)
        st.caption("This is a demonstration: its owner alone adds and changes music.")
        return
    busy = jobs.current(library) is not None
    _ways_in(now, busy=busy)
    # what is there at times stands in a container that is there always, so that all below keeps its place in the
    # page when it comes and goes
    with st.container():
        if "library_problem" in st.session_state:
            st.error(plain(st.session_state.pop("library_problem")), icon=":material/error:")

    @st.fragment(run_every=1.0 if busy else None)
    def watch() -> None:
        """The job at work; the page runs again when songs have come or the job has ended."""
        job = jobs.current(library)
        if busy and (job is None or library.revision != now.revision):
            st.rerun()
        latest = job or next(iter(library.jobs.recent(1)), None)
        if latest is not None:
            job_panel(library, latest)

    with st.container():
        watch()
    _section(_Contents(now, *_files(library.folder, now.revision, library), busy))


@st.cache_resource(max_entries=4, show_spinner=False)
def _files(folder: Path, revision: int, _library: Library) -> tuple[list[Failure], list[Song], dict[int, list[Path]]]:
    """Files that were not added, songs whose files have gone, and identical files; seconds, of a million songs."""
    return _library.files.failures(), _library.missing_songs(), _library.files.copies()


def _ways_in(now: Snapshot, *, busy: bool) -> None:
    """A folder, files from the browser, the demo; and further libraries."""
    if demo_folder(now.library) in now.library.files.roots():
        st.text_input(
            "New library for your music", "My music", key=_OWN,
            help="These songs are made up: your own go to a library of this name. Leave it empty to add them here.",
        )  # fmt: skip
    folder, upload, other = st.columns(3, gap="large")
    with folder, st.form("add_folder", border=False):
        st.text_input("Folder of music", key="library_folder", placeholder="~/Music")
        st.form_submit_button(
            "Add the folder", icon=":material/create_new_folder:", on_click=_add_folder, args=(now.library,),
            disabled=busy,
        )  # fmt: skip
    with upload:
        files = st.file_uploader("Or upload files", type=UPLOAD_TYPES, accept_multiple_files=True, key="library_files")
        if files:
            st.button(
                f"Add {len(files)} files", icon=":material/upload:", on_click=_add_uploads, args=(now.library,),
                disabled=busy,
            )  # fmt: skip
    with other:
        if not now.n_songs and not busy:
            st.caption("No music at hand?")
            demo_button(now)
        with st.popover("New library", icon=":material/add:"):
            st.text_input("Name", key="library_new", placeholder="Jazz", on_change=_new_library)
            st.caption("It is separate from this one; switch at the top of the sidebar.")


def _add_folder(library: Library) -> None:
    """Start adding the folder that was typed."""
    typed = st.session_state["library_folder"].strip().strip("'\"")
    folder = absolute(typed)
    if (why := refusal(folder)) is not None:
        st.session_state["library_problem"] = why
        return
    if not typed or not (is_address(folder) or folder.exists()):
        st.session_state["library_problem"] = f"{typed or 'Nothing'}: there is no such folder on this machine."
        return
    _add(library, lambda _: [folder])


def _add_uploads(library: Library) -> None:
    """Keep the uploaded files in the library's folder and add them."""
    files = st.session_state["library_files"]
    _add(library, lambda into: [keep_upload(into, f.name, f.getvalue()) for f in files])


def _add(library: Library, paths: Callable[[Library], Sequence[Path]]) -> None:
    """Start adding music to this library, or to a new one where its name is given; that is shown then."""
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
    """Make an empty library and show it."""
    try:
        LIBRARY.set(create_library(st.session_state["library_new"]).name)
    except MusicsimError as error:
        st.session_state["library_problem"] = str(error)


def _section(of: _Contents) -> None:
    """The choice of sections, and the one that is chosen."""
    SECTION.keep()
    tabs = _tabs(of)
    section = st.segmented_control(
        "Show", list(tabs), format_func=lambda key: tabs[key].title, key=SECTION.name,
        label_visibility="collapsed", required=True,
    )  # fmt: skip
    # beside the choice, not in its labels: what is clicked should not change under the hand
    n_songs = of.now.n_songs
    n_same = len(of.now.representative_of) + sum(len(paths) - 1 for paths in of.copies.values())
    numbers = (
        (n_songs, "song" if n_songs == 1 else "songs"),
        (len(of.failures), "failed"),
        (len(of.missing), "missing"),
        (n_same, "duplicate" if n_same == 1 else "duplicates"),
    )
    st.caption(" · ".join(f"{number:,} {name}" for number, name in numbers))
    tabs.get(section or "", tabs[SECTION.default()]).draw(of.now)


if __name__ == "__main__":
    draw()
