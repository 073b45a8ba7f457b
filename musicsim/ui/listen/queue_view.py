"""The queue: its rows, its actions, and its transfer to the player."""

from dataclasses import replace
from functools import partial

import streamlit as st

from musicsim.explorer.playlists.queue import QueueItem, QueueRequest, build_queue
from musicsim.explorer.playlists.shared_walk import share_walk
from musicsim.explorer.playlists.tracks import Track, make_queue_track, make_track
from musicsim.explorer.search.query import Example
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library import Song
from musicsim.progress import Progress
from musicsim.ui.base.desk import AT_ONCE_S, Task, desk, task_key, wait_for
from musicsim.ui.base.keys import Key
from musicsim.ui.base.text import plain
from musicsim.ui.components import player
from musicsim.ui.components.listening import FOLLOWED, play_tracks, upload_track
from musicsim.ui.components.song_list import Action, row_of, song_list
from musicsim.ui.components.why_view import ask_why
from musicsim.ui.listen import state
from musicsim.ui.listen.feedback import THUMBS, press_thumb, restore_thumbs, say_what_changed
from musicsim.ui.listen.save import save_popover
from musicsim.ui.listen.seed import PLAY_AT, Seed, begin_from, start_song
from musicsim.ui.listen.state import LISTEN

_N_HEARD = 2  # number of songs that are shown before the current one
_PLAYING: Key[int | None] = Key("listen_playing", lambda: None, "id of the song that is playing", is_kept=True)
_LAST: Key[tuple[str, list[QueueItem]]] = Key("listen_last", lambda: ("", []), "name of a seed, and its last queue")
_WAITING: Key[Task | None] = Key("listen_waiting", lambda: None, "task that computes the rest of the queue")


def queue_of(snapshot: Snapshot, seed: Seed, request: QueueRequest) -> list[QueueItem]:
    """Return the queue; until it is ready, return the seed's last queue, or at first the nearest songs.

    Raises the errors of :func:`build_queue`.
    """

    def work(progress: Progress) -> list[QueueItem]:
        progress("looking for the songs that follow", 0, 0)
        return build_queue(snapshot, share_walk(snapshot), request)

    asked = (seed.name, request.search, request.thumbs.votes, request.removed, LISTEN.get(), _pairs(LISTEN.get()))
    task = desk("queues").ask((task_key(snapshot, "queue"), asked), work, instead=_WAITING.get())
    is_done = task.wait(AT_ONCE_S)
    _WAITING.set(None if is_done else task)
    if is_done:
        _LAST.set((seed.name, task.future.result()))
    elif _LAST.get()[0] != seed.name:
        return build_queue(snapshot, None, request)
    return _LAST.get()[1]


def _pairs(now: state.ListenState) -> tuple[tuple[tuple[int, int], ...], ...]:
    return tuple(now.examples.items()), tuple(now.pins.items())


def follow_player() -> None:
    """Note each song that the player plays, so that it keeps its place; the queue grows if few songs are left."""

    def note(song_id: int) -> None:
        _PLAYING.set(song_id)
        name, items = _LAST.get()
        ids = [item.song.id for item in items]
        if song_id in ids and FOLLOWED.get()[0] == name == LISTEN.get().seed:
            state.note_playing(items, ids.index(song_id))

    player.note_song(_PLAYING.get(), note)


def is_playing(seed: Seed) -> bool:
    """Return True if the seed is the last song that the player reported, and the start of its queue."""
    return seed.song is not None and _PLAYING.get() == seed.song.id and FOLLOWED.get()[0] == seed.name


def current_song(seed: Seed, items: list[QueueItem]) -> int | None:
    """Return the id of the song that is playing if it is in this queue; otherwise, return the seed's id."""
    playing, ids = _PLAYING.get(), [item.song.id for item in items]
    return playing if playing in ids and FOLLOWED.get()[0] == seed.name else seed.song_id


def play_if_asked(snapshot: Snapshot, seed: Seed, items: list[QueueItem]) -> None:
    """Play the queue from a clicked song, or bring the player's queue up to date."""
    place = PLAY_AT.get()
    PLAY_AT.set(None)
    first = _first_track(snapshot, seed)
    n_first = int(first is not None)
    ids = (*([first.song_id] if first else []), *(item.song.id for item in items))
    if not ids or (place is None and (FOLLOWED.get()[0] != seed.name or FOLLOWED.get()[1] == ids)):
        return
    tracks = [make_queue_track(snapshot.library, item) for item in items]
    if first is not None:
        tracks.insert(0, first)
    if place is not None:
        play_tracks(snapshot.library, tracks, min(max(0, place + n_first), len(tracks) - 1), queue=seed.name)
        return
    FOLLOWED.set((seed.name, ids))
    player.follow(tracks, n_first + len(LISTEN.get().heard))


def _first_track(snapshot: Snapshot, seed: Seed) -> Track | None:
    """Return the seed as a track for the player, or None if it is words."""
    if seed.upload is not None and isinstance(seed.example, Example):
        return upload_track(seed.upload, seed.example.duration_s)
    return None if seed.song is None else make_track(snapshot.library, seed.song)


def queue_actions(snapshot: Snapshot, seed: Seed, items: list[QueueItem], current: int | None) -> None:
    """Show the actions on the whole queue."""
    if current is not None and current != seed.song_id:
        st.button("Similar songs", key="listen_similar", on_click=_like_this, args=(snapshot, current))
    if state.can_undo():
        st.button("Undo", key="listen_undo", on_click=_undo, args=(seed,))
    save_popover(snapshot, seed, items)


def _like_this(snapshot: Snapshot, song_id: int) -> None:
    """Start the queue from the song that is playing, without interrupting it."""
    begin_from(snapshot, song_id)
    FOLLOWED.set((LISTEN.get().seed, ()))
    st.rerun()  # the whole page, because the URL changes, too


def _undo(seed: Seed) -> None:
    thumbs = state.undo()
    if thumbs is not None:
        restore_thumbs(seed.name, thumbs)


def show_queue(
    snapshot: Snapshot, seed: Seed, items: list[QueueItem], current: int | None, request: QueueRequest
) -> None:
    """Show the rows, starting shortly before the current song."""
    songs = [item.song for item in items]
    say_what_changed(songs)
    if snapshot.search_trouble:
        st.caption(f":material/cloud_off: {plain(snapshot.search_trouble)}")
    if not items:
        st.caption("No songs match. Use fewer filters or words.")
    place = next((n for n, song in enumerate(songs) if song.id == current), -1)
    first = max(0, place - _N_HEARD)
    rows = [
        replace(
            row_of(item.song, similarity=item.similarity, why=item.reason), can_explain=request.query is not None,
            is_kept=item.is_pinned, is_current=item.song.id == current,
            judged=None if request.query is None else request.thumbs.judged.get(item.song.id, 0),
        )
        for item in items[first:]
    ]  # fmt: skip
    song_list(rows, key="hits", is_queue=True, first=first, on_action=partial(_act, snapshot, seed, songs, first))
    waiting = _WAITING.get()
    if waiting is not None:
        wait_for([waiting], n_shown=0)


def _act(snapshot: Snapshot, seed: Seed, songs: list[Song], first: int, action: Action) -> None:
    """Carry out an action on a row."""
    place, song_id = first + action.index, action.song_id
    if action.kind == "play":
        PLAY_AT.set(place)
    elif action.kind == "why":
        ask_why(song_id)
    elif action.kind in THUMBS:
        press_thumb(seed.name, song_id, THUMBS[action.kind], songs)
    elif action.kind == "keep":
        state.toggle_pin(song_id, place)
    elif action.kind == "drop":
        state.remove(song_id)
    elif action.kind == "similar":
        start_song(snapshot, song_id)
