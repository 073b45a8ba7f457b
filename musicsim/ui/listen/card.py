"""The current song (the one that is playing, or the seed), and why it is in the queue."""

import streamlit as st

from musicsim.explorer.playlists.queue import QueueItem
from musicsim.explorer.search.query import Example
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library import Song
from musicsim.ui.base.text import plain
from musicsim.ui.components.song_list import show_cover
from musicsim.ui.components.why_view import ask_why
from musicsim.ui.listen.add_sound import show_upload_actions
from musicsim.ui.listen.feedback import THUMBS, press_thumb
from musicsim.ui.listen.queue_view import is_playing
from musicsim.ui.listen.seed import PLAY_AT, Seed
from musicsim.wording import clock, count

_MAX_WHOLE = 60  # number of letters that fit on two lines of a phone; the page cuts longer titles


def show_card(snapshot: Snapshot, seed: Seed, items: list[QueueItem], item: QueueItem | None) -> None:
    """Show the current song: `item`, or the seed if `item` is None."""
    if item is not None:
        _show_song(snapshot, item.song, item.reason)
    elif seed.upload is not None and isinstance(seed.example, Example):
        st.header(plain(seed.upload.name), anchor=False)
        st.caption(f"Your sound · {clock(seed.example.duration_s)}")
        show_upload_actions(snapshot, seed)
    elif seed.song is not None:
        _show_song(snapshot, seed.song, "")
    else:
        st.header(f"{count(len(items), 'song')} that match" if items else "No songs match these filters", anchor=False)


def card_actions(seed: Seed, items: list[QueueItem], item: QueueItem | None, *, can_explain: bool) -> None:
    """Show the actions on the current song."""
    if item is None:
        st.button(
            "Play", icon=":material/play_arrow:", type="secondary" if is_playing(seed) else "primary",
            on_click=PLAY_AT.set, args=(-1,), key="card_play",
        )  # fmt: skip
        return
    if can_explain:
        st.button("Why?", icon=":material/help:", on_click=ask_why, args=(item.song.id,), key="card_why")
    _thumb_buttons(seed, item.song, [one.song for one in items])


def _show_song(snapshot: Snapshot, song: Song, reason: str) -> None:
    tempo = song.tempo and f"{song.tempo:.0f} beats/min"
    facts = [song.byline, song.album, song.genre, song.year and str(song.year), song.key_words, tempo]
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="listen_card"):
        show_cover(snapshot.library, song)
        with st.container(width="stretch", gap=None):
            is_cut = len(song.title) > _MAX_WHOLE
            st.header(plain(song.title), anchor=False, help=plain(song.title) if is_cut else None)
            st.caption(" · ".join(plain(f) for f in [*facts, clock(song.duration_s)] if f))
            if reason:
                st.caption(f":material/near_me: {plain(reason)}")
    if song.notes:
        st.caption(f":material/info: {plain(song.notes)}")


def _thumb_buttons(seed: Seed, song: Song, shown: list[Song]) -> None:
    for kind, icon, label in (("like", "thumb_up", "Fits"), ("unlike", "thumb_down", "Does not fit")):
        st.button(
            label, icon=f":material/{icon}:", key=f"card_{kind}", on_click=press_thumb,
            args=(seed.name, song.id, THUMBS[kind], shown),
        )  # fmt: skip
