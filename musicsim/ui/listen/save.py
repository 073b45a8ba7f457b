"""The queue as a playlist: saved in the library, and opened on the Playlist page."""

import streamlit as st

from musicsim.explorer.playlists.queue import QueueItem
from musicsim.explorer.playlists.walk import Edge
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library.stores.playlists import OWN_PLAYLISTS
from musicsim.public import is_public
from musicsim.ui.base.frame import PAGES
from musicsim.ui.base.text import plain, toast_errors
from musicsim.ui.listen.seed import WORDS, Seed
from musicsim.ui.playlist.draft import PlaylistDraft
from musicsim.ui.playlist.request_form import open_draft
from musicsim.ui.playlist.saved import MAX_NAME, save_draft
from musicsim.wording import add_number, count


def save_popover(snapshot: Snapshot, seed: Seed, items: list[QueueItem]) -> None:
    """Show a button that saves the queue as a playlist or opens it as one."""
    if not items:
        return
    draft = _draft(seed, items)
    with st.popover("Save", key="listen_save"):
        if not is_public():
            proposed = _propose_name(snapshot, seed)
            name = st.text_input("Name", proposed, key=f"listen_name_{proposed}", max_chars=MAX_NAME).strip()
            # not a callback, because a fragment's callback cannot show a toast
            if st.button(f"Save {count(len(draft.song_ids), 'song')}", type="primary", key="listen_save_it"):
                _save(snapshot, draft, name or proposed)
        if st.button("Open on Playlist", icon=":material/queue_music:", key="listen_open"):
            open_draft(snapshot, draft)
            st.switch_page(PAGES["playlist"])


def _draft(seed: Seed, items: list[QueueItem]) -> PlaylistDraft:
    """Return the queue as a draft with the walk's reasons, in which pinned songs stay in place."""
    first = () if seed.song is None else (seed.song.id,)
    ids = (*first, *(item.song.id for item in items))
    reasons = [*("" for _ in first), *(item.reason if item.similarity is None else "" for item in items)]
    steps = zip(ids, ids[1:], reasons[1:], strict=False)
    edges = {(one, other): Edge(reason, 0.0) for one, other, reason in steps if reason}
    return PlaylistDraft(ids, edges, frozenset(item.song.id for item in items if item.is_pinned))


def _propose_name(snapshot: Snapshot, seed: Seed) -> str:
    """Return a playlist name that is not in use yet."""
    start = seed.song.title if seed.song else seed.upload.name if seed.upload else WORDS.get()
    used = {playlist.name for playlist in snapshot.library.playlists(source=OWN_PLAYLISTS)}
    return add_number(f"From {start}"[: MAX_NAME - 4], used)


def _save(snapshot: Snapshot, draft: PlaylistDraft, name: str) -> None:
    with toast_errors(ValueError):
        open_draft(snapshot, save_draft(snapshot, draft, name))
        st.toast(f"Saved as “{plain(name)}”. The Playlist page shows it.", icon=":material/check_circle:")
