"""Pages work when the files of a model are lost, and say which model it is."""

import shutil

import pytest
import streamlit as st

from musicsim.explorer.refresh.fitting import RepresentationSettings
from musicsim.explorer.refresh.model_catalogue import add_representation
from musicsim.ui.base.frame import PAGES
from tests.learning import hush
from tests.pages.actions import model_choice, open_page


@pytest.fixture
def mine(full):
    """A second model of the library, in use."""
    model_id = add_representation(full, RepresentationSettings("rhythm"), "mine", hush)
    full.models.activate(model_id)
    st.cache_resource.clear()
    return full.models.get(model_id)


def lose(library, record, what):
    folder = library.models.path(record.id)
    shutil.rmtree(folder) if what == "folder" else (folder / "vectors.f32").unlink()


@pytest.mark.long
@pytest.mark.parametrize("what", ["folder", "vectors"])
@pytest.mark.parametrize("page", PAGES)
def test_pages_fall_back_to_other_model_with_error(full, mine, page, what):
    lose(full, mine, what)
    app = open_page(page)
    assert not app.exception
    assert [error.value for error in app.error] == [
        "The files of the model “mine” are missing or damaged. Choose a different model."
    ]
    assert app.title[0].value
    assert model_choice(app).value == full.models.native().id
    app.button(key=f"instead_{full.models.native().id}").click().run()
    assert not app.exception
    assert not app.error


def test_model_without_files_can_be_deleted(full, mine):
    lose(full, mine, "folder")
    app = open_page("train", "models")
    app.button(key=f"card_delete_{mine.id}").click().run()
    assert not app.exception
    assert not app.error
    assert {record.kind for record in full.models.all()} == {"native", "codewords"}


@pytest.mark.long
@pytest.mark.parametrize("page", PAGES)
def test_pages_name_lost_model_without_fallback(full, page):
    st.cache_resource.clear()
    lose(full, full.models.native(), "folder")
    app = open_page(page, "train" if page == "train" else "", "train_details")
    assert not app.exception
    if page == "library":
        assert "Add the folder" in [button.label for button in app.button]
    else:
        assert any("are missing or damaged" in error.value for error in app.error)
    if page == "train":
        app.session_state["train_section"] = "models"
        app.run()
        assert any(button.label == "In use" for button in app.button)
