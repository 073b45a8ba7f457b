"""Drawing playlists and parts of them; every function is for a widget's callback."""

import secrets
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from musicsim.errors import MusicsimError
from musicsim.explorer.playlists.paths import places_of
from musicsim.explorer.playlists.request import Wish
from musicsim.explorer.playlists.walk import DrawnPlaylist, Walk
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.ui.base.state import Key
from musicsim.ui.playlist.draft import PLAYLIST, PlaylistDraft, change
from musicsim.ui.playlist.request_form import MAX_SONGS, remember_drawn, wish_of

__all__ = ["TROUBLE", "another_route", "draw", "go_on", "redraw_after", "redraw_around", "redraw_one", "said"]

TROUBLE: Key[str] = Key("playlist_trouble", str, "why the last wish could not be followed")
_MANY_OTHERS = 2  # times the songs of the list: so many others, and another route leaves the old songs out


def said(notes: tuple[str, ...]) -> list[str]:
    """Notes as sentences."""
    return [note[:1].upper() + note[1:] + ("" if note.endswith(".") else ".") for note in notes]


def _seed() -> int:
    return secrets.randbelow(2**31)


def _drawn(walker: Walk, wish: Wish, seed: int) -> DrawnPlaylist | None:
    """A list; None where the wish cannot be followed, which :data:`TROUBLE` says."""
    try:
        drawn = walker.draw(wish, random_state=seed)
    except (MusicsimError, ValueError) as error:
        TROUBLE.set(str(error))
        return None
    if drawn.songs:
        return drawn
    TROUBLE.set("No song matches your request: loosen the limits or choose other songs.")
    return None


def draw(now: Snapshot, walker: Walk) -> None:
    """Draw a list for the wish in the form."""
    try:
        wish = wish_of(now)
    except ValueError as error:
        TROUBLE.set(str(error))
        return
    seed = _seed()
    drawn = _drawn(walker, wish, seed)
    if drawn is not None:
        draft = PlaylistDraft.of(drawn, wish, seed)
        change(draft)
        remember_drawn(draft.song_ids)


def another_route(now: Snapshot, walker: Walk) -> None:
    """Draw for the wish of the present list once more, with other songs where there are enough of them."""
    draft = PLAYLIST.get()
    if draft is None or draft.wish is None:
        return
    wish = draft.wish
    between = frozenset(draft.song_ids) - {wish.first, *wish.through, *wish.keep.values()}
    n_others = len(now.indexed) - len(wish.excluded(now)) - len(between)
    if n_others >= _MANY_OTHERS * len(draft.song_ids):
        anew = replace(wish, exclude=wish.exclude | between)
    else:
        anew = replace(wish, rested=wish.rested | between)
    seed = _seed()
    drawn = _drawn(walker, anew, seed)
    if drawn is not None:
        fresh = PlaylistDraft.of(drawn, wish, seed)
        change(fresh)
        remember_drawn(fresh.song_ids)


# --- parts of a list ------------------------------------------------------------------------------


def _stops(draft: PlaylistDraft) -> list[int]:
    """Songs that the wish named to come, in their order."""
    if draft.wish is None:
        return []
    return [*([draft.wish.first] if draft.wish.first is not None else []), *draft.wish.through]


def _standing(draft: PlaylistDraft) -> dict[int, int]:
    """Places of the songs that stay: those that are kept, and those that were named to come."""
    stay = draft.kept.union(_stops(draft))
    return {place: i for place, i in enumerate(draft.song_ids) if i in stay}


def _way(now: Snapshot, draft: PlaylistDraft, keep: Mapping[int, int], length: int) -> dict[str, Any]:
    """First song and waypoints, where they still stand as a path has them: between them its line is followed."""
    stops = _stops(draft)
    if draft.wish is None or not 2 <= len(stops) <= length or any(i not in now.row_of for i in stops):
        return {"first": None, "through": ()}
    places = places_of(now.X, [now.row_of[i] for i in stops], length)
    if any(keep.get(place) != i for place, i in zip(places, stops, strict=True)):
        return {"first": None, "through": ()}
    return {"first": draft.wish.first, "through": draft.wish.through}


def _redraw(
    now: Snapshot,
    walker: Walk,
    keep: Mapping[int, int],
    length: int,
    *,
    without: frozenset[int] = frozenset(),
) -> None:
    """Draw the places that are not kept again, as the form has it; what stood there before comes less."""
    draft = PLAYLIST.get()
    if draft is None:
        return
    try:
        asked = wish_of(now)
    except ValueError as error:
        TROUBLE.set(str(error))
        return
    wish = replace(
        asked, length=length, minutes=None, keep=keep, exclude=without,
        rested=asked.rested | (set(draft.song_ids) - set(keep.values())), **_way(now, draft, keep, length),
    )  # fmt: skip
    seed = _seed()
    drawn = _drawn(walker, wish, seed)
    if drawn is not None:
        change(draft.redrawn(drawn, wish.dialect, seed))


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
        length = min(len(draft.song_ids) + n_more, MAX_SONGS, len(now.indexed))
        _redraw(now, walker, dict(enumerate(draft.song_ids)), max(length, len(draft.song_ids)))
