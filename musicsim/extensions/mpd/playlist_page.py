"""The playlist in MPD's queue, or among its playlists."""

from collections.abc import Callable, Sequence

import streamlit as st

from musicsim.extensions.mpd.client import Mpd, is_mpd_set, mpd_address
from musicsim.library import Library, Song
from musicsim.ui.base.keys import Key
from musicsim.ui.base.text import plain
from musicsim.ui.playlist.sending import Sending, target_button

_REPLACE: Key[bool] = Key("playlist_mpd_replace", lambda: False, "whether a playlist of MPD may be replaced")


def target(sending: Sending) -> Callable[[], None] | None:
    """Offer MPD if its address is set."""
    return (lambda: _draw(sending)) if is_mpd_set(sending.snapshot.library) else None


def _draw(sending: Sending) -> None:
    _REPLACE.get()
    target_button(sending, "Queue in MPD", ":material/queue_music:", _queue, key="playlist_mpd_queue", needs_name=False)
    target_button(sending, "Save in MPD", ":material/save:", _save, key="playlist_mpd_save")
    st.toggle(f"Replace “{plain(sending.name)}” if MPD has it", key=_REPLACE.name, persist_state="session")


def _queue(library: Library, _: str, songs: Sequence[Song]) -> tuple[str, Sequence[Song], str]:
    with Mpd(library, mpd_address(library)) as mpd:
        return "Queued in MPD.", mpd.queue(songs), "MPD does not have"


def _save(library: Library, name: str, songs: Sequence[Song]) -> tuple[str, Sequence[Song], str]:
    with Mpd(library, mpd_address(library)) as mpd:
        unknown = mpd.save(name, songs, replace=_REPLACE.get())
    return f"Saved in MPD as “{plain(name)}”.", unknown, "MPD does not have"
