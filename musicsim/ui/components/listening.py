"""Songs of a library for the player, and the player's events."""

from collections.abc import Sequence
from urllib.parse import quote, urlencode

import streamlit as st

from musicsim.explorer.libraries import library_folders, open_library
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library import Library, Song
from musicsim.public import is_public
from musicsim.ui.base.frame import PAGES
from musicsim.ui.base.keys import CHOSEN, LIBRARY, QUEUE_LIBRARY, Key
from musicsim.ui.base.openers import active_library, chosen_model
from musicsim.ui.base.uploads import EXAMPLE
from musicsim.ui.base.visitors import opinions
from musicsim.ui.components import player
from musicsim.ui.components.cover import cover_address
from musicsim.ui.components.song_list import Action

FOLLOWED: Key[tuple[str, tuple[int, ...]]] = Key(
    "player_followed", lambda: ("", ()), "name and song ids of the queue that the Listen page keeps up to date"
)


def track(library: Library, song: Song, *, preview: bool = False) -> player.Track:
    """Return a song for the player; a preview starts at its most typical 30 seconds."""
    address = f"/songs/{song.id}/{{}}?library={quote(library.name)}"
    return player.Track(
        song.id, song.title, song.by, address.format("audio"), address.format("peaks"), song.duration_s,
        song.typical_s if preview else 0.0, cover_url=cover_address(library, song.id), loudness=song.loudness,
    )  # fmt: skip


def play_songs(
    library: Library, songs: Sequence[Song], start: int = 0, *, preview: bool = False, queue: str = ""
) -> None:
    """Replace the queue by these songs and play; a preview starts the first at its most typical 30 seconds."""
    tracks = [track(library, song, preview=preview and place == start) for place, song in enumerate(songs)]
    play_tracks(library, tracks, start, queue=queue)


def play_tracks(library: Library, tracks: Sequence[player.Track], start: int = 0, *, queue: str = "") -> None:
    """Replace the queue by tracks of a library, or of uploads to it, and play; `queue` is its name on Listen."""
    QUEUE_LIBRARY.set(library.name)
    FOLLOWED.set((queue, tuple(one.song_id for one in tracks)) if queue else FOLLOWED.default())
    player.play(tracks, start)  # ends a callback of a fragment


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
    """Carry out an action on a row of results: play from there, queue the song, or choose it."""
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
    library, model = _queue_library(), chosen_model()
    query = {"library": library.name}
    if model is not None and library is active_library():
        query["model"] = model.name
    return f"/radio?{urlencode(query)}"


def plays_address() -> str:
    """Return the address for plays and skips; empty if they are not stored."""
    library = _queue_library()
    is_stored = not is_public() and library.settings["keep_plays"]
    return f"/plays?{urlencode({'library': library.name})}" if is_stored else ""


def _queue_library() -> Library:
    exists = any(folder.name == QUEUE_LIBRARY.get() for folder in library_folders())
    return open_library(QUEUE_LIBRARY.get()) if exists else active_library()


def on_player_event(event: player.PlayerEvent) -> None:
    """Carry out an action of the player: set a thumb, or start the queue of the Listen page from the song."""
    library = _queue_library()
    if not library.songs([event.song_id]):
        return  # the song was removed from its library since it was queued
    if event.kind == "thumb":
        opinions(library).set_feedback(event.song_id, event.value)
        return
    LIBRARY.set(library.name)
    if event.kind == "more_like_this" or event.song_id not in FOLLOWED.get()[1]:
        CHOSEN.set(event.song_id)
        EXAMPLE.set(None)
    st.switch_page(PAGES["listen"])
