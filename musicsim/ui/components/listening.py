"""Songs of a library for the player, and the player's events."""

from collections.abc import Sequence
from urllib.parse import quote, urlencode

import streamlit as st

from musicsim.explorer.libraries import library_folders, open_library
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library import Library, Song
from musicsim.ui.base.frame import PAGES
from musicsim.ui.base.keys import CHOSEN, LIBRARY, QUEUE_LIBRARY
from musicsim.ui.base.openers import active_library, find_chosen_model
from musicsim.ui.base.uploads import EXAMPLE
from musicsim.ui.base.visitors import opinions
from musicsim.ui.components import player
from musicsim.ui.components.cover import cover_address
from musicsim.ui.components.song_list import Action


def track(library: Library, song: Song, *, preview: bool = False) -> player.Track:
    """Return a song for the player; a preview starts at its most typical 30 seconds."""
    address = f"/songs/{song.id}/{{}}?library={quote(library.name)}"
    return player.Track(
        song.id, song.title, song.by, address.format("audio"), address.format("peaks"), song.duration_s,
        song.typical_s if preview else 0.0, cover_url=cover_address(library, song.id), loudness=song.loudness,
    )  # fmt: skip


def play_songs(library: Library, songs: Sequence[Song], start: int = 0, *, preview: bool = False) -> None:
    """Replace the queue by these songs and play; a preview starts each at its most typical 30 seconds."""
    QUEUE_LIBRARY.set(library.name)
    player.play([track(library, song, preview=preview) for song in songs], start)


def play_preview(snapshot: Snapshot, song_id: int) -> None:
    """Play a song from its most typical 30 seconds."""
    play_songs(snapshot.library, snapshot.songs_by_id([song_id]), preview=True)


def enqueue_songs(library: Library, songs: Sequence[Song]) -> None:
    """Append songs to the queue; songs of another library replace it."""
    if QUEUE_LIBRARY.get() not in ("", library.name):
        play_songs(library, songs)
        return
    QUEUE_LIBRARY.set(library.name)
    player.enqueue([track(library, song) for song in songs])


def follow(action: Action, snapshot: Snapshot, songs: Sequence[Song]) -> None:
    """Carry out an action on a row of results: play from there, queue the song, or search with it."""
    song = songs[action.index]
    if action.kind == "play":
        play_songs(snapshot.library, songs, action.index, preview=True)
    elif action.kind == "enqueue":
        enqueue_songs(snapshot.library, [song])
    elif action.kind == "similar":
        CHOSEN.set(song.id)
        EXAMPLE.set(None)


def thumbs() -> dict[int, int]:
    """Return the thumbs on the songs that may be in the queue."""
    return opinions(_queue_library()).feedback()


def radio_address() -> str:
    """Return the address that continues the queue after its last song."""
    library, model = _queue_library(), find_chosen_model()
    query = {"library": library.name}
    if model is not None and library is active_library():
        query["model"] = model.name
    return f"/radio?{urlencode(query)}"


def _queue_library() -> Library:
    exists = any(folder.name == QUEUE_LIBRARY.get() for folder in library_folders())
    return open_library(QUEUE_LIBRARY.get()) if exists else active_library()


def on_player_event(event: player.PlayerEvent) -> None:
    """Carry out an action of the player: set a thumb, or open a song on another page."""
    library = _queue_library()
    if not library.songs([event.song_id]):
        return  # the song was removed from its library since it was queued
    if event.kind == "thumb":
        opinions(library).set_feedback(event.song_id, event.value)
        return
    LIBRARY.set(library.name)
    CHOSEN.set(event.song_id)
    EXAMPLE.set(None)
    st.switch_page(PAGES["explore" if event.kind == "open" else "search"])
