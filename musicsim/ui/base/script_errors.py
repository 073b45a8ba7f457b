"""Errors that no page has caught, in callbacks above all: ours are a sentence, wherever they come from."""

import logging

import streamlit as st

from musicsim.errors import MusicsimError
from musicsim.ui.base.text import plain

_log = logging.getLogger(__name__)


def show_error(error: Exception) -> bool:
    """Show an error of ours where the page would stand; False leaves any other to Streamlit."""
    if not isinstance(error, MusicsimError):
        _log.info("a page failed", exc_info=error)  # Streamlit says it on stderr
        return False
    st.error(plain(error), icon=":material/error:")
    return True
