"""Uncaught errors of a page: our own errors are shown as a sentence, all others by Streamlit."""

from streamlit.testing.v1 import AppTest

from tests.waiting import PATIENCE_S


def _page():
    import streamlit as st

    from musicsim.errors import StorageError
    from musicsim.ui.base.text import show_error

    st.text(show_error(StorageError("There is no room left in /x.")))
    st.text(show_error(ValueError("a mistake of ours")))


def test_own_error_is_shown_as_message():
    app = AppTest.from_function(_page).run(timeout=PATIENCE_S)
    assert [error.value for error in app.error] == ["There is no room left in /x."]
    assert [text.value for text in app.text] == ["True", "False"]
