"""The playlist for other programs: to a music server, into MPD's queue, among its playlists, or to ListenBrainz."""

from collections.abc import Callable, Sequence

import streamlit as st

from musicsim.errors import ServerError
from musicsim.explorer.playlists.walk import DrawnPlaylist
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.extensions.listenbrainz.client import has_token, send_playlist
from musicsim.extensions.mpd.client import Mpd, is_mpd_set, mpd_address
from musicsim.extensions.music_servers.playlist_page import send_to_server, servers_of
from musicsim.library import Library, Song
from musicsim.ui.base.state import Key
from musicsim.ui.base.text import plain
from musicsim.ui.playlist.actions import TROUBLE
from musicsim.ui.playlist.draft import PlaylistDraft
from musicsim.ui.playlist.saved import NAME

_REPLACE: Key[bool] = Key("playlist_mpd_replace", lambda: False, "whether a playlist of MPD may be replaced")


def send_button(now: Snapshot, draft: PlaylistDraft, drawn: DrawnPlaylist) -> None:
    """Send the list to the programs that are set; nothing where none is."""
    library, name, songs = now.library, NAME.get().strip(), drawn.songs
    if not is_mpd_set(library) and not has_token(library) and not servers_of(library):
        return
    with st.popover("Send", icon=":material/send:", key="playlist_send"):
        send_to_server(now, name, draft, drawn)
        if is_mpd_set(library):
            _REPLACE.get()
            st.button(
                "Queue in MPD", icon=":material/queue_music:", key="playlist_mpd_queue", width="stretch",
                on_click=_send, args=(_queue_in_mpd, library, name, songs),
            )  # fmt: skip
            st.button(
                "Save in MPD", icon=":material/save:", key="playlist_mpd_save", width="stretch", disabled=not name,
                on_click=_send, args=(_save_in_mpd, library, name, songs),
            )  # fmt: skip
            st.toggle(f"Replace “{plain(name)}” if MPD has it", key=_REPLACE.name, persist_state="session")
        if has_token(library):
            st.button(
                "Send to ListenBrainz", icon=":material/cloud_upload:", key="playlist_listenbrainz", width="stretch",
                disabled=not name, on_click=_send, args=(_send_to_listenbrainz, library, name, songs),
            )  # fmt: skip


_Way = Callable[[Library, str, Sequence[Song]], tuple[str, Sequence[Song], str]]
"""Sends songs as a playlist of a name; says what was done, which songs were left out, and why."""


def _queue_in_mpd(library: Library, _: str, songs: Sequence[Song]) -> tuple[str, Sequence[Song], str]:
    with Mpd(library, mpd_address(library)) as mpd:
        return "Queued in MPD.", mpd.queue(songs), "MPD does not have"


def _save_in_mpd(library: Library, name: str, songs: Sequence[Song]) -> tuple[str, Sequence[Song], str]:
    with Mpd(library, mpd_address(library)) as mpd:
        unknown = mpd.save(name, songs, replace=_REPLACE.get())
    return f"Saved in MPD as “{plain(name)}”.", unknown, "MPD does not have"


def _send_to_listenbrainz(library: Library, name: str, songs: Sequence[Song]) -> tuple[str, Sequence[Song], str]:
    sent = send_playlist(library, name, songs)
    return (f"Sent to [ListenBrainz]({sent.address}).", sent.lacking, "Left out, as they have no MusicBrainz id:")


def _send(way: _Way, library: Library, name: str, songs: Sequence[Song]) -> None:
    try:
        done, left_out, why = way(library, name, songs)
    except ServerError as error:
        TROUBLE.set(str(error))
        return
    st.toast(done, icon=":material/check_circle:")
    if left_out:
        TROUBLE.set(f"{why} {', '.join(song.label for song in left_out)}.")
