"""The form for a playlist request."""

import time
from functools import partial
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
from musicsim.ui.base.openers import BY_STATE, choices_of
from musicsim.ui.base.option_widgets import describe, limits, option_key
from musicsim.ui.base.text import count, plain
from musicsim.ui.components.filter_widgets import RANGES, filter_values, filter_widgets, fit_filters
from musicsim.ui.components.song_finder import find_songs
from musicsim.ui.playlist.draft import PLAYLIST, present_ids

MAX_SONGS = options_of(PlaylistRequest)["length"].max_asked or 0
_MAX_REMEMBERED = 100
_MAX_FAMILIES = 3
_MAX_CHOSEN = 100  # maximum number of songs to pass through, stay close to or exclude

_LIBRARY: Key[str] = Key("playlist_form_of", str, "name of the library that the form's values are for", is_kept=True)
_STARTED: Key[int | None] = Key(
    "playlist_started", lambda: None, "chosen song that became the first song", is_kept=True
)
_DRAWN: Key[list[tuple[float, frozenset[int]]]] = Key("playlist_drawn", list, "generated playlists", is_kept=True)
_LENGTH_BY: Key[Literal["songs", "minutes"]] = Key("playlist_by", lambda: "songs", "unit of length", is_kept=True)
_MINUTES: Key[int] = Key("playlist_minutes", lambda: 45, "length of the playlist in minutes", is_kept=True)
_KEYS = {field: option_key(f"playlist_{field}", PlaylistRequest, field) for field in options_of(PlaylistRequest)}
_KEYS["minutes"] = _MINUTES
_KEYS["dialect"] = Key("playlist_dialect", str, "dialect of the walk; empty for all playlists", is_kept=True)
_DIALECT, _FIRST, _LENGTH, _SURPRISE = (_KEYS[name] for name in ("dialect", "first", "length", "surprise"))
STAY_AROUND: Key[list[int]] = _KEYS["like"]
"""Ids of the songs that the playlist stays close to."""
_NAMES = ("artists", "no_artists", "genres", "tags", "no_tags", "folders", "no_folders", "keys", "modes")
_SONGS = ("through", "like", "exclude")
_PER_LIBRARY: tuple[Key[Any], ...] = (
    _DRAWN, _STARTED, *(_KEYS[name] for name in ("dialect", "first", "words", *_SONGS, *_NAMES, *RANGES)),
)  # fmt: skip


@st.cache_resource(max_entries=4, show_spinner=False, hash_funcs=BY_STATE)
def playlists_of(snapshot: Snapshot) -> dict[int, SavedPlaylist]:
    """Return all playlists of the library, keyed by id."""
    return {playlist.id: playlist for playlist in snapshot.library.playlists()}


def remember_drawn(ids: tuple[int, ...]) -> None:
    """Give the songs of a generated playlist less weight in later playlists."""
    _DRAWN.set([*_DRAWN.get(), (time.time(), frozenset(ids))][-_MAX_REMEMBERED:])


def request_of(snapshot: Snapshot) -> PlaylistRequest:
    """Return the request in the form; raise ValueError if a number is out of range. Callbacks may call this."""
    _fit(snapshot)
    values = {name: key.get() for name, key in _KEYS.items() if name not in RANGES}
    values |= filter_values(_KEYS, choices_of(snapshot)) | {
        "dialect": _DIALECT.get() or None,
        "minutes": float(_MINUTES.get()) if _LENGTH_BY.get() == "minutes" else None,
    }
    since = time.time() - RESTS_S
    drawn = [ids for at, ids in _DRAWN.get() if at >= since and values["avoid_recent"]]
    return PlaylistRequest(**values, rested=frozenset[int]().union(*drawn))


def _fit(snapshot: Snapshot) -> None:
    """Drop values that do not exist in this library, which may have changed or be a different one."""
    if _LIBRARY.get() != snapshot.library.name:
        for key in _PER_LIBRARY:
            key.set(key.default())
        _LIBRARY.set(snapshot.library.name)
    if PLAYLIST.get() is None and CHOSEN.get() not in (None, _STARTED.get()):
        _FIRST.set(CHOSEN.get())  # the user chose "Playlist from here" on another page
        _STARTED.set(CHOSEN.get())
    for name in ("first", *_SONGS):
        key = _KEYS[name]
        present = list(present_ids(snapshot, _ids(key)))
        if present != _ids(key):
            _choose(key, present)
    length = max(1, min(_LENGTH.get(), MAX_SONGS, snapshot.n_indexed))
    if _LENGTH.get() != length:  # set only if needed: this overwrites what the user is typing
        _LENGTH.set(length)
    fit_filters(_KEYS, choices_of(snapshot))


def _widget(field: str) -> dict[str, Any]:
    return describe(PlaylistRequest, field) | _KEYS[field].widget()


def _number(field: str, max_value: int | None = None) -> dict[str, Any]:
    return _widget(field) | limits(PlaylistRequest, field, max_value)


def request_form(snapshot: Snapshot, walker: Walk) -> None:
    """Show the options, without the button that generates the playlist."""
    _fit(snapshot)
    if _DIALECT.get() not in {"", *(d.name for d in walker.dialects)}:
        _DIALECT.set("")
    _show_dialects(walker)
    _show_songs(snapshot, "first", "Any song", most=1)
    _show_songs(snapshot, "through", "No song")
    _show_songs(snapshot, "like", "No song")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if _LENGTH_BY.get() == "minutes":
            st.number_input(**_number("minutes"), step=5, width=130)
        else:
            st.number_input(**_number("length", min(MAX_SONGS, snapshot.n_indexed)), width=130)
        st.segmented_control(
            "Length in", ("songs", "minutes"), **_LENGTH_BY.widget(), required=True, label_visibility="collapsed"
        )
    st.slider(**_widget("surprise"), min_value=0.0, max_value=1.0, step=0.05, format="percent")
    dialect = _DIALECT.get() or None
    width, usual_width = (walker.step_width(surprise, dialect) for surprise in (_SURPRISE.get(), 0.5))
    usual = "in real playlists" if walker.n_playlists else "in the middle"
    st.caption(f"About {width:,.0f} candidates per step ({usual}: {usual_width:,.0f}).")
    st.segmented_control(**_widget("prefer"), options=PREFERENCES, required=True)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.selectbox(**_widget("along"), options=HEARD, index=None, placeholder="Nothing", width=150)
        st.segmented_control(**_widget("direction"), options=DIRECTIONS, required=True)
    expander = st.expander("Limits", icon=":material/tune:", key="playlist_limits", on_change="rerun")
    if expander.open:
        with expander:
            st.text_input(**_widget("words"), placeholder="slow piano 1960s")
            st.number_input(**_number("spacing"))
            filter_widgets(PlaylistRequest, _KEYS, choices_of(snapshot))
            _show_songs(snapshot, "exclude", "None")
            for name in ("avoid_recent", "versions_apart"):
                st.toggle(**_widget(name))
            st.number_input(**_number("seed"), placeholder="random")
    ranges = choices_of(snapshot).ranges
    n_limits = sum(bool(_KEYS[name].get()) for name in ("words", *_NAMES, "exclude"))
    n_limits += sum(_KEYS[name].get() != bounds for name, bounds in ranges.items())
    if n_limits:
        st.caption(f"{n_limits} {'limit is' if n_limits == 1 else 'limits are'} set.")


def _show_dialects(walker: Walk) -> None:
    if not walker.n_playlists:
        st.caption(
            "There are no playlists to learn from, so a playlist follows sound first, then tags, artists and years. "
            "You can import playlists on the Library page."
        )
        return
    names = [dialect.name for dialect in walker.dialects]
    if len(names) > 1:
        st.pills(
            **_widget("dialect"), options=names, required=True, wrap=True,
            format_func=lambda name: plain(name) if name else "any",
        )  # fmt: skip
    chosen = next(d for d in walker.dialects if d.name == _DIALECT.get())
    st.caption(_describe_dialect(walker, chosen))


def _describe_dialect(walker: Walk, dialect: Dialect) -> str:
    sentences = [f"Learned from {count(dialect.n_playlists, 'playlist')}."]
    if dialect.gain is not None:
        gain = f"{dialect.gain:.0%} better than shuffling on held-out playlists"
        if dialect.name and dialect.gain_global is not None:
            gain += f" (weights from all playlists: {dialect.gain_global:+.0%})"
        sentences.append(f"{gain}.")
    families = [words for words, _ in walker.families(dialect.name or None)][:_MAX_FAMILIES]
    if families:
        *most, last = families
        sentences.append(f"It uses {', '.join(most)} and {last}." if most else f"It uses {last}.")
    return " ".join(sentences)


def _show_songs(snapshot: Snapshot, field: str, placeholder: str, most: int = _MAX_CHOSEN) -> None:
    key = _KEYS[field]
    find_songs(
        snapshot, **describe(PlaylistRequest, field), key=f"{key.name}_finder", placeholder=placeholder,
        chosen=_ids(key), on_change=partial(_choose, key), most=most,
    )  # fmt: skip


def _ids(key: Key[Any]) -> list[int]:
    """Return the chosen songs as a list; for the first song, the value is a single id or None."""
    value = key.get()
    return value if isinstance(value, list) else [value] if value is not None else []


def _choose(key: Key[Any], ids: list[int]) -> None:
    key.set(next(iter(ids), None) if key is _FIRST else ids)
