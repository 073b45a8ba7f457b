"""Tests of the user's vectors on the Teach page."""

import io
from pathlib import Path

import numpy as np
import pytest
import streamlit as st

from musicsim.explorer import jobs
from musicsim.explorer.models.similarity_model import SimilarityModel
from musicsim.explorer.models.song_features import feature_blocks
from musicsim.explorer.refresh.fitting import RepresentationSettings
from musicsim.explorer.refresh.model_catalogue import add_representation
from musicsim.explorer.refresh.model_text import facts
from musicsim.explorer.refresh.refresh import refresh
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.extensions.embeddings.adding import add_own_vectors
from musicsim.extensions.embeddings.vectors import EmbeddingStore
from tests.learning import hush
from tests.pages.actions import open_page
from tests.sounds import write_song


def press(app, label):
    next(button for button in app.button if button.label == label).click().run()
    assert not app.exception
    return app


def captions(app):
    return "\n".join(caption.value for caption in app.caption)


@pytest.mark.long
def test_imported_vectors_are_matched_and_become_model(full, monkeypatch):
    songs = full.songs()
    data = io.BytesIO()
    names = [str(song.path) for song in songs[1:]] + ["elsewhere.mp3"]
    np.savez(data, paths=np.array(names), vectors=np.random.default_rng(0).standard_normal((len(names), 4)))
    started = []
    monkeypatch.setattr(jobs, "start", lambda library, kind, arguments: started.append((kind, arguments)))
    app = open_page("train", "models")

    def bring(name, content):
        app.get("file_uploader")[1].set_value((name, content, "application/octet-stream")).run()
        press(app, "Import")

    bring("net.npz", data.getvalue())
    assert (
        "net.npz contains 12 vectors with 4 dimensions\\: 11 for songs in this library, 1 for other songs"
        in captions(app)
    )
    ((kind, arguments),) = started
    assert (kind, arguments["name"]) == ("represent", "net")
    settings = RepresentationSettings(**arguments["settings"])
    assert (settings.representation, settings.label) == ("own", "net.npz")
    model_id = add_representation(full, settings, arguments["name"], hush)
    assert len(take_snapshot(full, model_id).row_ids) == 11
    app = open_page("train", "models")
    assert "11 of 12 songs have a vector; 12 vectors" in captions(app)
    bring("net.npz", b"no zip")
    assert any("not an .npz file" in box.value for box in app.error)
    np.savez(data := io.BytesIO(), paths=np.array(["nowhere"]), vectors=np.ones((1, 4)))
    bring("other.npz", data.getvalue())
    assert any("0 for songs in this library, 1 for other songs (nowhere)" in box.value for box in app.error)
    assert len(started) == 1, "nothing is made of what cannot be used"


@pytest.fixture
def mine(full, tmp_path):
    """Add a second model from vectors of the user and make it active. Return it and the facts about the vectors."""
    ids = [song.id for song in full.songs()]
    X = np.random.default_rng(0).standard_normal((len(ids), 5))
    np.savez(tmp_path / "own.npz", ids=np.array(ids), vectors=X)
    model_id, about, _ = add_own_vectors(full, tmp_path / "own.npz", "mine", hush)
    full.models.activate(model_id)
    st.cache_resource.clear()
    return full.models.get(model_id), about


@pytest.mark.long
@pytest.mark.parametrize("name", ["vectors.npy", "about.json"])
def test_damaged_vectors_do_not_break_pages_or_scans(full, mine, tmp_path, name):
    record, about = mine
    target = EmbeddingStore(full).folder / about.key / name
    target.write_bytes(target.read_bytes()[:100] if name == "vectors.npy" else b"")
    app = open_page("train", "models")
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


@pytest.mark.parametrize(("weights", "label"), [(None, "Download and add MusiCNN"), (Path("musicnn"), "Add MusiCNN")])
def test_musicnn_is_added_by_button(full, monkeypatch, weights, label):
    started = []
    monkeypatch.setattr(jobs, "start", lambda library, kind, arguments: started.append((kind, arguments)))
    monkeypatch.setattr("musicsim.extensions.embeddings.page.find_weights", lambda: weights)
    press(open_page("train", "ear"), label)
    assert started == [("ear", {})]


@pytest.mark.parametrize(("name", "front_end"), [("musicnn-0.1.0-py3-none-any.whl", ""), ("net.onnx", "essentia")])
def test_uploaded_network_starts_job(full, monkeypatch, name, front_end):
    started = []
    monkeypatch.setattr(jobs, "start", lambda library, kind, arguments: started.append((kind, arguments)))
    app = open_page("train", "ear")
    uploader = next(one for one in app.get("file_uploader") if one.label == "Package musicnn, or an ONNX network")
    uploader.set_value((name, b"the file", "application/octet-stream")).run()
    if front_end:
        next(box for box in app.selectbox if box.label == "Front end").select(front_end).run()
    press(app, "Add the ear")
    ((kind, arguments),) = started
    assert (kind, arguments["front_end"]) == ("ear", front_end)
    assert Path(arguments["path"]).read_bytes() == b"the file"
