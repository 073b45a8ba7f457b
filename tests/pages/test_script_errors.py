"""What no page has caught: a sentence where the error is ours, Streamlit's own words where it is not."""

from streamlit.testing.v1 import AppTest


def _page():
    import streamlit as st

    from musicsim.errors import StorageError
    from musicsim.ui.base.script_errors import show_error

    st.text(show_error(StorageError("There is no room left in /x.")))
    st.text(show_error(ValueError("a mistake of ours")))


def test_an_error_of_ours_is_a_sentence():
    app = AppTest.from_function(_page).run(timeout=120)
    assert [error.value for error in app.error] == ["There is no room left in /x."]
    assert [text.value for text in app.text] == ["True", "False"]
