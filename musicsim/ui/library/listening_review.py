"""The section Listening of the Library page: imports that were made, and songs that wait for their file."""

from collections.abc import Callable
from pathlib import Path

import streamlit as st

from musicsim.library import Library
from musicsim.library.importing import Proposal, accept, day_of, match_waiting, refuse, undo, waiting_proposals
from musicsim.library.stores.listening import ImportEntry, Waiting
from musicsim.ui.base.keys import Key
from musicsim.ui.base.text import plain
from musicsim.ui.library.listening_import import (
    download_waiting,
    format_label,
    import_panel,
    proposals_table,
    show_progress,
    waiting_table,
)
from musicsim.ui.library.listening_lists import learn_walk

Judge = Callable[[Library, list[Proposal]], int | None]

_IMPORTS_SHOWN = 25
_CLOSE: Key[tuple[Path, list[Proposal]] | None] = Key(
    "listening_proposals", lambda: None, "close spellings of what waits, of the library in this folder"
)
_ROUND: Key[int] = Key("listening_judged", int, "judgements of close spellings: each table begins unmarked")


def listening_review(library: Library, *, busy: bool) -> None:
    """Import files of listening, undo imports, and look after what waits for its song."""
    import_panel(library, busy=busy)
    entries = library.listening.imports()
    st.subheader("Imports", anchor=False)
    if not entries:
        st.caption("Nothing imported yet. Plays, tags and playlists teach the library what is similar.")
    for entry in entries[:_IMPORTS_SHOWN]:
        _import_row(library, entry)
    if len(entries) > _IMPORTS_SHOWN:
        st.caption(f"{len(entries) - _IMPORTS_SHOWN} earlier ones: `musicsim imports` lists them.")
    if entries:
        st.subheader("Not matched yet", anchor=False)
        _waiting(library)


# --- imports ----------------------------------------------------------------------------------


def _import_row(library: Library, entry: ImportEntry) -> None:
    facts = [f"{entry.n_rows:,} rows", f"{entry.n_matched:,} of {entry.n_songs:,} songs here"]
    facts += [f"listener {plain(entry.listener)}"] if entry.listener else []
    first, last = day_of(entry.first_at), day_of(entry.last_at)
    facts += [f"{first} to {last}"] if first and last else []
    facts += [f"{entry.n_skipped:,} left out"] if entry.n_skipped else []
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
        st.markdown(
            f"**{entry.id}** · {plain(entry.name)} · {plain(format_label(entry.format))} · "
            f"{day_of(entry.created_at)}  \n:small[:gray[{' · '.join(facts)}]]"
        )
        with st.popover("Undo", icon=":material/undo:"):
            st.write("Removes everything it added, matched or not. The files are not touched.")
            st.button(
                "Undo import", type="primary", key=f"listening_undo_{entry.id}",
                on_click=_undo, args=(library, entry.id),
            )  # fmt: skip


def _undo(library: Library, import_id: int) -> None:
    entry = undo(library, import_id)
    if entry.kind == "playlists":
        learn_walk(library)
    st.toast(f"Import {entry.id} is undone.", icon=":material/check_circle:")


# --- what waits -------------------------------------------------------------------------------


@st.cache_resource(max_entries=4, show_spinner=False)
def _waiting_songs(folder: Path, revision: int, _library: Library) -> list[Waiting]:
    return _library.listening.unmatched()


def _waiting(library: Library) -> None:
    songs = _waiting_songs(library.folder, library.revision, library)
    if not songs:
        st.caption("Everything is matched: every song of imported plays and tags is in the library.")
    else:
        st.caption(
            f"{len(songs):,} songs of the imports are not in the library. They get their plays and tags as soon as "
            f"a scan finds them."
        )
        with st.expander("Show them"):
            waiting_table(songs)
            download_waiting(lambda: songs, "listening_waiting")
        asked = st.button("Look for close spellings", icon=":material/spellcheck:", key="listening_close")
        with st.container():
            if asked:
                _compare(library)
        _judge(library)
    n_judged = len(library.listening.judged())
    if n_judged:
        st.button(
            f"Reset {n_judged:,} spelling decision{'s' * (n_judged != 1)}",
            icon=":material/undo:", key="listening_forget", on_click=library.listening.forget_judged,
            help="They will be proposed again, here and in later imports. Plays already assigned are "
            "kept.",
        )  # fmt: skip


def _compare(library: Library) -> None:
    match_waiting(library)  # tags may have been corrected since the last scan
    with show_progress("Comparing") as progress:
        found = waiting_proposals(library, progress=progress)
    _CLOSE.set((library.folder, found))
    _ROUND.set(_ROUND.get() + 1)


def _judge(library: Library) -> None:
    """Close spellings that were looked for: ticked ones are accepted or refused."""
    of, proposals = _CLOSE.get() or (None, [])
    if of != library.folder:
        return
    if not proposals:
        st.caption("No song in the library has a similar spelling.")
        return
    ticked = proposals_table(proposals, f"listening_waiting_close_{_ROUND.get()}")
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            "Same song", icon=":material/check:", disabled=not ticked, key="listening_accept",
            on_click=_settle, args=(library, proposals, ticked, accept),
        )  # fmt: skip
        st.button(
            "Another song", icon=":material/close:", disabled=not ticked, key="listening_refuse",
            on_click=_settle, args=(library, proposals, ticked, refuse),
        )  # fmt: skip
        st.caption("Tick rows to accept or reject them; rejected ones are not proposed again.")


def _settle(library: Library, proposals: list[Proposal], ticked: list[Proposal], judge: Judge) -> None:
    judge(library, ticked)
    _CLOSE.set((library.folder, [p for p in proposals if p not in ticked]))
    _ROUND.set(_ROUND.get() + 1)
