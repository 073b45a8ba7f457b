"""Errors that no page has caught, in callbacks above all: ours are a sentence, wherever they come from."""

import streamlit as st

from musicsim.errors import MusicsimError
from musicsim.ui.base.text import plain


def show_error(error: Exception) -> bool:
    """Show an error of ours where the page would stand; False leaves any other to Streamlit."""
    if not isinstance(error, MusicsimError):
        return False
    st.error(plain(error), icon=":material/error:")
    return True
