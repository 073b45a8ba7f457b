"""Entries of a browser session: for each its name, its type, its default and its meaning.

Pages and widgets read and write ``st.session_state`` through a :class:`Key`, so that each fact stands in one place.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

import numpy as np
import streamlit as st

from musicsim._arrays import Int64Array
from musicsim.explorer.libraries import library_folders

T = TypeVar("T")

_per_library: "dict[str, Key[Any]]" = {}
_kept: "dict[str, Key[Any]]" = {}


@dataclass(frozen=True, slots=True)
class Key(Generic[T]):
    """A typed entry of the session.

    Parameters
    ----------
    name : str
        Name in ``st.session_state``.
    default : callable without arguments
        Makes the value a session starts with.
    meaning : str
        One line on what the value is.
    per_library : bool
        Whether the value speaks of one library, and goes when another one is shown.
    is_kept : bool
        Whether it outlives a reload of the page (:mod:`musicsim.ui.base.reloads`). Such a value is replaced, never
        changed in place.
    """

    name: str
    default: Callable[[], T]
    meaning: str
    per_library: bool = False
    is_kept: bool = False

    def __post_init__(self) -> None:
        if self.per_library:
            _per_library[self.name] = self
        if self.is_kept:
            _kept[self.name] = self

    def get(self) -> T:
        """The value, set to its default on first use."""
        try:  # one look, and not two: a page asks hundreds of times
            return cast(T, st.session_state[self.name])
        except KeyError:
            self.set(self.default())
            return cast(T, st.session_state[self.name])

    def set(self, value: T) -> None:
        """Replace the value."""
        st.session_state[self.name] = value

    def keep(self) -> None:
        """Hold a widget's value while its page is not shown; Streamlit drops it otherwise."""
        self.set(self.get())


MODEL: Key[str | None] = Key("model", lambda: None, "id of the model the pages are seen under", per_library=True)
LIBRARY: Key[str] = Key("library", lambda: library_folders()[0].name, "name of the library that is shown")
CHOSEN: Key[int | None] = Key("chosen", lambda: None, "id of the song the pages talk about", per_library=True)
COLOUR_BY: Key[str] = Key("colour_by", lambda: "genre", "what the map's colours mean", is_kept=True)
BESIDE: Key[str | None] = Key("beside", lambda: None, "id of the model whose map stands beside the other", is_kept=True)
FOUND: Key[Int64Array] = Key(
    "found", lambda: np.empty(0, dtype=np.int64), "ids of all songs that a search or a lasso marked", per_library=True
)
QUEUE_LIBRARY: Key[str] = Key("queue_library", str, "name of the library whose songs the player holds")
NOT_HERE: Key[list[str]] = Key("not_here", list, "what the address names and is not here")
SECTION: Key[str] = Key("library_section", lambda: "songs", "what the Library page shows")


def kept_keys() -> Iterable[Key[Any]]:
    """Entries that outlive a reload of the page."""
    return _kept.values()


def forget_library_state() -> None:
    """Reset every value that speaks of one library: another one is shown."""
    for key in _per_library.values():
        key.set(key.default())
