"""From songs of a library to the player, and back from what the listener does there."""

from collections.abc import Sequence
from urllib.parse import quote

import streamlit as st

from musicsim.explorer.snapshot import Snapshot
from musicsim.library import Library, Song
from musicsim.ui import player
from musicsim.ui.song_list import Action
from musicsim.ui.state import CHOSEN, EXAMPLE, active_library

__all__ = ["PAGES", "follow", "on_player_event", "play_songs"]

PAGES = {"explore": "explore.py", "search": "search.py", "playlist": "playlist.py", "library": "library.py"}
"""Files of the pages beside the shell, by the name in their address."""


def _track(library: Library, song: Song) -> player.Track:
    where = f"/songs/{song.id}/{{}}?library={quote(library.name)}"
    artist = song.artist or "unknown artist"
    return player.Track(
        song.id, song.title, artist, where.format("audio"), where.format("peaks"), song.duration_s
    )


def play_songs(library: Library, songs: Sequence[Song], start: int = 0) -> None:
    """Replace the queue by these songs and play."""
    player.play([_track(library, song) for song in songs], start)


def follow(action: Action, snapshot: Snapshot, songs: Sequence[Song]) -> None:
    """Do what a row of a song list asks for: play from here on, queue, or search with the song."""
    song = songs[action.index]
    if action.kind == "play":
        play_songs(snapshot.library, songs, action.index)
    elif action.kind == "enqueue":
        player.enqueue([_track(snapshot.library, song)])
    elif action.kind == "similar":
        CHOSEN.set(song.id)
        EXAMPLE.set(None)


def on_player_event(event: player.PlayerEvent) -> None:
    """Do what the listener asked for in the player."""
    library = active_library()
    if not library.songs([event.song_id]):
        return  # the queue may hold songs of a library that is not shown
    if event.kind == "thumb":
        library.set_feedback(event.song_id, event.value)
        return
    CHOSEN.set(event.song_id)
    EXAMPLE.set(None)
    st.switch_page(PAGES["explore" if event.kind == "open" else "search"])
