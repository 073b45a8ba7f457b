"""Typed entries of a browser session."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

import streamlit as st

from musicsim.explorer.libraries import library_folders

T = TypeVar("T")
_keys: "dict[str, Key[Any]]" = {}


@dataclass(frozen=True, slots=True)
class Key(Generic[T]):
    """An entry of ``st.session_state``."""

    name: str
    default: Callable[[], T]
    meaning: str
    per_library: bool = False  # True if the value belongs to one library and is reset when the user opens another one
    is_kept: bool = False  # True if the value survives a reload; it must be replaced, never changed in place

    def __post_init__(self) -> None:
        if self.per_library or self.is_kept:
            _keys[self.name] = self

    def get(self) -> T:
        """Return the value; it is set to the default on first use."""
        try:  # one lookup instead of two, because a page reads hundreds of values
            return cast(T, st.session_state[self.name])
        except KeyError:
            self.set(self.default())
            return cast(T, st.session_state[self.name])

    def set(self, value: T) -> None:
        """Replace the value."""
        st.session_state[self.name] = value

    def widget(self) -> dict[str, Any]:
        """Return the arguments for a widget that shows the value, and keeps it while its page is not shown."""
        self.get()  # Streamlit needs the default before it draws the widget
        return kept(self.name)


def kept(name: str) -> dict[str, Any]:
    """Return the arguments for a widget that keeps its value while its page is not shown.

    If the options change, and the value is none of them, Streamlit returns to the widget's default.
    """
    return {"key": name, "persist_state": "session"}


MODEL: Key[str | None] = Key("model", lambda: None, "id of the model that the pages use", per_library=True)
LIBRARY: Key[str] = Key("library", lambda: library_folders()[0].name, "name of the open library")
DIALOG: Key[tuple[str, Any] | None] = Key("dialog", lambda: None, "open dialog and its subject", per_library=True)
NOT_HERE: Key[list[str]] = Key("not_here", list, "what was not found since the page was opened")
SECTIONS: dict[str, Key[str]] = {
    page: Key(
        f"{page}_section", str, "name of the page's open tab, as in its URL; empty for the first one or the overview"
    )
    for page in ("playlist", "train", "library", "research")
}


def read_event(key: str, name: str) -> Any:
    """Return the value that a component sent.

    Returns None if it sent nothing, or if the user has since left its page.
    """
    return st.session_state.get(key, {}).get(name)


def subject_of(dialog: str) -> Any:
    """Return the subject of a dialog, such as a song id, or None if the dialog is not open.

    To open a dialog, set :data:`DIALOG`. The dialog stays open when the page runs again, for example after a job.
    """
    name, subject = DIALOG.get() or ("", None)
    return subject if name == dialog else None


def close_dialog() -> None:
    """Close the open dialog; every dialog needs this as its `on_dismiss`."""
    DIALOG.set(None)


def persistent_keys() -> Iterable[Key[Any]]:
    """Return the entries that survive a page reload."""
    return [key for key in _keys.values() if key.is_kept]


def forget_library_state() -> None:
    """Reset every value about one library, because a different one is shown."""
    for key in _keys.values():
        if key.per_library:
            key.set(key.default())
