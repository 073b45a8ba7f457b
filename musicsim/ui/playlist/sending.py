"""The menu that sends a playlist to other programs, with buttons from extensions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import streamlit as st

from musicsim.errors import ServerError
from musicsim.explorer import GeneratedPlaylist, PlaylistDraft, Snapshot
from musicsim.hooks import OfferTarget
from musicsim.library import Library, Song
from musicsim.registry import load_hooks
from musicsim.ui.base import off_if
from musicsim.ui.playlist.actions import PLAYLIST_TROUBLE
from musicsim.ui.playlist.draft import PLAYLIST_NAME


@dataclass(frozen=True, slots=True)
class Sending:
    """A playlist to send."""

    snapshot: Snapshot
    name: str  # name of the playlist; may be empty
    draft: PlaylistDraft
    drawn: GeneratedPlaylist


Send = Callable[[Library, str, Sequence[Song]], tuple[str, Sequence[Song], str]]
"""Sends the songs as a playlist with this name. Returns a message, the songs that were left out, and the reason."""


def send_button(snapshot: Snapshot, draft: PlaylistDraft, drawn: GeneratedPlaylist) -> None:
    """Show a menu of the programs that the user has set up; without programs, show nothing."""
    sending = Sending(snapshot, PLAYLIST_NAME.get().strip(), draft, drawn)
    targets = [target(sending) for target in load_hooks(OfferTarget)]
    if any(targets):
        with st.popover("Send", icon=":material/send:", key="playlist_send"):
            for draw in filter(None, targets):
                draw()


def target_button(sending: Sending, label: str, icon: str, send: Send, *, key: str, needs_name: bool = True) -> None:
    """Show a button that sends the playlist and shows the result."""

    def click() -> None:
        try:
            message, left_out, reason = send(sending.snapshot.library, sending.name, sending.drawn.songs)
        except ServerError as error:
            PLAYLIST_TROUBLE.set(str(error))
            return
        st.toast(message, icon=":material/check_circle:")
        if left_out:
            PLAYLIST_TROUBLE.set(f"{reason} {', '.join(song.label for song in left_out)}.")

    is_off = off_if(needs_name and not sending.name, "Enter a name first.")
    st.button(label, icon=icon, key=key, width="stretch", on_click=click, **is_off)
