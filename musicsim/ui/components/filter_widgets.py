"""Widgets for filters, the same on every page."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from musicsim.audio import DESCRIPTORS
from musicsim.explorer.snapshot.filtering import FilterChoices
from musicsim.ui.base import Key, describe_option
from musicsim.ui.components.song_finder import drop_unknown, find_names

RANGES = ("years", "duration_s", *DESCRIPTORS)
"""Filters with a lower and an upper bound."""
_NO_FILTER = {
    "artists": "Any artist", "genres": "Any genre", "tags": "Any tag", "folders": "Any folder", "keys": "Any key",
    "modes": "Any mode",
}  # fmt: skip


def filter_widgets(request: type, keys: Mapping[str, Key[Any]], choices: FilterChoices) -> None:
    """Show the filters of a request; `keys` holds the session entry of each field."""
    for field, names in choices.names.items():
        placeholder = _NO_FILTER.get(field, "None")
        find_names(
            **describe_option(request, field), names=names, key=keys[field], placeholder=placeholder, field=field
        )
    for field, bounds in choices.ranges.items():
        _show_range(keys[field], bounds, **describe_option(request, field))


def _show_range(key: Key[Any], bounds: tuple[int, int], **described: Any) -> None:
    low, high = _fill_ends(key.get(), bounds)
    first, last = min(low, bounds[0]), max(high, bounds[1])
    # The name contains the limits, because an old slider may still send a value that meant something else.
    widget = f"{key.name}_{first}_{last}"

    def store() -> None:
        low, high = st.session_state[widget]
        ends = (None if low == first else low), (None if high == last else high)
        key.set(None if ends == (None, None) else ends)

    if st.session_state.get(widget) != (low, high):
        st.session_state[widget] = low, high
    st.slider(**described, key=widget, min_value=first, max_value=last, on_change=store)


def describe_range(key: Key[Any]) -> str:
    """Return a chosen range in words; an end that follows the songs' values is left out."""
    low, high = key.get()
    if high is None:
        return f"from {low}"
    return f"up to {high}" if low is None else f"{low}–{high}"


def _fill_ends(ends: tuple[int | None, int | None] | None, bounds: tuple[int, int]) -> tuple[int, int]:
    """Return a range with numbers at both ends; None, for an end that the user did not choose, is at the bound."""
    low, high = ends or (None, None)
    low = min(bounds[0], bounds[1] if high is None else high) if low is None else low
    return low, max(bounds[1], low) if high is None else high


def filter_values(keys: Mapping[str, Key[Any]], choices: FilterChoices) -> dict[str, Any]:
    """Return the filters of a request: names that the library has, and ranges that the user chose."""
    for field, names in choices.names.items():
        drop_unknown(keys[field], names)
    values: dict[str, Any] = {field: frozenset(keys[field].get()) for field in choices.names}
    chosen = {field: ends for field in choices.ranges if (ends := keys[field].get()) is not None}
    return values | {field: _fill_ends(ends, choices.ranges[field]) for field, ends in chosen.items()}
