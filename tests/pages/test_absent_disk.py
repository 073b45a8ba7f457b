"""Pages while the disk of the library is away, and when it returns."""

import pytest
import streamlit as st

from musicsim.explorer.libraries import create_library
from musicsim.ui.base.frame import PAGES
from tests.pages.actions import open_page, said


@pytest.mark.parametrize(
    "page", ["listen", *(pytest.param(name, marks=pytest.mark.long) for name in PAGES if name != "listen")]
)
def test_page_says_that_the_disk_is_away(full, page):
    app = open_page(page)
    assert not app.error
    away = full.folder.rename(full.folder.with_name("away"))
    app.run()
    assert not app.exception
    assert [error.value.replace("\\", "") for error in app.error] == [
        f"{full.folder.name}: the disk of this library is not there. Connect it again, or restart the app if you "
        "deleted the library."
    ]
    assert not full.folder.exists()
    away.rename(full.folder)
    app.run()
    assert not app.exception
    assert not app.error


def test_page_names_the_library_that_went_away(full):
    st.cache_resource.clear()
    folder = create_library("Jazz")
    app = open_page("listen")
    app.selectbox(key=f"library_{full.folder.name}").set_value("Jazz").run()
    folder.rename(folder.with_name(".away"))
    app.run()
    assert not app.exception
    assert "Not found: the library “Jazz”" in said(app)
