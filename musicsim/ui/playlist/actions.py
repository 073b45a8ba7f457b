"""Drawing playlists and parts of them; every function is for a widget's callback."""

import secrets
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from musicsim.errors import MusicsimError
from musicsim.explorer.playlists.paths import places_of
from musicsim.explorer.playlists.steering import allowed_rows
from musicsim.explorer.playlists.walk import DrawnPlaylist, Walk
from musicsim.explorer.requests.playlist import PlaylistRequest
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.public import safe_message
from musicsim.ui.base.keys import Key
from musicsim.ui.playlist.draft import PLAYLIST, PlaylistDraft, change
from musicsim.ui.playlist.request_form import MAX_SONGS, remember_drawn, request_of

TROUBLE: Key[str] = Key("playlist_trouble", str, "why the last request could not be followed")
IS_NEW: Key[bool] = Key("playlist_is_new", bool, "the list was drawn by the last click")
_MANY_OTHERS = 2  # times the songs of the list: so many others, and another route leaves the old songs out


def said(notes: tuple[str, ...]) -> list[str]:
    """Notes as sentences."""
    return [note[:1].upper() + note[1:] + ("" if note.endswith(".") else ".") for note in notes]


def _seed() -> int:
    return secrets.randbelow(2**31)


def _drawn(walker: "Walk", request: "PlaylistRequest", seed: int) -> "DrawnPlaylist | None":
    """A list; None where the request cannot be followed, which :data:`TROUBLE` says."""
    try:
        drawn = walker.draw(request, random_state=seed)
    except (MusicsimError, ValueError) as error:
        TROUBLE.set(safe_message(error))
        return None
    if drawn.songs:
        return drawn
    TROUBLE.set("No song matches your request: loosen the limits or choose other songs.")
    return None


def draw(now: Snapshot, walker: "Walk") -> None:
    """Draw a list for the request in the form."""
    try:
        request = request_of(now)
    except ValueError as error:
        TROUBLE.set(safe_message(error))
        return
    seed = _seed() if request.seed is None else request.seed
    drawn = _drawn(walker, request, seed)
    if drawn is not None:
        draft = PlaylistDraft.of(drawn, request, seed)
        change(draft)
        remember_drawn(draft.song_ids)
        IS_NEW.set(True)


def another_route(now: Snapshot, walker: "Walk") -> None:
    """Draw for the request of the present list once more, with other songs where there are enough of them."""
    draft = PLAYLIST.get()
    if draft is None or draft.request is None:
        return
    request = draft.request
    between = frozenset(draft.song_ids) - {request.first, *request.through, *request.keep.values()}
    n_others = int(allowed_rows(now, request).sum()) - len(between)
    if n_others >= _MANY_OTHERS * len(draft.song_ids):
        redrawn = replace(request, exclude=request.exclude | between)
    else:
        redrawn = replace(request, rested=request.rested | between)
    seed = _seed()
    drawn = _drawn(walker, redrawn, seed)
    if drawn is not None:
        fresh = PlaylistDraft.of(drawn, request, seed)
        change(fresh)
        remember_drawn(fresh.song_ids)


# --- parts of a list ------------------------------------------------------------------------------


def _stops(draft: PlaylistDraft) -> list[int]:
    """Songs that the request named to come, in their order."""
    if draft.request is None:
        return []
    return [*([draft.request.first] if draft.request.first is not None else []), *draft.request.through]


def _standing(draft: PlaylistDraft) -> dict[int, int]:
    """Places of the songs that stay: those that are kept, and those that were named to come."""
    stay = draft.kept.union(_stops(draft))
    return {place: i for place, i in enumerate(draft.song_ids) if i in stay}


def _way(now: Snapshot, draft: PlaylistDraft, keep: Mapping[int, int], length: int) -> dict[str, Any]:
    """First song and waypoints, where they still stand as a path has them: between them its line is followed."""
    stops = _stops(draft)
    rows = now.rows_of(stops)
    if draft.request is None or not 2 <= len(stops) <= length or (rows < 0).any():
        return {"first": None, "through": ()}
    places = places_of(now.X, rows.tolist(), length)
    if any(keep.get(place) != i for place, i in zip(places, stops, strict=True)):
        return {"first": None, "through": ()}
    return {"first": draft.request.first, "through": draft.request.through}


def _redraw(
    now: Snapshot, walker: Walk, keep: Mapping[int, int], length: int, *, without: frozenset[int] = frozenset()
) -> None:
    """Draw the places that are not kept again, as the form has it; what stood there before comes less."""
    draft = PLAYLIST.get()
    if draft is None:
        return
    try:
        asked = request_of(now)
    except ValueError as error:
        TROUBLE.set(safe_message(error))
        return
    request = replace(
        asked, length=length, minutes=None, keep=keep, exclude=asked.exclude | without,
        rested=asked.rested | (set(draft.song_ids) - set(keep.values())), **_way(now, draft, keep, length),
    )  # fmt: skip
    seed = _seed()
    drawn = _drawn(walker, request, seed)
    if drawn is not None:
        change(draft.redrawn(drawn, request.dialect, seed))


def redraw_one(now: Snapshot, walker: Walk, index: int) -> None:
    """Another song at one place."""
    draft = PLAYLIST.get()
    if draft is not None and index < len(draft.song_ids):
        keep = {place: i for place, i in enumerate(draft.song_ids) if place != index}
        _redraw(now, walker, keep, len(draft.song_ids), without=frozenset({draft.song_ids[index]}))


def redraw_after(now: Snapshot, walker: Walk, index: int) -> None:
    """Draw what comes after a song again; what is kept stays."""
    draft = PLAYLIST.get()
    if draft is not None:
        keep = _standing(draft) | dict(enumerate(draft.song_ids[: index + 1]))
        _redraw(now, walker, keep, len(draft.song_ids))


def redraw_around(now: Snapshot, walker: Walk) -> None:
    """Draw all songs that are not kept again."""
    draft = PLAYLIST.get()
    if draft is not None:
        _redraw(now, walker, _standing(draft), len(draft.song_ids))


def go_on(now: Snapshot, walker: Walk, n_more: int) -> None:
    """Draw more songs at the end."""
    draft = PLAYLIST.get()
    if draft is not None:
        length = min(len(draft.song_ids) + n_more, MAX_SONGS, now.n_indexed)
        _redraw(now, walker, dict(enumerate(draft.song_ids)), max(length, len(draft.song_ids)))
