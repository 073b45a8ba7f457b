"""Pages go on where the files of a model are gone, and say of which."""

import shutil

import numpy as np
import pytest
import streamlit as st

from musicsim.explorer.models.similarity_model import SimilarityModel
from musicsim.explorer.models.song_features import feature_blocks
from musicsim.explorer.refresh.model_catalogue import add_own_vectors
from musicsim.explorer.refresh.model_text import facts
from musicsim.explorer.refresh.refresh import refresh
from musicsim.extensions.embeddings.store import EmbeddingStore
from musicsim.ui.base.frame import PAGES
from tests.learning import hush
from tests.pages.actions import model_choice, open_page
from tests.sounds import write_song


@pytest.fixture
def mine(full, tmp_path):
    """The library with a second model, in use, of vectors of the listener's own; and what is known of these."""
    ids = [song.id for song in full.songs()]
    X = np.random.default_rng(0).standard_normal((len(ids), 5))
    np.savez(tmp_path / "own.npz", ids=np.array(ids), vectors=X)
    model_id, about, _ = add_own_vectors(full, tmp_path / "own.npz", "mine", hush)
    full.models.activate(model_id)
    st.cache_resource.clear()
    return full.models.get(model_id), about


def lose(library, record, what):
    folder = library.models.path(record.id)
    shutil.rmtree(folder) if what == "folder" else (folder / "vectors.f32").unlink()


@pytest.mark.parametrize("what", ["folder", "vectors"])
@pytest.mark.parametrize("page", PAGES)
def test_every_page_opens_under_another_model_and_says_so(full, mine, page, what):
    lose(full, mine[0], what)
    app = open_page(page)
    assert not app.exception
    assert [error.value for error in app.error] == [
        "The files of the model “mine” are gone or damaged: choose another model."
    ]
    assert app.title[0].value
    assert model_choice(app).value == full.models.native().id
    app.button(key=f"instead_{full.models.native().id}").click().run()
    assert not app.exception
    assert not app.error


def test_a_model_without_its_files_is_deleted_on_the_train_page(full, mine):
    lose(full, mine[0], "folder")
    app = open_page("train")
    app.button(key=f"card_delete_{mine[0].id}").click().run()
    assert not app.exception
    assert not app.error
    assert {record.kind for record in full.models.all()} == {"native", "codewords"}


@pytest.mark.parametrize("page", PAGES)
def test_without_any_other_model_pages_name_the_one_that_is_gone(full, page):
    st.cache_resource.clear()
    lose(full, full.models.native(), "folder")
    app = open_page(page)
    assert not app.exception
    if page == "library":
        assert "Add the folder" in [button.label for button in app.button]
    else:
        assert any("are gone or damaged" in error.value for error in app.error)
    if page == "train":
        assert any(button.label == "In use" for button in app.button)


@pytest.mark.parametrize("name", ["vectors.npy", "about.json"])
def test_damaged_vectors_of_ones_own_leave_pages_and_songs_to_come(full, mine, tmp_path, name):
    record, about = mine
    target = EmbeddingStore(full).folder / about.key / name
    target.write_bytes(target.read_bytes()[:100] if name == "vectors.npy" else b"")
    app = open_page("train")
    assert not app.exception
    assert not app.error
    assert "damaged" in " ".join(facts(full, record, {}))
    full.add(write_song(tmp_path / "one.flac", title="One", artist="A"))
    assert refresh(full)
    assert len(full.models.song_rows(full.models.native().id).rows) == 13
    assert len(full.models.song_rows(record.id).rows) == 12
    model = SimilarityModel.load(full.models.path(record.id))
    if name == "vectors.npy":
        ((_, features),) = feature_blocks(full, model, full.songs(), hush)
        assert np.isnan(features).all()
