"""What is asked of a playlist: the form on the left of the page, and the request that it stands for."""

import time
from functools import partial
from pathlib import Path
from typing import Any, Literal

import streamlit as st

from musicsim.audio import HEARD
from musicsim.explorer.playlists.steering import RESTS_S
from musicsim.explorer.playlists.walk import Dialect, Walk
from musicsim.explorer.requests.options import options_of
from musicsim.explorer.requests.playlist import DIRECTIONS, PREFERENCES, PlaylistRequest
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library import SavedPlaylist
from musicsim.ui.base.keys import CHOSEN, Key
from musicsim.ui.base.openers import choices_of
from musicsim.ui.base.option_widgets import labelled, limits, option_key
from musicsim.ui.base.text import plain
from musicsim.ui.components.filter_widgets import RANGES, filter_values, filter_widgets, fit_filters
from musicsim.ui.components.song_finder import find_songs
from musicsim.ui.playlist.draft import PLAYLIST, present_ids

MAX_SONGS = options_of(PlaylistRequest)["length"].max_asked or 0
_MAX_REMEMBERED = 100
_FAMILIES_NAMED = 3

_MAX_CHOSEN = 100  # songs to pass through, to stay around or to leave out
_BY = ("songs", "minutes")

_OF: Key[str] = Key("playlist_form_of", str, "name of the library that the form speaks of", is_kept=True)
_STARTED: Key[int | None] = Key(
    "playlist_started", lambda: None, "the chosen song that became the first one", is_kept=True
)
_DRAWN: Key[list[tuple[float, frozenset[int]]]] = Key(
    "playlist_drawn", list, "when lists were drawn in this session, and their songs", is_kept=True
)
_LENGTH_BY: Key[Literal["songs", "minutes"]] = Key(
    "playlist_by", lambda: "songs", "what the length counts", is_kept=True
)
_MINUTES: Key[int] = Key("playlist_minutes", lambda: 45, "minutes of the list", is_kept=True)
_KEYS = {field: option_key(f"playlist_{field}", PlaylistRequest, field) for field in options_of(PlaylistRequest)}
_KEYS["minutes"] = _MINUTES
_KEYS["dialect"] = Key("playlist_dialect", str, "whose walk is followed; empty for that of all playlists", is_kept=True)
_DIALECT, _FIRST, _LENGTH, _SURPRISE = (_KEYS[name] for name in ("dialect", "first", "length", "surprise"))
STAY_AROUND: Key[list[int]] = _KEYS["like"]
"""Ids of the songs that the playlist stays close to."""
_NAMES = ("artists", "no_artists", "genres", "tags", "no_tags", "folders", "no_folders", "keys", "modes")
_SONGS = ("through", "like", "exclude")
_LISTS = (*_NAMES, "exclude")  # limits, each of some values

_OF_ONE_LIBRARY: tuple[Key[Any], ...] = (
    _DRAWN, _STARTED, *(_KEYS[name] for name in ("dialect", "first", "words", *_SONGS, *_NAMES, *RANGES)),
)  # fmt: skip


@st.cache_resource(max_entries=4, show_spinner=False)
def _playlists(folder: Path, revision: int, _now: Snapshot) -> dict[int, SavedPlaylist]:
    return {playlist.id: playlist for playlist in _now.library.playlists()}


def playlists_of(now: Snapshot) -> dict[int, SavedPlaylist]:
    """All playlists of the library by their id."""
    return _playlists(now.library.folder, now.revision, now)


def remember_drawn(ids: tuple[int, ...]) -> None:
    """Have the songs of a list that was just drawn weigh less in the next ones."""
    _DRAWN.set([*_DRAWN.get(), (time.time(), frozenset(ids))][-_MAX_REMEMBERED:])


def request_of(now: Snapshot) -> PlaylistRequest:
    """The request as the form stands; for callbacks, too. Raises ValueError if a number is out of range."""
    _fit(now)
    values = {name: key.get() for name, key in _KEYS.items() if name not in RANGES}
    values |= filter_values(_KEYS, choices_of(now)) | {
        "dialect": _DIALECT.get() or None,
        "minutes": float(_MINUTES.get()) if _LENGTH_BY.get() == "minutes" else None,
    }
    since = time.time() - RESTS_S
    drawn = [ids for at, ids in _DRAWN.get() if at >= since and values["avoid_recent"]]
    return PlaylistRequest(**values, rested=frozenset[int]().union(*drawn))


def _fit(now: Snapshot) -> None:
    """Drop from the form what this library does not have; it may be another one, or have changed."""
    if _OF.get() != now.library.name:
        for key in _OF_ONE_LIBRARY:
            key.set(key.default())
        _OF.set(now.library.name)
    if PLAYLIST.get() is None and CHOSEN.get() not in (None, _STARTED.get()):
        _FIRST.set(CHOSEN.get())  # "Playlist from here" on another page
        _STARTED.set(CHOSEN.get())
    for name in ("first", *_SONGS):
        key = _KEYS[name]
        here = list(present_ids(now, _ids(key)))
        if here != _ids(key):
            _choose(key, here)
    _set_if_new(_LENGTH, max(1, min(_LENGTH.get(), _most(now))))
    fit_filters(_KEYS, choices_of(now))


def _set_if_new(key: Key[Any], value: Any) -> None:
    """A value that is set is sent to the browser, over what is being typed there."""
    if key.get() != value:
        key.set(value)


def _most(now: Snapshot) -> int:
    return min(MAX_SONGS, now.n_indexed)


# --- the form -------------------------------------------------------------------------------------


def _said(field: str) -> dict[str, Any]:
    """What every widget has: label, help, and where its value is."""
    return labelled(PlaylistRequest, field) | {"key": _KEYS[field].name, "persist_state": "session"}


def request_form(now: Snapshot, walker: "Walk") -> None:
    """All that can be asked for, without the button that draws."""
    _fit(now)
    if _DIALECT.get() not in {"", *(d.name for d in walker.dialects)}:
        _DIALECT.set("")
    for key in (*_KEYS.values(), _LENGTH_BY):
        key.get()  # its default, before its widget
    _dialects(walker)
    _songs(now)
    _length(now)
    st.slider(**_said("surprise"), min_value=0.0, max_value=1.0, step=0.05, format="percent")
    st.caption(_width_words(walker))
    st.segmented_control(**_said("prefer"), options=PREFERENCES, required=True)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.selectbox(**_said("along"), options=HEARD, index=None, placeholder="Nothing", width=150)
        st.segmented_control(**_said("direction"), options=DIRECTIONS, required=True)
    limits_shown = st.expander("Limits", icon=":material/tune:", key="playlist_limits", on_change="rerun")
    if limits_shown.open:
        with limits_shown:
            _limits(now)
    n_limits = _n_limits(now)
    if n_limits:
        st.caption(f"{n_limits} {'limit is' if n_limits == 1 else 'limits are'} set.")


def _dialects(walker: Walk) -> None:
    if not walker.n_playlists:
        st.caption(
            "This library has no playlists to learn from yet: it uses sound first, then tags, artists "
            "and years. Import playlists on the Library page."
        )
        return
    names = [dialect.name for dialect in walker.dialects]
    if len(names) > 1:
        st.pills(
            **_said("dialect"), options=names, required=True, wrap=True,
            format_func=lambda name: plain(name) if name else "any",
        )  # fmt: skip
    chosen = next(d for d in walker.dialects if d.name == _DIALECT.get())
    st.caption(_dialect_words(walker, chosen))


def _dialect_words(walker: Walk, dialect: Dialect) -> str:
    """How many playlists a dialect was learned from, what that gains, and what it goes by."""
    said = [f"Learned from {dialect.n_playlists:,} playlist{'s' * (dialect.n_playlists != 1)}."]
    if dialect.gain is not None:
        gain = f"{dialect.gain:.0%} better than shuffling on held-out playlists"
        if dialect.name and dialect.gain_global is not None:
            gain += f" (the walk of all playlists: {dialect.gain_global:+.0%})"
        said.append(f"{gain}.")
    families = [words for words, _ in walker.families(dialect.name or None)][:_FAMILIES_NAMED]
    if families:
        *most, last = families
        said.append(f"It uses {', '.join(most)} and {last}." if most else f"It uses {last}.")
    return " ".join(said)


def _songs(now: Snapshot) -> None:
    _find_songs(now, "first", "Any song", most=1)
    _find_songs(now, "through", "No song")
    _find_songs(now, "like", "No song")


def _find_songs(now: Snapshot, field: str, placeholder: str, most: int = _MAX_CHOSEN) -> None:
    key = _KEYS[field]
    find_songs(
        now, **labelled(PlaylistRequest, field), key=f"{key.name}_finder", placeholder=placeholder,
        chosen=_ids(key), on_change=partial(_choose, key), most=most,
    )  # fmt: skip


def _ids(key: Key[Any]) -> list[int]:
    """The songs that are chosen; the first song is one or none."""
    value = key.get()
    return value if isinstance(value, list) else [value] if value is not None else []


def _choose(key: Key[Any], ids: list[int]) -> None:
    key.set(next(iter(ids), None) if key is _FIRST else ids)


def _length(now: Snapshot) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if _LENGTH_BY.get() == "minutes":
            st.number_input(**_number("minutes"), step=5, width=130)
        else:
            st.number_input(**_number("length", _most(now)), width=130)
        st.segmented_control(
            "Length in", _BY, key=_LENGTH_BY.name, persist_state="session", required=True, label_visibility="collapsed"
        )


def _width_words(walker: Walk) -> str:
    dialect = _DIALECT.get() or None
    here, people = (walker.step_width(surprise, dialect) for surprise in (_SURPRISE.get(), 0.5))
    usual = "in real playlists" if walker.n_playlists else "in the middle"
    return f"About {here:,.0f} candidates per step ({usual}: {people:,.0f})."


def _limits(now: Snapshot) -> None:
    st.text_input(**_said("words"), placeholder="slow piano 1960s")
    st.number_input(**_number("spacing"))
    filter_widgets(PlaylistRequest, _KEYS, choices_of(now))
    _find_songs(now, "exclude", "None")
    for name in ("avoid_recent", "versions_apart"):
        st.toggle(**_said(name))
    st.number_input(**_number("seed"), placeholder="random")


def _number(field: str, max_value: int | None = None) -> dict[str, Any]:
    return _said(field) | limits(PlaylistRequest, field, max_value)


def _n_limits(now: Snapshot) -> int:
    ranges = choices_of(now).ranges
    return sum(bool(_KEYS[name].get()) for name in ("words", *_LISTS)) + sum(
        _KEYS[name].get() != bounds for name, bounds in ranges.items()
    )
