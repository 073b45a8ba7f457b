"""What is asked of a playlist: the form on the left of the page, and the wish that it stands for."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import streamlit as st

from musicsim.explorer.playlists.request import ARTIST_SPACING, PREFERENCES, SURPRISE, Preference, Wish
from musicsim.explorer.playlists.walk import Dialect, Walk
from musicsim.explorer.search.query import Filters
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library import SavedPlaylist
from musicsim.library.store import OWN_PLAYLISTS
from musicsim.ui.base.state import CHOSEN, Key
from musicsim.ui.base.text import plain
from musicsim.ui.playlist.draft import PLAYLIST

__all__ = ["MAX_SONGS", "playlists_of", "remember_drawn", "wish_form", "wish_of"]

MAX_SONGS = 200
_LENGTH_SONGS, _MAX_MIN = 12, 600
_RESTS_S = 24 * 3600.0  # how long songs of a list weigh less
_MAX_REMEMBERED = 100
_FAMILIES_NAMED = 3

_BY = ("songs", "minutes")

_OF: Key[str] = Key("playlist_form_of", str, "name of the library that the form speaks of")
_STARTED: Key[int | None] = Key("playlist_started", lambda: None, "the chosen song that became the first one")
_DRAWN: Key[list[tuple[float, frozenset[int]]]] = Key(
    "playlist_drawn", list, "when lists were drawn in this session, and their songs"
)

_DIALECT: Key[str] = Key("playlist_dialect", str, "whose walk is followed; empty for that of all playlists")
_FIRST: Key[int | None] = Key("playlist_first", lambda: None, "id of the first song")
_THROUGH: Key[list[int]] = Key("playlist_through", list, "ids of songs to pass through, the last is the end")
_SEEDS: Key[list[int]] = Key("playlist_seeds", list, "ids of songs to stay around")
_LENGTH_BY: Key[Literal["songs", "minutes"]] = Key("playlist_by", lambda: "songs", "what the length counts")
_LENGTH: Key[int] = Key("playlist_length", lambda: _LENGTH_SONGS, "songs of the list")
_MINUTES: Key[int] = Key("playlist_minutes", lambda: 45, "minutes of the list")
_SURPRISE: Key[float] = Key("playlist_surprise", lambda: SURPRISE, "0 smooth, 1 surprising")
_PREFER: Key[Preference] = Key("playlist_prefer", lambda: "any", "whether what is played often comes more")
_SPACING: Key[int] = Key("playlist_spacing", lambda: ARTIST_SPACING, "songs between two of one artist")
_TAGS: Key[list[str]] = Key("playlist_tags", list, "a song must have one of these tags")
_NO_TAGS: Key[list[str]] = Key("playlist_no_tags", list, "and none of these")
_GENRES: Key[list[str]] = Key("playlist_genres", list, "genres a song must be of")
_ARTISTS: Key[list[str]] = Key("playlist_artists", list, "artists a song must be by")
_NO_ARTISTS: Key[list[str]] = Key("playlist_no_artists", list, "artists it must not be by")
_YEARS: Key[tuple[int, int] | None] = Key("playlist_years", lambda: None, "first and last year")
_REST: Key[bool] = Key("playlist_rest", lambda: True, "whether songs of the last lists weigh less")
_VERSIONS: Key[bool] = Key("playlist_versions", lambda: True, "whether a song comes in one version only")

_OF_ONE_LIBRARY: tuple[Key[Any], ...] = (
    _DIALECT, _FIRST, _THROUGH, _SEEDS, _TAGS, _NO_TAGS, _GENRES, _ARTISTS, _NO_ARTISTS, _YEARS, _DRAWN, _STARTED,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Words:
    """What the songs of a library can be limited to, the most frequent first."""

    labels: dict[int, str]
    tags: list[str]
    genres: list[str]
    artists: list[str]
    years: tuple[int, int] | None


@st.cache_resource(max_entries=4, show_spinner=False)
def _words(folder: Path, revision: int, model_id: str | None, _snapshot: Snapshot) -> _Words:
    from collections import Counter

    songs = _snapshot.indexed
    genres = Counter(song.genre for song in songs if song.genre)
    tags = genres + Counter(tag for song in songs for tag, _ in _snapshot.tags.get(song.id, ()))
    artists = sorted({song.artist for song in songs if song.artist}, key=str.casefold)
    years = [song.year for song in songs if song.year]
    return _Words(
        {song.id: song.label for song in songs},
        [tag for tag, _ in tags.most_common()],
        [genre for genre, _ in genres.most_common()],
        artists,
        (min(years), max(years)) if years and min(years) < max(years) else None,
    )


def _words_of(now: Snapshot) -> _Words:
    return _words(now.library.folder, now.revision, now.model_id, now)


@st.cache_resource(max_entries=4, show_spinner=False)
def _playlists(folder: Path, revision: int, _now: Snapshot) -> dict[int, SavedPlaylist]:
    return {playlist.id: playlist for playlist in _now.library.playlists()}


def playlists_of(now: Snapshot) -> dict[int, SavedPlaylist]:
    """All playlists of the library by their id."""
    return _playlists(now.library.folder, now.revision, now)


def remember_drawn(ids: tuple[int, ...]) -> None:
    """Have the songs of a list that was just drawn weigh less in the next ones."""
    _DRAWN.set([*_DRAWN.get(), (time.time(), frozenset(ids))][-_MAX_REMEMBERED:])


def _rested(now: Snapshot) -> frozenset[int]:
    since = time.time() - _RESTS_S
    drawn = [ids for at, ids in _DRAWN.get() if at >= since]
    saved = [
        p.song_ids for p in playlists_of(now).values() if p.source == OWN_PLAYLISTS and p.created_at >= since
    ]
    return frozenset().union(*drawn, *saved)


def wish_of(now: Snapshot) -> Wish:
    """The wish as the form stands; for callbacks, too.

    Raises
    ------
    ValueError
        If a number is out of range.
    """
    _fit(now)
    years, spelt = _YEARS.get(), _words_of(now).years
    return Wish(
        length=_LENGTH.get(),
        minutes=float(_MINUTES.get()) if _LENGTH_BY.get() == "minutes" else None,
        dialect=_DIALECT.get() or None,
        first=_FIRST.get(),
        through=tuple(_THROUGH.get()),
        seeds=tuple(_SEEDS.get()),
        spacing=_SPACING.get(),
        surprise=_SURPRISE.get(),
        only=Filters(
            artists=frozenset(_ARTISTS.get()),
            genres=frozenset(_GENRES.get()),
            years=None if years == spelt else years,
        ),
        tags=frozenset(_TAGS.get()),
        no_tags=frozenset(_NO_TAGS.get()),
        no_artists=frozenset(_NO_ARTISTS.get()),
        rested=_rested(now) if _REST.get() else frozenset(),
        prefer=_PREFER.get(),
        versions_apart=_VERSIONS.get(),
    )


def _fit(now: Snapshot) -> None:
    """Drop from the form what this library does not have; it may be another one, or have changed."""
    if _OF.get() != now.library.name:
        for key in _OF_ONE_LIBRARY:
            key.set(key.default())
        _OF.set(now.library.name)
    if PLAYLIST.get() is None and CHOSEN.get() not in (None, _STARTED.get()):
        _FIRST.set(CHOSEN.get())  # "Playlist from here" on another page
        _STARTED.set(CHOSEN.get())
    words = _words_of(now)
    if _FIRST.get() not in words.labels:
        _FIRST.set(None)
    known: tuple[tuple[Key[list[Any]], Any], ...] = (
        (_THROUGH, words.labels), (_SEEDS, words.labels), (_TAGS, words.tags), (_NO_TAGS, words.tags),
        (_GENRES, words.genres), (_ARTISTS, words.artists), (_NO_ARTISTS, words.artists),
    )  # fmt: skip
    for key, options in known:
        if any(value not in options for value in key.get()):
            key.set([value for value in key.get() if value in options])
    _set_if_new(_LENGTH, max(1, min(_LENGTH.get(), _most(now))))
    years = words.years
    if words.years is not None:
        low, high = _YEARS.get() or words.years
        low, high = max(low, words.years[0]), min(high, words.years[1])
        years = (low, high) if low <= high else words.years
    _set_if_new(_YEARS, years)


def _set_if_new(key: Key[Any], value: Any) -> None:
    """A value that is set is sent to the browser, over what is being typed there."""
    if key.get() != value:
        key.set(value)


def _most(now: Snapshot) -> int:
    return min(MAX_SONGS, len(now.indexed))


# --- the form -------------------------------------------------------------------------------------


def wish_form(now: Snapshot, walker: Walk) -> None:
    """All that can be asked for, without the button that draws."""
    _fit(now)
    if _DIALECT.get() not in {"", *(d.name for d in walker.dialects)}:
        _DIALECT.set("")
    for key in (_LENGTH_BY, _MINUTES, _SURPRISE, _PREFER, _SPACING, _REST, _VERSIONS):
        key.get()  # its default, before its widget
    _dialects(walker)
    _songs(now)
    _length(now)
    st.slider(
        "Smooth to surprising", 0.0, 1.0, step=0.05, key=_SURPRISE.name, persist_state="session",
        format="percent",
        help="Smooth follows narrow links; surprising follows broad links or jumps anywhere. The middle "
        "is like the playlists it was learned from.",
    )  # fmt: skip
    st.caption(_width_words(walker))
    st.segmented_control(
        "Prefer songs that are", PREFERENCES, key=_PREFER.name, persist_state="session",
        required=True,
        help="By imported plays and plays in this player.",
    )  # fmt: skip
    with st.expander("Limits", icon=":material/tune:"):
        _limits(_words_of(now))
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
            "What kind of playlist?", names, key=_DIALECT.name, persist_state="session", required=True, wrap=True,
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
    labels = _words_of(now).labels
    ids = list(labels)
    st.selectbox(
        "First song",
        ids,
        index=None,
        format_func=labels.__getitem__,
        placeholder="Any song",
        key=_FIRST.name,
        persist_state="session",
    )
    st.multiselect(
        "Pass through", ids, format_func=labels.__getitem__, placeholder="No song", key=_THROUGH.name,
        persist_state="session",
        help="In this order. The playlist ends with the last one, so with a first song it is a path from "
        "one to the other.",
    )  # fmt: skip
    st.multiselect(
        "Stay around", ids, format_func=labels.__getitem__, placeholder="No song", key=_SEEDS.name,
        persist_state="session",
        help="The playlist stays close to these songs; they need not be in it.",
    )  # fmt: skip


def _length(now: Snapshot) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if _LENGTH_BY.get() == "minutes":
            st.number_input(
                "Length", 1, _MAX_MIN, key=_MINUTES.name, persist_state="session", step=5, width=130
            )
        else:
            st.number_input("Length", 1, _most(now), key=_LENGTH.name, persist_state="session", width=130)
        st.segmented_control(
            "Length in",
            _BY,
            key=_LENGTH_BY.name,
            persist_state="session",
            required=True,
            label_visibility="collapsed",
        )


def _width_words(walker: Walk) -> str:
    dialect = _DIALECT.get() or None
    here, people = (walker.step_width(surprise, dialect) for surprise in (_SURPRISE.get(), 0.5))
    usual = "in real playlists" if walker.n_playlists else "in the middle"
    return f"About {here:,.0f} candidates per step ({usual}: {people:,.0f})."


def _limits(words: _Words) -> None:
    st.number_input(
        "Songs between two by the same artist", 0, 50, key=_SPACING.name, persist_state="session",
        help="Fewer if the collection has too few artists.",
    )  # fmt: skip
    st.multiselect(
        "Only with any of these tags",
        words.tags,
        placeholder="Any tag",
        key=_TAGS.name,
        persist_state="session",
    )
    st.multiselect(
        "Without these tags", words.tags, placeholder="None", key=_NO_TAGS.name, persist_state="session"
    )
    st.multiselect(
        "Only these genres", words.genres, placeholder="Any genre", key=_GENRES.name, persist_state="session"
    )
    st.multiselect(
        "Only these artists",
        words.artists,
        placeholder="Any artist",
        key=_ARTISTS.name,
        persist_state="session",
    )
    st.multiselect(
        "Without these artists",
        words.artists,
        placeholder="None",
        key=_NO_ARTISTS.name,
        persist_state="session",
    )
    if words.years is not None:
        st.slider(
            "Years",
            *words.years,
            key=_YEARS.name,
            persist_state="session",
            help="A year range excludes songs without a year.",
        )
    st.toggle(
        "Avoid recently used songs", key=_REST.name, persist_state="session",
        help="Songs of playlists generated here or saved in the last 24 hours.",
    )  # fmt: skip
    st.toggle(
        "Skip alternate versions",
        key=_VERSIONS.name,
        persist_state="session",
        help="Such as the live version of an album track.",
    )


def _n_limits(now: Snapshot) -> int:
    lists = (_TAGS, _NO_TAGS, _GENRES, _ARTISTS, _NO_ARTISTS)
    return sum(bool(key.get()) for key in lists) + (_YEARS.get() != _words_of(now).years)
