"""Uncaught errors of a page, and what an earlier run leaves behind in its thread."""

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


def _shell_after_fragment():
    import streamlit as st

    from musicsim.ui import shell

    st.sidebar.__enter__()  # the container that the run of a fragment leaves behind
    shell.draw()


def test_page_does_not_stay_in_container_of_fragment(full):
    app = AppTest.from_function(_shell_after_fragment, default_timeout=PATIENCE_S).run()
    assert not app.exception
    assert "listen" in [element.key for element in app.main.get("bidi_component")]
    assert "listen" not in [element.key for element in app.sidebar.get("bidi_component")]
