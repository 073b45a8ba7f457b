"""The Listening tab of the Library page: imports, and imported songs that are not in the library."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from musicsim.explorer import Snapshot
from musicsim.library import Library, day_of
from musicsim.library.importing import Proposal, accept, match_waiting, refuse, waiting_proposals
from musicsim.library.stores.listening import ImportEntry, Waiting
from musicsim.ui.base import BY_STATE, Key, off_if, plain
from musicsim.ui.components import start_job
from musicsim.ui.library import listening_import
from musicsim.wording import count, count_are

_MAX_IMPORTS = 25


@dataclass(frozen=True, slots=True)
class _Close:
    """Similar spellings of a library's unmatched songs; each new `round` clears the table's selections."""

    library: Path | None = None
    proposals: tuple[Proposal, ...] = ()
    round: int = 0


_CLOSE: Key[_Close] = Key("listening_proposals", _Close, "similar spellings to decide on")


def show_listening(snapshot: Snapshot, *, busy: bool) -> None:
    """Show the import panel, earlier imports, and unmatched songs."""
    library = snapshot.library
    listening_import.import_panel(library, busy=busy)
    entries = library.listening.imports()
    st.header("Imports", anchor=False)
    if not entries:
        st.caption("Nothing imported yet. Models can learn similarity from plays, tags and playlists.")
    for entry in entries[:_MAX_IMPORTS]:
        _show_import(library, entry)
    if len(entries) > _MAX_IMPORTS:
        st.caption(f"{len(entries) - _MAX_IMPORTS} earlier imports; `musicsim imports` lists them.")
    if entries:
        st.header("Not matched yet", anchor=False)
        _show_unmatched(library)


def _show_import(library: Library, entry: ImportEntry) -> None:
    facts = [count(entry.n_rows, "row"), f"{entry.n_matched:,} of {count(entry.n_songs, 'song')} in the library"]
    facts += [f"listener {plain(entry.listener)}"] if entry.listener else []
    first, last = day_of(entry.first_at), day_of(entry.last_at)
    facts += [f"{first} to {last}"] if first and last else []
    facts += [f"{entry.n_skipped:,} left out"] if entry.n_skipped else []

    def remove() -> None:
        if library.listening.undo(entry.id).kind == "playlists":
            start_job(library, "walk")
        st.toast(f"Import {entry.id} was undone.", icon=":material/check_circle:")

    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
        st.markdown(
            f"**{entry.id}** · {plain(entry.name)} · {plain(listening_import.format_label(entry.format))} · "
            f"{day_of(entry.created_at)}  \n:small[:gray[{' · '.join(facts)}]]"
        )
        with st.popover("Undo", icon=":material/undo:"):
            st.write("Removes everything that this import added, matched or not. Your files are not changed.")
            st.button("Undo import", type="primary", key=f"listening_undo_{entry.id}", on_click=remove)


@st.cache_resource(max_entries=4, show_spinner=False, hash_funcs=BY_STATE)
def _load_unmatched(library: Library) -> list[Waiting]:
    return library.listening.list_unmatched()


def _show_unmatched(library: Library) -> None:
    songs = _load_unmatched(library)
    if not songs:
        st.caption("Everything is matched: all songs in the imported plays and tags are in the library.")
    else:
        st.caption(
            f"{count_are(len(songs), 'imported song')} not in the library. Plays and tags are kept, and are assigned "
            "when a scan finds the songs."
        )
        with st.expander("Show them"):
            listening_import.show_waiting(songs, "listening_waiting")
        is_asked = st.button("Look for similar spellings", icon=":material/spellcheck:", key="listening_close")
        with st.container():
            if is_asked:
                match_waiting(library)  # tags may have been edited since the last scan
                with listening_import.show_progress("Comparing") as progress:
                    found = waiting_proposals(library, progress=progress)
                _CLOSE.set(_Close(library.folder, tuple(found), _CLOSE.get().round + 1))
        _show_proposals(library)
    n_judged = len(library.listening.list_decisions())
    if n_judged:
        st.button(
            f"Reset {count(n_judged, 'spelling decision')}", icon=":material/undo:", key="listening_forget",
            on_click=library.listening.forget_decisions,
            help="These spellings will be proposed again, here and in later imports. Plays already assigned are kept.",
        )  # fmt: skip


def _show_proposals(library: Library) -> None:
    close = _CLOSE.get()
    if close.library != library.folder:
        return
    if not close.proposals:
        st.caption("No song in the library has a similar spelling.")
        return
    ticked = listening_import.proposals_table(close.proposals, f"listening_waiting_close_{close.round}")
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            "Same song", icon=":material/check:", key="listening_accept",
            **off_if(not ticked, "Select rows first."),
            on_click=_settle, args=(library, close, ticked, accept),
        )  # fmt: skip
        st.button(
            "Different song", icon=":material/close:", key="listening_refuse",
            **off_if(not ticked, "Select rows first."),
            on_click=_settle, args=(library, close, ticked, refuse),
        )  # fmt: skip
        st.caption("Select rows to accept or reject them; rejected suggestions do not come back.")


def _settle(
    library: Library, close: _Close, ticked: list[Proposal], judge: Callable[[Library, list[Proposal]], int | None]
) -> None:
    judge(library, ticked)
    left = tuple(proposal for proposal in close.proposals if proposal not in ticked)
    _CLOSE.set(_Close(library.folder, left, close.round + 1))
