"""Songs and uploads for the player, its events, and the route that continues its queue."""

import json
from collections.abc import Sequence
from urllib.parse import urlencode
from weakref import WeakValueDictionary

import streamlit as st
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from musicsim.api.responses import parse_range, respond_with_sound, status_of
from musicsim.audio import media_type
from musicsim.errors import LibraryAwayError, MusicsimError
from musicsim.explorer.libraries import library_folders, open_library
from musicsim.explorer.playlists.queue import continue_queue
from musicsim.explorer.playlists.shared_walk import share_walk
from musicsim.explorer.playlists.tracks import Track, make_queue_track, make_track, render_track
from musicsim.explorer.requests.playlist import PlaylistRequest
from musicsim.explorer.snapshot.snapshot import Snapshot, snapshot_under
from musicsim.library import Library, Song
from musicsim.library.media.sound import has_sound
from musicsim.public import is_public, safe_message, visitor_may
from musicsim.ui.base.frame import PAGES
from musicsim.ui.base.keys import CHOSEN, LIBRARY, QUEUE_LIBRARY, Key
from musicsim.ui.base.openers import active_library, find_chosen_model
from musicsim.ui.base.uploads import EXAMPLE, Upload
from musicsim.ui.base.visitors import opinions
from musicsim.ui.components import player
from musicsim.ui.components.song_list import Action

_N_FOLLOWING = 5
_PLAYED: Key[Upload | None] = Key("player.upload", lambda: None, "the upload in the player's queue")

FOLLOWED: Key[tuple[str, tuple[int, ...]]] = Key(
    "player_followed", lambda: ("", ()), "name and song ids of the queue that the Listen page keeps up to date",
    is_kept=True,
)  # fmt: skip

_uploads: WeakValueDictionary[str, Upload] = WeakValueDictionary()


def play_songs(library: Library, songs: Sequence[Song], start: int = 0, *, queue: str = "") -> None:
    """Replace the queue with these songs and play; `queue` is its name on Listen."""
    play_tracks(library, [make_track(library, song) for song in songs], start, queue=queue)


def play_tracks(library: Library, tracks: Sequence[Track], start: int = 0, *, queue: str = "") -> None:
    """Replace the queue with tracks from a library, or with uploads, and play; `queue` is its name on Listen."""
    QUEUE_LIBRARY.set(library.name)
    FOLLOWED.set((queue, tuple(one.song_id for one in tracks)) if queue else FOLLOWED.default())
    player.play(tracks, start)  # comes last, because it ends a callback of a fragment


def play_preview(snapshot: Snapshot, song_id: int) -> None:
    """Play a song from its most typical 30 seconds."""
    library = snapshot.library
    play_tracks(library, [make_track(library, song, preview=True) for song in snapshot.songs_by_id([song_id])])


def enqueue_songs(library: Library, songs: Sequence[Song]) -> None:
    """Append songs to the queue; songs from another library replace it."""
    if QUEUE_LIBRARY.get() not in ("", library.name):
        play_songs(library, songs)
        return
    QUEUE_LIBRARY.set(library.name)
    player.enqueue([make_track(library, song) for song in songs])


def follow(action: Action, snapshot: Snapshot, songs: Sequence[Song]) -> None:
    """Carry out an action on a result: play from this row on, queue the song, or choose it."""
    song = songs[action.index]
    if action.kind == "play":
        play_songs(snapshot.library, songs, action.index)
    elif action.kind == "enqueue":
        enqueue_songs(snapshot.library, [song])
    elif action.kind == "similar":
        CHOSEN.set(song.id)
        EXAMPLE.set(None)


def plays_address() -> str:
    """Return the address to which the player reports plays and skips; empty if they are not stored."""
    library = _queue_library()
    is_stored = not is_public() and library.settings["keep_plays"]
    return f"/plays?{urlencode({'library': library.name})}" if is_stored else ""


def thumbs() -> dict[int, int]:
    """Return all thumbs on songs of the queue's library."""
    return opinions(_queue_library()).feedback()


def radio_address() -> str:
    """Return the address of the songs that continue the queue after its last song."""
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
    if event.kind == "more_like_this" or event.song_id not in FOLLOWED.get()[1]:
        CHOSEN.set(event.song_id)
        EXAMPLE.set(None)
    st.switch_page(PAGES["listen"])


def upload_address(upload: Upload) -> str:
    """Return the address of an upload's sound, which is valid while a session holds the upload."""
    _uploads.setdefault(upload.digest, upload)
    return f"/uploads/{upload.digest}"


def play_upload(upload: Upload, duration_s: float) -> None:
    """Replace the queue with an upload and play."""
    player.play([upload_track(upload, duration_s)])


def upload_track(upload: Upload, duration_s: float) -> Track:
    """Return an upload for the player, and keep the upload in the session while it may be played."""
    _PLAYED.set(upload)
    return Track(0, upload.name, "", upload_address(upload), duration_s=duration_s)


@visitor_may
def _upload(request: Request) -> Response:
    upload = _uploads.get(request.path_params["digest"])
    if upload is None:
        return JSONResponse({"error": "this file is no longer available: upload it again."}, 404)
    byte_range = parse_range(request)
    data = upload.data if byte_range is None else upload.data[slice(*byte_range)]
    return respond_with_sound(data, byte_range, len(upload.data), media_type(upload.name))


@visitor_may
def _radio(request: Request) -> Response:
    """Return the tracks of a walk from a song, each with its reason, without songs that were played recently."""
    query = request.query_params
    try:
        first, recent = int(query["song"]), [int(song) for song in query.getlist("lately")]
    except (KeyError, ValueError):
        return JSONResponse({"error": "give the id of a song as `song`, and recently played ids as `lately`."}, 422)
    try:
        library = open_library(query.get("library"))
        snapshot = snapshot_under(library, query.get("model"))
        excluded = frozenset(recent[: snapshot.n_indexed // 2])  # the latest songs come first
        asked = PlaylistRequest(length=_N_FOLLOWING + 1, first=first, exclude=excluded)
        items = continue_queue(share_walk(snapshot), asked)
    except MusicsimError as error:
        is_away = isinstance(error, LibraryAwayError)
        message = safe_message(error) if is_away else "no song can follow this one."
        return JSONResponse({"error": message}, status_of(error))
    following = [render_track(make_queue_track(library, item)) for item in items if has_sound(library, item.song)]
    return Response(json.dumps(following), media_type="application/json")  # folder names may not be UTF-8


def _plays(request: Request) -> Response:
    """Store a play or a skip; ``player_engine.js`` has the rules for both."""
    query = request.query_params
    song, kind = query.get("song", ""), query.get("kind")
    if not _is_number(song) or kind not in ("play", "skip"):
        return JSONResponse({"error": "give the id of a song as `song`, and play or skip as `kind`."}, 422)
    details = {name: int(query[name]) for name in ("choice", "seconds") if _is_number(query.get(name, ""))}
    try:
        library = open_library(query.get("library"))
        song_id = library.song(int(song)).id
    except MusicsimError as error:
        return JSONResponse({"error": str(error)}, status_of(error))
    if library.settings["keep_plays"]:
        store = library.player_plays
        (store.add_play if kind == "play" else store.add_skip)(song_id, **details)
    return Response(status_code=204)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 19


def player_routes(prefix: str = "") -> list[BaseRoute]:
    """Return the routes for ``st.App``; `prefix` is the app's path, from :func:`musicsim.api.path_prefix`."""
    return [
        Route(prefix + "/uploads/{digest}", _upload),
        Route(prefix + "/radio", _radio),
        Route(prefix + "/plays", _plays, methods=["POST"]),
    ]
