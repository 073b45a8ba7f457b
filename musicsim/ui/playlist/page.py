"""The Playlists page: playlists that follow the songs' common features, with a reason for every step."""

import streamlit as st

from musicsim.explorer import PlaylistDraft, Snapshot, Walk
from musicsim.public import is_public, visitor_may
from musicsim.ui.base import openers, plain
from musicsim.ui.base.frame import asset
from musicsim.ui.base.keys import SECTIONS
from musicsim.ui.base.sections import Tab, draw_sections, tabs_of
from musicsim.ui.components import show_play_button
from musicsim.ui.components.beginnings import beginnings_of
from musicsim.ui.components.jobs_view import stop_without_songs
from musicsim.ui.playlist.actions import PLAYLIST_TROUBLE
from musicsim.ui.playlist.draft import PLAYLIST
from musicsim.ui.playlist.export import export_button
from musicsim.ui.playlist.saved import follow_address, propose_name, save_button, show_address, show_saved
from musicsim.ui.playlist.sending import send_button
from musicsim.ui.playlist.sentence import show_sentence
from musicsim.ui.playlist.view import (
    absent_songs,
    dialect_of,
    show_bar,
    show_largest_step,
    show_map,
    show_notes,
    show_rows,
)
from musicsim.ui.playlist.walks import open_walk
from musicsim.wording import clock, count

_YOURS = "Yours"
_SECTION = SECTIONS["playlist"]


def _show_playlist(snapshot: Snapshot, walker: Walk) -> None:
    follow_address(snapshot)
    draft = PLAYLIST.get()
    if draft is not None:
        draft = draft.skip_absent(snapshot)
        PLAYLIST.set(draft)
    saved = show_address(snapshot)
    st.html(f"<style>{asset('playlist.css')}</style>")
    show_sentence(snapshot, walker)
    show_bar(snapshot, walker, draft)
    trouble = PLAYLIST_TROUBLE.get()
    if draft is not None:  # without a playlist, the reason stays until the next request
        PLAYLIST_TROUBLE.set("")
    if trouble:
        st.error(plain(trouble), icon=":material/error:")
    if draft is None or not draft.song_ids:
        st.caption("Click a part of the sentence to change it. Each song is shown with the reason it was chosen.")
        with st.container(horizontal=True, gap="small"):
            for number, offer in enumerate(beginnings_of(snapshot)):
                show_play_button(
                    offer.label, key=f"playlist_begin_{number}", library=snapshot.library, song_ids=offer.song_ids,
                    act="similar", help="Play these, and similar songs after them, on Listen.",
                )  # fmt: skip
        groups = {_YOURS: Tab(_YOURS, 20, [show_saved])}
        for group in tabs_of("playlists", groups).values():
            group.draw(snapshot)
    else:
        _show_draft(snapshot, walker, draft, f"Saved as “{plain(saved.name)}”." if saved else "")


def _show_draft(snapshot: Snapshot, walker: Walk, draft: PlaylistDraft, status: str) -> None:
    drawn = walker.explain(draft.song_ids, draft.edges, dialect_of(draft, walker))
    songs = list(drawn.songs)
    propose_name(songs)
    is_owner = not is_public()
    st.button(
        "All playlists", icon=":material/arrow_back:", type="tertiary", key="playlist_close",
        on_click=PLAYLIST.set, args=(None,), help="Undo brings this playlist back.",
    )  # fmt: skip
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        heading = f"{count(len(songs), 'song')} · {clock(drawn.duration_s)}"
        st.header(heading, anchor=False, width="content")
        ids, library = [song.id for song in songs], snapshot.library
        show_play_button("Play through", key="playlist_play", library=library, song_ids=ids)
        show_play_button("Add to queue", key="playlist_enqueue", library=library, song_ids=ids, act="enqueue")
        if is_owner:
            save_button(snapshot)
        export_button(snapshot, [*songs, *absent_songs(snapshot, draft)])
        if is_owner:
            send_button(snapshot, draft, drawn)
        if status:
            st.caption(status, width="content")
    show_notes(snapshot, draft)
    show_largest_step(snapshot, draft)
    rows, beside = st.columns([3, 2], gap="medium")
    with rows:
        show_rows(snapshot, walker, draft, drawn)
        draw_sections("open playlist", snapshot)
    with beside:
        show_map(snapshot, draft)


@visitor_may
def draw() -> None:
    """Draw the page."""
    snapshot = openers.snapshot()
    st.title("Playlists", anchor=False)
    stop_without_songs(snapshot)
    walker = open_walk(snapshot)
    if walker is None:
        return
    tabs = tabs_of("playlist", {})
    section = _SECTION.get()
    if section not in tabs:
        _show_playlist(snapshot, walker)
        return
    st.button(
        "All playlists", icon=":material/arrow_back:", type="tertiary", key="playlist_back",
        on_click=_SECTION.set, args=("",),
    )  # fmt: skip
    st.header(tabs[section].title, anchor=False)
    tabs[section].draw(snapshot)


if __name__ == "__main__":
    draw()
