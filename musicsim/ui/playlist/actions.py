"""Generate playlists and parts of playlists; call the public functions in widget callbacks."""

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from musicsim.errors import MusicsimError
from musicsim.explorer import GeneratedPlaylist, PlaylistDraft, PlaylistRequest, Snapshot, Walk
from musicsim.explorer.playlists.steering import places_of
from musicsim.public import safe_message
from musicsim.ui.base import Key
from musicsim.ui.playlist.draft import PLAYLIST, PLAYLIST_NAME, change_draft
from musicsim.ui.playlist.request_form import KEYS, MAX_SONGS, remember_drawn, request_of

PLAYLIST_TROUBLE: Key[str] = Key("playlist_trouble", str, "error from the last request")


def _new_seed() -> int:
    return secrets.randbelow(2**31)


@contextmanager
def _report_trouble() -> Iterator[None]:
    """Set :data:`TROUBLE` to the reason if the request is not valid or cannot be fulfilled, and clear it otherwise."""
    PLAYLIST_TROUBLE.set("")
    try:
        yield
    except (MusicsimError, ValueError) as error:
        PLAYLIST_TROUBLE.set(safe_message(error))


def _generate(walker: Walk, request: PlaylistRequest, seed: int) -> GeneratedPlaylist:
    drawn = walker.generate(request, random_state=seed, effects=True)
    if not drawn.songs:
        raise ValueError("No song matches your request: relax the limits or choose different songs.")
    return drawn


@_report_trouble()
def draw(snapshot: Snapshot, walker: Walk, *, keeps_pins: bool = True) -> None:
    """Generate a playlist for the request in the form; pinned songs stay in place."""
    request = request_of(snapshot)
    draft = PLAYLIST.get() if keeps_pins else None
    pinned = draft.kept.difference(request.stops) if draft else frozenset[int]()
    keep = {place: i for place, i in enumerate(draft.song_ids) if i in pinned} if draft else {}
    seed = _new_seed() if request.seed is None else request.seed
    drawn = _generate(walker, replace(request, keep=keep), seed)
    draft = PlaylistDraft.from_drawn(drawn, request, seed, pinned)
    change_draft(draft)
    remember_drawn(draft.song_ids)
    if not keep:
        PLAYLIST_NAME.set("")


def _path(snapshot: Snapshot, draft: PlaylistDraft, keep: Mapping[int, int], length: int) -> dict[str, Any]:
    """Return the request's first song and waypoints if they are still in place, so that the path is kept."""
    stops = draft.request.stops if draft.request else ()
    rows = snapshot.rows_of(stops)
    if draft.request is not None and 2 <= len(stops) <= length and (rows >= 0).all():
        places = places_of(snapshot.X, rows.tolist(), length)
        if all(keep.get(place) == i for place, i in zip(places, stops, strict=True)):
            return {"first": draft.request.first, "through": draft.request.through}
    return {"first": None, "through": ()}


@_report_trouble()
def _redraw(
    snapshot: Snapshot, walker: Walk, draft: PlaylistDraft, keep: Mapping[int, int], length: int, *,
    without: frozenset[int] = frozenset(),
) -> None:  # fmt: skip
    """Regenerate all positions not in `keep` for the request in the form; the old songs get less weight."""
    request = request_of(snapshot)
    request = replace(
        request, length=length, minutes=None, keep=keep, exclude=request.exclude | without,
        rested=request.rested | (set(draft.song_ids) - set(keep.values())), **_path(snapshot, draft, keep, length),
    )  # fmt: skip
    seed = _new_seed()
    change_draft(draft.redraw(_generate(walker, request, seed), request, seed))


def redraw_one(snapshot: Snapshot, walker: Walk, index: int) -> None:
    """Replace one song of the playlist."""
    draft = PLAYLIST.get()
    if draft is not None and index < len(draft.song_ids):
        keep = {place: i for place, i in enumerate(draft.song_ids) if place != index}
        _redraw(snapshot, walker, draft, keep, len(draft.song_ids), without=frozenset({draft.song_ids[index]}))


def redraw_after(snapshot: Snapshot, walker: Walk, index: int) -> None:
    """Regenerate the songs after a position, except kept songs and songs in the request."""
    draft = PLAYLIST.get()
    if draft is not None:
        fixed = draft.kept.union(draft.request.stops if draft.request else ())
        keep = {place: i for place, i in enumerate(draft.song_ids) if place <= index or i in fixed}
        _redraw(snapshot, walker, draft, keep, len(draft.song_ids))


def redraw_without(snapshot: Snapshot, walker: Walk, index: int, reason: str) -> None:
    """Regenerate the songs from a position on without a reason, named as an edge; later requests leave it out, too."""
    KEYS["not_because"].set(sorted({*KEYS["not_because"].get(), reason}))
    redraw_after(snapshot, walker, index - 1)


def extend(snapshot: Snapshot, walker: Walk, n_more: int) -> None:
    """Generate more songs, and add them at the end."""
    draft = PLAYLIST.get()
    if draft is not None:
        length = min(len(draft.song_ids) + n_more, MAX_SONGS, snapshot.n_indexed)
        keep = dict(enumerate(draft.song_ids))
        _redraw(snapshot, walker, draft, keep, max(length, len(draft.song_ids)))
