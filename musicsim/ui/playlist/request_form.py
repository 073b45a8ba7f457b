"""What is asked of a playlist: the form on the left of the page, and the request that it stands for."""

import time
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import streamlit as st

from musicsim.explorer.playlists.request import RESTS_S
from musicsim.explorer.requests.options import options_of
from musicsim.explorer.requests.playlist import PREFERENCES, PlaylistRequest
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library import SavedPlaylist
from musicsim.ui.base.option_widgets import labelled, limits, option_key
from musicsim.ui.base.state import CHOSEN, Key
from musicsim.ui.base.text import plain
from musicsim.ui.playlist.draft import PLAYLIST

if TYPE_CHECKING:  # scipy and scikit-learn come with it: not before a playlist is asked for
    from musicsim.explorer.playlists.walk import Dialect, Walk

__all__ = ["MAX_SONGS", "playlists_of", "remember_drawn", "request_form", "request_of"]

MAX_SONGS = options_of(PlaylistRequest)["length"].max_asked or 0
_MAX_REMEMBERED = 100
_FAMILIES_NAMED = 3

_BY = ("songs", "minutes")

_OF: Key[str] = Key("playlist_form_of", str, "name of the library that the form speaks of")
_STARTED: Key[int | None] = Key("playlist_started", lambda: None, "the chosen song that became the first one")
_DRAWN: Key[list[tuple[float, frozenset[int]]]] = Key(
    "playlist_drawn", list, "when lists were drawn in this session, and their songs"
)
_LENGTH_BY: Key[Literal["songs", "minutes"]] = Key("playlist_by", lambda: "songs", "what the length counts")
_MINUTES: Key[int] = Key("playlist_minutes", lambda: 45, "minutes of the list")
_KEYS: dict[str, Key[Any]] = {"minutes": _MINUTES} | {
    field: option_key(f"playlist_{field}", PlaylistRequest, field)
    for field in options_of(PlaylistRequest)
    if field != "minutes"
}
_KEYS["dialect"] = Key("playlist_dialect", str, "whose walk is followed; empty for that of all playlists")
_DIALECT, _FIRST, _LENGTH, _SURPRISE = (_KEYS[name] for name in ("dialect", "first", "length", "surprise"))
_RANGES = ("years", "duration_s")
_LISTS = (
    "artists",
    "no_artists",
    "genres",
    "tags",
    "no_tags",
    "folders",
    "exclude",
)  # limits, each of some values

_OF_ONE_LIBRARY: tuple[Key[Any], ...] = (
    _DRAWN, _STARTED, *(_KEYS[name] for name in ("dialect", "first", "through", "like", *_LISTS, *_RANGES)),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Words:
    """What the songs of a library can be limited to, the most frequent first.

    Attributes
    ----------
    labels : dict of song id to str
    values : dict of field to list of str
    ranges : dict of field to (first, last)
        Only where there is a choice.
    """

    labels: dict[int, str]
    values: dict[str, list[str]]
    ranges: dict[str, tuple[int, int]]

    def options(self, field: str) -> Collection[Any]:
        """What can be chosen as a field."""
        return self.values.get(field, self.labels)


@st.cache_resource(max_entries=4, show_spinner=False)
def _read_words(folder: Path, revision: int, model_id: str | None, _snapshot: Snapshot) -> _Words:
    columns, of_songs = _snapshot.columns, set(_snapshot.row_ids.tolist())
    tags = columns.genre.counts() + Counter(
        tag for song_id, found in _snapshot.tags_of().items() if song_id in of_songs for tag, _ in found
    )
    artists = sorted(columns.artist.counts(), key=str.casefold)
    most_tags, genres = (
        [name for name, _ in found.most_common()] for found in (tags, columns.genre.counts())
    )
    years = columns.year[columns.year > 0]
    return _Words(
        _snapshot.labels(),
        {
            "artists": artists,
            "no_artists": artists,
            "genres": genres,
            "tags": most_tags,
            "no_tags": most_tags,
            "folders": sorted(columns.folder.counts()),
        },
        {
            field: bounds
            for field, bounds in (
                ("years", (int(years.min(initial=9999)), int(years.max(initial=0)))),
                ("duration_s", (0, int(columns.duration_s.max(initial=0.0)) + 1)),
            )
            if bounds[0] < bounds[1]
        },
    )


def _words_of(now: Snapshot) -> _Words:
    return _read_words(now.library.folder, now.revision, now.model_id, now)


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
    """The request as the form stands; for callbacks, too.

    Raises
    ------
    ValueError
        If a number is out of range.
    """
    _fit(now)
    options, ranges = options_of(PlaylistRequest), _words_of(now).ranges
    values = {name: key.get() for name, key in _KEYS.items()}
    values |= {name: many(values[name]) for name, option in options.items() if (many := option.many)}
    values |= {name: None for name in _RANGES if values[name] == ranges.get(name)}
    values |= {
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
    known = _words_of(now)
    if _FIRST.get() not in known.labels:
        _FIRST.set(None)
    for name in ("through", "like", *_LISTS):
        key, options = _KEYS[name], known.options(name)
        if any(value not in options for value in key.get()):
            key.set([value for value in key.get() if value in options])
    _set_if_new(_LENGTH, max(1, min(_LENGTH.get(), _most(now))))
    for name in _RANGES:
        _set_if_new(_KEYS[name], _within(_KEYS[name].get(), known.ranges.get(name)))


def _within(chosen: tuple[int, int] | None, bounds: tuple[int, int] | None) -> tuple[int, int] | None:
    """A range as far as it lies within bounds; all that they hold where it does not."""
    if chosen is None or bounds is None:
        return bounds
    low, high = max(chosen[0], bounds[0]), min(chosen[1], bounds[1])
    return (low, high) if low <= high else bounds


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
    with st.expander("Limits", icon=":material/tune:"):
        _limits(_words_of(now))
    n_limits = _n_limits(now)
    if n_limits:
        st.caption(f"{n_limits} {'limit is' if n_limits == 1 else 'limits are'} set.")


def _dialects(walker: "Walk") -> None:
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


def _dialect_words(walker: "Walk", dialect: "Dialect") -> str:
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
    labels = _words_of(now).labels
    listed: dict[str, Any] = {"options": list(labels), "format_func": labels.__getitem__}
    st.selectbox(**_said("first"), **listed, index=None, placeholder="Any song")
    st.multiselect(**_said("through"), **listed, placeholder="No song")
    st.multiselect(**_said("like"), **listed, placeholder="No song")


def _length(now: Snapshot) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if _LENGTH_BY.get() == "minutes":
            st.number_input(**_number("minutes"), step=5, width=130)
        else:
            st.number_input(**_number("length", _most(now)), width=130)
        st.segmented_control(
            "Length in",
            _BY,
            key=_LENGTH_BY.name,
            persist_state="session",
            required=True,
            label_visibility="collapsed",
        )


def _width_words(walker: "Walk") -> str:
    dialect = _DIALECT.get() or None
    here, people = (walker.step_width(surprise, dialect) for surprise in (_SURPRISE.get(), 0.5))
    usual = "in real playlists" if walker.n_playlists else "in the middle"
    return f"About {here:,.0f} candidates per step ({usual}: {people:,.0f})."


_EMPTY = {"artists": "Any artist", "genres": "Any genre", "tags": "Any tag", "folders": "Any folder"}


def _limits(of: _Words) -> None:
    st.number_input(**_number("spacing"))
    for name in _LISTS:
        said: dict[str, Any] = {"format_func": of.labels.__getitem__} if name == "exclude" else {}
        st.multiselect(
            **_said(name), options=list(of.options(name)), placeholder=_EMPTY.get(name, "None"), **said
        )
    for name, (first, last) in of.ranges.items():
        st.slider(**_said(name), min_value=first, max_value=last)
    for name in ("avoid_recent", "versions_apart"):
        st.toggle(**_said(name))
    st.number_input(**_number("seed"), placeholder="random")


def _number(field: str, max_value: int | None = None) -> dict[str, Any]:
    return _said(field) | limits(PlaylistRequest, field, max_value)


def _n_limits(now: Snapshot) -> int:
    ranges = _words_of(now).ranges
    return sum(bool(_KEYS[name].get()) for name in _LISTS) + sum(
        _KEYS[name].get() != bounds for name, bounds in ranges.items()
    )
