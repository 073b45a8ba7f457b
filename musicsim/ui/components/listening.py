"""From songs of a library to the player, and back from what the listener does there."""

from collections.abc import Sequence
from urllib.parse import quote, urlencode

import streamlit as st

from musicsim.explorer.libraries import library_folders, open_library
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library import Library, Song
from musicsim.ui.base.frame import PAGES
from musicsim.ui.base.keys import CHOSEN, LIBRARY, QUEUE_LIBRARY
from musicsim.ui.base.openers import active_library, chosen_model
from musicsim.ui.base.uploads import EXAMPLE
from musicsim.ui.base.visitors import opinions
from musicsim.ui.components import player
from musicsim.ui.components.cover import cover_address
from musicsim.ui.components.song_list import Action


def track(library: Library, song: Song, *, preview: bool = False) -> player.Track:
    """What the player needs to know of a song; a preview starts at its most typical 30 seconds."""
    where = f"/songs/{song.id}/{{}}?library={quote(library.name)}"
    return player.Track(
        song.id,
        song.title,
        song.by,
        where.format("audio"),
        where.format("peaks"),
        song.duration_s,
        song.typical_s if preview else 0.0,
        cover_url=cover_address(library, song.id),
        loudness=song.loudness,
    )


def play_songs(library: Library, songs: Sequence[Song], start: int = 0, *, preview: bool = False) -> None:
    """Replace the queue by these songs and play; a preview starts each at its most typical 30 seconds."""
    QUEUE_LIBRARY.set(library.name)
    player.play([track(library, song, preview=preview) for song in songs], start)


def enqueue_songs(library: Library, songs: Sequence[Song]) -> None:
    """Append to the queue; a queue holds songs of one library, another one starts again."""
    if QUEUE_LIBRARY.get() not in ("", library.name):
        play_songs(library, songs)
        return
    QUEUE_LIBRARY.set(library.name)
    player.enqueue([track(library, song) for song in songs])


def follow(action: Action, snapshot: Snapshot, songs: Sequence[Song]) -> None:
    """Do what a row of results asks for: hear them from here on, queue, or search with the song."""
    song = songs[action.index]
    if action.kind == "play":
        play_songs(snapshot.library, songs, action.index, preview=True)
    elif action.kind == "enqueue":
        enqueue_songs(snapshot.library, [song])
    elif action.kind == "similar":
        CHOSEN.set(song.id)
        EXAMPLE.set(None)


def thumbs() -> dict[int, int]:
    """Opinions on the songs that may be in the queue."""
    return opinions(_queue_library()).feedback()


def radio_address() -> str:
    """Where the player asks for what follows the last song of its queue."""
    library, model = _queue_library(), chosen_model()
    asked = {"library": library.name}
    if model is not None and library is active_library():
        asked["model"] = model.name
    return f"/radio?{urlencode(asked)}"


def _queue_library() -> Library:
    known = {folder.name for folder in library_folders()}
    return open_library(QUEUE_LIBRARY.get()) if QUEUE_LIBRARY.get() in known else active_library()


def on_player_event(event: player.PlayerEvent) -> None:
    """Do what the listener asked for in the player."""
    library = _queue_library()
    if not library.songs([event.song_id]):
        return  # the song has left its library since it was queued
    if event.kind == "thumb":
        opinions(library).set_feedback(event.song_id, event.value)
        return
    LIBRARY.set(library.name)
    CHOSEN.set(event.song_id)
    EXAMPLE.set(None)
    st.switch_page(PAGES["explore" if event.kind == "open" else "search"])
