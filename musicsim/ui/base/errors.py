"""Errors on pages."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from musicsim.errors import MusicsimError
from musicsim.ui.base.text import plain

_log = logging.getLogger(__name__)


def show_error(error: Exception) -> bool:
    """Show one of our own errors that the page did not catch; return False to leave other errors to Streamlit."""
    if not isinstance(error, MusicsimError):
        _log.info("a page failed", exc_info=error)  # Streamlit prints it on stderr
        return False
    st.error(plain(error), icon=":material/error:")
    return True


@contextmanager
def toast_errors(*more: type[Exception]) -> Iterator[None]:
    """Show our own errors, and errors of the types `more`, in a toast."""
    errors: tuple[type[Exception], ...] = (MusicsimError, *more)
    try:
        yield
    except errors as error:
        st.toast(plain(error), icon=":material/warning:")
