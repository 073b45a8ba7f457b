"""Widgets for what songs must be, the same on every page that narrows songs down."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from musicsim.audio import HEARD
from musicsim.explorer.snapshot.filtering import FilterChoices
from musicsim.ui.base.keys import Key
from musicsim.ui.base.option_widgets import labelled
from musicsim.ui.components.song_finder import drop_unknown, find_names

RANGES = ("years", "duration_s", *HEARD)
"""Filters with a lower and an upper bound."""
_EMPTY = {
    "artists": "Any artist",
    "genres": "Any genre",
    "tags": "Any tag",
    "folders": "Any folder",
    "keys": "Any key",
    "modes": "Any mode",
}


def filter_widgets(request: type, keys: Mapping[str, Key[Any]], choices: FilterChoices) -> None:
    """A widget for every filter of a request in which there is a choice; `keys` hold the values, by field.

    Call :func:`fit_filters` or :func:`filter_values` before.
    """
    for field, names in choices.names.items():
        find_names(**labelled(request, field), names=names, key=keys[field], placeholder=_EMPTY.get(field, "None"))
    for field, (first, last) in choices.ranges.items():
        st.slider(
            **labelled(request, field), key=keys[field].name, persist_state="session", min_value=first, max_value=last
        )


def fit_filters(keys: Mapping[str, Key[Any]], choices: FilterChoices) -> None:
    """Keep filters within what the songs have: other songs may be shown, or these have changed."""
    for field, names in choices.names.items():
        drop_unknown(keys[field], names)
    for field in RANGES:
        range_ = _within(keys[field].get(), choices.ranges.get(field))
        if keys[field].get() != range_:  # a value that is set is sent to the browser, over what is typed there
            keys[field].set(range_)


def filter_values(keys: Mapping[str, Key[Any]], choices: FilterChoices) -> dict[str, Any]:
    """Fields of a request as the widgets stand; a range that leaves nothing out is none."""
    fit_filters(keys, choices)
    values = {field: frozenset(keys[field].get()) for field in choices.names}
    narrowed = {field for field in RANGES if keys[field].get() != choices.ranges.get(field)}
    return values | {field: keys[field].get() for field in narrowed}


def _within(chosen: tuple[int, int] | None, bounds: tuple[int, int] | None) -> tuple[int, int] | None:
    """A range as far as it lies within bounds; all that they hold where it does not."""
    if chosen is None or bounds is None:
        return bounds
    low, high = max(chosen[0], bounds[0]), min(chosen[1], bounds[1])
    return (low, high) if low <= high else bounds
