"""Text on pages: escape it for Streamlit's Markdown and plotly's charts, format values, and show errors."""

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from html import escape
from typing import Any

import streamlit as st

from musicsim.errors import MusicsimError
from musicsim.public import safe_message
from musicsim.wording import clean

_log = logging.getLogger(__name__)
_SPECIAL = re.compile(r"([\\`*_\[\]<>$:~#|{}!&^=])")
_LINK = re.compile(r"(?i)(?<=www)(?=\.)|(?<=:)(?=//)|(?=@)")
_LIST_MARK = re.compile(r"^([-+]|\d+(?=[.)]))")


def plain(text: object) -> str:
    """Escape text, or an error's message, so that Markdown shows ``A$AP *live* [2]`` literally, and no links."""
    text = safe_message(text) if isinstance(text, BaseException) else text
    # Markdown finds addresses after it has removed the backslashes; this character is invisible and has no width
    unlinked = _LINK.sub("\u2060", " ".join(clean(text).split()))
    escaped = _SPECIAL.sub(r"\\\1", unlinked)
    # Markdown would read "1. Intro" and "- 2 -" at the start of a line as lists
    return _LIST_MARK.sub(lambda mark: mark[0] + "\u200b" if mark[0].isdigit() else "\\" + mark[0], escaped)


def shorten(text: object, longest: int) -> str:
    """Return at most `longest` characters of a text."""
    whole = clean(text)
    return whole if len(whole) <= longest else whole[: longest - 1] + "…"


def escape_for_chart(text: object, longest: int) -> str:
    """Shorten text to `longest` characters, and escape it for plotly, which reads HTML but does not decode &quot;."""
    return escape(shorten(text, longest), quote=False)


def interval(mean: float, low: float, high: float, places: int = 3) -> str:
    """Return a mean in Markdown, with its interval in gray."""
    return f"**{mean:.{places}f}** :small[:gray[{low:.{places}f}–{high:.{places}f}]]"


EXPLAINED_INTERVAL = "The gray range is the score's 95% interval: 19 of 20 such ranges contain the true value."


def off_if(is_off: object, reason: str, help: str | None = None) -> dict[str, Any]:
    """Return widget arguments: if `is_off`, the widget is disabled, and its help is the reason."""
    return {"disabled": bool(is_off), "help": reason if is_off else help}


def show_error(error: Exception) -> bool:
    """Show a MusicsimError that the page did not catch; return False to leave other errors to Streamlit."""
    if not isinstance(error, MusicsimError):
        _log.info("a page failed", exc_info=error)  # Streamlit prints it to stderr
        return False
    st.error(plain(error), icon=":material/error:")
    return True


@contextmanager
def _catch_errors(show: Callable[[str], object], *more: type[Exception]) -> Iterator[None]:
    errors: tuple[type[Exception], ...] = (MusicsimError, *more)
    try:
        yield
    except errors as error:
        show(plain(error))


show_errors = partial(_catch_errors, partial(st.error, icon=":material/error:"))
"""Show a MusicsimError, or an error of one of the given types, on the page, and continue after the block."""
toast_errors = partial(_catch_errors, partial(st.toast, icon=":material/warning:"))
"""Show a MusicsimError, or an error of one of the given types, in a toast, and continue after the block."""
