"""The values of the form for a playlist request."""

import time
from typing import Any, Literal

import streamlit as st

from musicsim.explorer import PlaylistDraft, PlaylistRequest, Snapshot, options_of
from musicsim.explorer.playlists.pool import RESTS_S
from musicsim.explorer.requests.playlist import DEFAULT_MINUTES
from musicsim.library import SavedPlaylist
from musicsim.ui.base import BY_STATE, Key, choices_of, option_keys
from musicsim.ui.base.keys import SECTIONS
from musicsim.ui.base.openers import snapshot as open_snapshot
from musicsim.ui.components.filter_widgets import RANGES, filter_values
from musicsim.ui.playlist.draft import PLAYLIST, change_draft

MAX_SONGS, _MAX_MINUTES = (int(options_of(PlaylistRequest)[name].limits[1] or 0) for name in ("length", "minutes"))
_MAX_REMEMBERED = 100
_HOUR_S = 3600.0
_MAX_PER_HOUR = 40  # if more songs fit into an hour, they are too short for a default length of one hour

_LIBRARY: Key[str] = Key("playlist_form_of", str, "name of the library that the form's values are for", is_kept=True)
_DRAWN: Key[list[tuple[float, frozenset[int]]]] = Key("playlist_drawn", list, "generated playlists")
LENGTH_BY: Key[Literal["songs", "minutes"]] = Key("playlist_by", lambda: "songs", "unit of length", is_kept=True)
KEYS = option_keys("playlist", PlaylistRequest, length=12, minutes=DEFAULT_MINUTES, dialect="")
"""The form's values, keyed by the request's field; an empty dialect means all playlists."""
_LENGTH = KEYS["length"]
_NAMES = ("artists", "no_artists", "genres", "tags", "no_tags", "folders", "no_folders", "keys", "modes")
_SONGS = ("through", "like", "exclude")
_PER_LIBRARY: tuple[Key[Any], ...] = (
    _DRAWN, *(KEYS[name] for name in ("dialect", "first", "words", "not_because", *_SONGS, *_NAMES, *RANGES)),
)  # fmt: skip


@st.cache_resource(max_entries=4, show_spinner=False, hash_funcs=BY_STATE)
def playlists_of(snapshot: Snapshot) -> dict[int, SavedPlaylist]:
    """Return all playlists of the library, keyed by id."""
    return {playlist.id: playlist for playlist in snapshot.library.playlists()}


def remember_drawn(ids: tuple[int, ...]) -> None:
    """Give the songs of a generated playlist less weight in later playlists."""
    _DRAWN.set([*_DRAWN.get(), (time.time(), frozenset(ids))][-_MAX_REMEMBERED:])


def request_of(snapshot: Snapshot) -> PlaylistRequest:
    """Return the request in the form; raise ValueError if a number is out of range. Callbacks can call this."""
    fit_form(snapshot)
    values = {name: key.get() for name, key in KEYS.items() if name not in RANGES}
    values |= filter_values(KEYS, choices_of(snapshot)) | {
        "dialect": values["dialect"] or None,
        "minutes": float(values["minutes"]) if LENGTH_BY.get() == "minutes" else None,
    }
    since = time.time() - RESTS_S
    drawn = [ids for at, ids in _DRAWN.get() if at >= since and values["avoid_recent"]]
    return PlaylistRequest(**values, rested=frozenset[int]().union(*drawn))


def plan_around(ids: list[int]) -> None:
    """Clear the Playlists page, and make its request stay close to these songs."""
    _clear()
    KEYS["like"].set(ids)


def plan_from(song_id: int) -> None:
    """Clear the Playlists page, and make its request start from a song."""
    _clear()
    KEYS["first"].set(song_id)


def _clear() -> None:
    fit_form(open_snapshot())  # values that are set before would be dropped on the first visit
    PLAYLIST.set(None)
    SECTIONS["playlist"].set("")


def open_draft(snapshot: Snapshot, draft: PlaylistDraft) -> None:
    """Make a finished playlist the current one, and fill in its request, so that *Generate* makes one like it.

    Without a request, such as for imported playlists, only the number of songs is filled in.
    """
    fit_form(snapshot)
    change_draft(draft)
    SECTIONS["playlist"].set("")
    LENGTH_BY.set("songs")
    if draft.request is None:
        _LENGTH.set(len(draft.song_ids))
    else:
        _fill_in(draft.request)


def _fill_in(request: PlaylistRequest) -> None:
    values = {name: getattr(request, name) for name in KEYS}
    if request.minutes is None and request.length is not None:
        del values["minutes"]
    else:
        LENGTH_BY.set("minutes")
        del values["length"]
        values["minutes"] = round(request.minutes or DEFAULT_MINUTES)
    for name, value in values.items():
        is_many = isinstance(value, (tuple, frozenset)) and name not in RANGES
        KEYS[name].set(list(value) if is_many else "" if name == "dialect" and value is None else value)


def fit_form(snapshot: Snapshot) -> None:
    """Drop values that do not exist in this library, because the library may be a different one or have changed."""
    if _LIBRARY.get() != snapshot.library.name:
        for key in _PER_LIBRARY:
            key.set(key.default())
        LENGTH_BY.set("minutes" if _has_hours(snapshot) else "songs")
        _LIBRARY.set(snapshot.library.name)
    for name in ("first", *_SONGS):
        present = list(snapshot.present_ids(chosen_ids(name)))
        if present != chosen_ids(name):
            choose(name, present)
    for key, high in ((_LENGTH, min(MAX_SONGS, snapshot.n_indexed)), (KEYS["minutes"], _MAX_MINUTES)):
        length = max(1, min(key.get(), high))
        if key.get() != length:  # only if needed, because setting a value overwrites what the user is typing
            key.set(length)


def _has_hours(snapshot: Snapshot) -> bool:
    """Return True if one hour is a good default length: the library has several hours, and songs are not very short."""
    durations = snapshot.columns.duration_s
    return bool(durations.sum() > 2 * _HOUR_S and durations.mean() * _MAX_PER_HOUR > _HOUR_S)


def chosen_ids(field: str) -> list[int]:
    """Return the chosen songs as a list; for the first song, the value is a single id or None."""
    value = KEYS[field].get()
    return value if isinstance(value, list) else [value] if value is not None else []


def choose(field: str, ids: list[int]) -> None:
    """Choose the songs of an option."""
    KEYS[field].set(next(iter(ids), None) if field == "first" else ids)
