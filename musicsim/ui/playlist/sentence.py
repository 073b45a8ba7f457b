"""The request as a sentence; a click on a part of it opens the options of that part."""

from collections.abc import Callable
from functools import partial
from typing import Any

import streamlit as st

from musicsim.audio import DESCRIPTORS
from musicsim.explorer import PlaylistRequest, Snapshot, Walk, options_of
from musicsim.explorer.requests.playlist import DIRECTIONS, PREFERENCES
from musicsim.ui.base import choices_of, describe_option, option_limits, plain, shorten
from musicsim.ui.components.filter_widgets import RANGES, describe_range, filter_values, filter_widgets
from musicsim.ui.components.song_finder import find_songs
from musicsim.ui.playlist.request_form import KEYS, LENGTH_BY, MAX_SONGS, choose, chosen_ids, fit_form
from musicsim.wording import count

_MAX_CHOSEN = 100  # maximum number of songs to pass through, stay close to or exclude
_MAX_NAMED = 3  # maximum number of conditions in the sentence
_MAX_TITLE = 40
_WIDTH = 340  # pixels, so that it fits on a phone
_PREFERRED = {"any": "songs", "familiar": "familiar songs", "unheard": "unheard songs"}


def show_sentence(snapshot: Snapshot, walker: Walk) -> None:
    """Show the sentence, and the options of each part."""
    fit_form(snapshot)
    if KEYS["dialect"].get() not in {"", *(d.name for d in walker.dialects)}:
        KEYS["dialect"].set("")
    parts: tuple[tuple[str, str, str, Callable[[], None]], ...] = (
        ("", "length", _length(), partial(_edit_length, snapshot)),
        ("from", "start", _names(snapshot, "first"), partial(_edit_songs, snapshot, "first", "Any song", most=1)),
        ("to", "end", _names(snapshot, "through"), partial(_edit_songs, snapshot, "through", "No song")),
        ("", "course", _course(), partial(_edit_course, walker)),
        ("using", "songs", _songs(snapshot), partial(_edit_filters, snapshot)),
        ("", "more", ": ".join(filter(None, ("More options", _others()))), partial(_edit_others, walker)),
    )
    with st.container(horizontal=True, vertical_alignment="center", key="playlist_sentence"):
        for before, name, words, edit in parts:
            if before:
                st.markdown(before, width="content")
            with (
                st.popover(plain(words), type="tertiary", key=f"playlist_part_{name}"),
                st.container(width=2 * _WIDTH if name == "songs" else _WIDTH),
            ):
                edit()


def _length() -> str:
    unit = LENGTH_BY.get()
    return count(KEYS["length" if unit == "songs" else unit].get(), unit.removesuffix("s"))


def _names(snapshot: Snapshot, field: str) -> str:
    """Describe the first song, or the last song with the songs to pass through before it."""
    titles = [shorten(song.title, _MAX_TITLE) for song in snapshot.songs_by_id(chosen_ids(field))]
    if not titles:
        return "any song"
    *between, last = titles
    through = f" through {between[0] if len(between) == 1 else count(len(between), 'song')}" if between else ""
    return last + through


def _course() -> str:
    along, dialect = KEYS["along"].get(), KEYS["dialect"].get()
    course = f"{KEYS['direction'].get()} in {along}" if along else "steady"
    return f"{course}, like {dialect}" if dialect else course


def _songs(snapshot: Snapshot) -> str:
    """Describe the songs to choose from, with the first few conditions."""
    found = [KEYS["words"].get().strip()]
    found += [f"near {shorten(song.title, _MAX_TITLE)}" for song in snapshot.songs_by_id(chosen_ids("like"))]
    for field, value in filter_values(KEYS, choices_of(snapshot)).items():
        if field in RANGES:
            found.append(f"{options_of(PlaylistRequest)[field].label.lower()} {describe_range(KEYS[field])}")
        else:
            found += [f"{'not ' * field.startswith('no_')}{name}" for name in sorted(value)]
    excluded = chosen_ids("exclude")
    found += [f"without {count(len(excluded), 'song')}"] if excluded else []
    found += [] if KEYS["avoid_recent"].get() else ["recent songs, too"]
    found += [] if KEYS["versions_apart"].get() else ["alternate versions, too"]
    found = [condition for condition in found if condition]
    kind = _PREFERRED[KEYS["prefer"].get()]
    if not found:
        return "all songs" if kind == "songs" else kind
    n_more = len(found) - _MAX_NAMED
    return f"{kind}: {', '.join(found[:_MAX_NAMED])}{f' and {n_more} more' if n_more > 0 else ''}"


def _others() -> str:
    """Return the values behind *More options* that differ from their defaults."""
    options = options_of(PlaylistRequest)
    surprise, spacing, seed = (KEYS[name].get() for name in ("surprise", "spacing", "seed"))
    found = {
        f"surprise {surprise:.0%}": surprise != options["surprise"].default,
        f"{count(spacing, 'song')} between artists": spacing != options["spacing"].default,
        f"without {count(len(KEYS['not_because'].get()), 'reason')}": bool(KEYS["not_because"].get()),
        f"seed {seed}": seed is not None,
    }
    return ", ".join(words for words, is_changed in found.items() if is_changed)


def _widget(field: str) -> dict[str, Any]:
    return describe_option(PlaylistRequest, field) | KEYS[field].widget()


def _number(field: str, max_value: int | None = None) -> dict[str, Any]:
    return _widget(field) | option_limits(PlaylistRequest, field, max_value)


def _edit_length(snapshot: Snapshot) -> None:
    if LENGTH_BY.get() == "minutes":
        st.number_input(**_number("minutes"), step=5)
    else:
        st.number_input(**_number("length", min(MAX_SONGS, snapshot.n_indexed)))
    st.segmented_control(
        "Length in", ("songs", "minutes"), **LENGTH_BY.widget(), required=True, label_visibility="collapsed"
    )


def _edit_songs(snapshot: Snapshot, field: str, placeholder: str, most: int = _MAX_CHOSEN) -> None:
    find_songs(
        snapshot, **describe_option(PlaylistRequest, field), key=f"{KEYS[field].name}_finder", placeholder=placeholder,
        chosen=chosen_ids(field), on_change=partial(choose, field), most=most,
    )  # fmt: skip
    if field == "through":
        st.caption("The playlist ends with the last of these songs.")


def _edit_course(walker: Walk) -> None:
    st.selectbox(**_widget("along"), options=[*DESCRIPTORS], index=None, placeholder="Nothing")
    if KEYS["along"].get():
        st.segmented_control(**_widget("direction"), options=DIRECTIONS, required=True)
    _show_dialects(walker)


def _edit_filters(snapshot: Snapshot) -> None:
    with st.grid(2, min_column_width=240):
        st.text_input(**_widget("words"), placeholder="slow piano 1960s")
        st.segmented_control(**_widget("prefer"), options=PREFERENCES, required=True)
        _edit_songs(snapshot, "like", "No song")
        _edit_songs(snapshot, "exclude", "None")
        filter_widgets(PlaylistRequest, KEYS, choices_of(snapshot))
        for name in ("avoid_recent", "versions_apart"):
            st.toggle(**_widget(name))


def _edit_others(walker: Walk) -> None:
    st.slider(**_widget("surprise"), min_value=0.0, max_value=1.0, step=0.05, format="percent")
    st.number_input(**_number("spacing"))
    if KEYS["not_because"].get():
        st.pills(
            **_widget("not_because"), options=KEYS["not_because"].get(), selection_mode="multi", wrap=True,
            format_func=lambda name: plain(walker.describe(name)),
        )  # fmt: skip


def _show_dialects(walker: Walk) -> None:
    if not walker.n_playlists:
        return
    names = [dialect.name for dialect in walker.dialects]
    if len(names) > 1:
        st.pills(
            **_widget("dialect"), options=names, required=True, wrap=True,
            format_func=lambda name: plain(name) if name else "any",
        )  # fmt: skip
    chosen = next(d for d in walker.dialects if d.name == KEYS["dialect"].get())
    st.caption(f"Learned from {count(chosen.n_playlists, 'playlist')}. *Research* shows how well it works.")
