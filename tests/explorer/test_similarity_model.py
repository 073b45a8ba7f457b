"""Tests of the way from frames to vectors, and of saving and loading."""

import json

import numpy as np
import pytest

from musicsim.errors import FeatureVersionError, ModelError
from musicsim.explorer.models.encoders import CodewordEncoder
from musicsim.explorer.models.similarity_model import SimilarityModel
from musicsim.kernels import ppk_kernel, ppk_similarity


def _songs(rng, n):
    centres = rng.standard_normal((6, 39)) * 4
    return [(centres[rng.integers(0, 6, 60)] + rng.standard_normal((60, 39))).astype(np.float32) for _ in range(n)]


@pytest.fixture
def songs(rng):
    return _songs(rng, 60)


def encoder_of(songs):
    return CodewordEncoder.fit_frames(np.concatenate(songs), 32, 4, 0)


@pytest.fixture
def model(songs):
    fitted = SimilarityModel(n_codewords=32, random_state=0).use_encoder(encoder_of(songs))
    return fitted.fit_space(fitted.features(songs))


def test_vector_similarity_equals_kernel(model, songs):
    full = SimilarityModel(n_codewords=32, variance=1.0, random_state=0)
    full.use_encoder(model.encoder_)
    H = model.features(songs)
    V = full.fit_space(H).vectors(H)
    distances = np.linalg.norm(V[:, None] - V[None], axis=2)
    # all variance is kept, so they are equal up to float32
    np.testing.assert_allclose(ppk_similarity(distances), ppk_kernel(H), atol=1e-5)


def test_under_fifty_songs_keep_all_dimensions(songs):
    few = SimilarityModel(n_codewords=32, random_state=0).use_encoder(encoder_of(songs))
    few.fit_space(few.features(songs[:5]))
    V = few.transform(songs)
    # the square-root map alone, a unit vector in float32
    np.testing.assert_allclose(np.linalg.norm(V, axis=1), 1.0, atol=1e-5)


def test_keeps_95_percent_of_variance(model, songs):
    X = np.sqrt(model.features(songs))
    kept = np.var(model.transform(songs), axis=0).sum() / np.var(X, axis=0).sum()
    assert 0.95 <= kept < 1.0


def test_saved_model_gives_same_vectors(model, songs, tmp_path):
    model.save(tmp_path / "model")
    again = SimilarityModel.load(tmp_path / "model")
    np.testing.assert_array_equal(again.transform(songs), model.transform(songs))
    assert again.n_songs_ == 60


def test_saved_model_needs_no_pickle(model, tmp_path):
    model.save(tmp_path / "model")
    assert sorted(p.name for p in (tmp_path / "model").iterdir()) == ["model.json", "model.npz"]
    np.load(tmp_path / "model" / "model.npz", allow_pickle=False)


def test_rejects_taken_name(model, tmp_path):
    model.save(tmp_path / "model")
    with pytest.raises(ModelError, match="already exists"):
        model.save(tmp_path / "model")


@pytest.mark.parametrize("damage", ["missing", "json", "npz", "cut"])
def test_damaged_model_gives_clear_error(model, tmp_path, damage):
    folder = tmp_path / "model"
    model.save(folder)
    if damage == "missing":
        folder = tmp_path / "nothing"
    elif damage == "json":
        (folder / "model.json").write_text("{")
    elif damage == "npz":
        (folder / "model.npz").write_bytes(b"no archive")
    else:
        (folder / "model.npz").write_bytes((folder / "model.npz").read_bytes()[:500])
    with pytest.raises(ModelError, match="no similarity model can be read"):
        SimilarityModel.load(folder)


def test_rejects_other_feature_version(model, tmp_path):
    model.save(tmp_path / "model")
    about = tmp_path / "model" / "model.json"
    about.write_text(json.dumps(json.loads(about.read_text()) | {"feature_version": 99}))
    with pytest.raises(FeatureVersionError, match="feature version 99"):
        SimilarityModel.load(tmp_path / "model")


def test_too_few_frames_give_clear_error():
    with pytest.raises(ModelError, match=r"but there are 3\. Add a longer song"):
        CodewordEncoder.fit_frames(np.zeros((3, 39), dtype=np.float32), 1024, 4, None)
