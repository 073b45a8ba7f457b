"""Widgets for filters, the same on every page."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from musicsim.audio import HEARD
from musicsim.explorer.snapshot.filtering import FilterChoices
from musicsim.ui.base.keys import Key
from musicsim.ui.base.option_widgets import describe
from musicsim.ui.components.song_finder import drop_unknown, find_names

RANGES = ("years", "duration_s", *HEARD)
"""Filters with a lower and an upper bound."""
_NO_FILTER = {
    "artists": "Any artist", "genres": "Any genre", "tags": "Any tag", "folders": "Any folder", "keys": "Any key",
    "modes": "Any mode",
}  # fmt: skip


def filter_widgets(request: type, keys: Mapping[str, Key[Any]], choices: FilterChoices) -> None:
    """Show the filters of a request; call :func:`fit_filters` first. `keys` holds the session entry of each field."""
    for field, names in choices.names.items():
        find_names(**describe(request, field), names=names, key=keys[field], placeholder=_NO_FILTER.get(field, "None"))
    for field, (first, last) in choices.ranges.items():
        st.slider(**describe(request, field), **keys[field].widget(), min_value=first, max_value=last)


def fit_filters(keys: Mapping[str, Key[Any]], choices: FilterChoices) -> None:
    """Drop unknown names and clip ranges to the songs' values, because the library may have changed."""
    for field, names in choices.names.items():
        drop_unknown(keys[field], names)
    for field in RANGES:
        chosen, bounds = keys[field].get(), choices.ranges.get(field)
        fitted = bounds
        if chosen is not None and bounds is not None:
            low, high = max(chosen[0], bounds[0]), min(chosen[1], bounds[1])
            fitted = (low, high) if low <= high else bounds
        if chosen != fitted:  # only if needed, because setting a value overwrites what the user is typing
            keys[field].set(fitted)


def filter_values(keys: Mapping[str, Key[Any]], choices: FilterChoices) -> dict[str, Any]:
    """Return the filters of a request, without ranges that exclude nothing."""
    fit_filters(keys, choices)
    values = {field: frozenset(keys[field].get()) for field in choices.names}
    narrowed = {field for field in RANGES if keys[field].get() != choices.ranges.get(field)}
    return values | {field: keys[field].get() for field in narrowed}
