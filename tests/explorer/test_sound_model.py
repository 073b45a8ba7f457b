"""Tests of the model Sound: its parts, their shares and lengths, and models of older feature versions."""

from dataclasses import replace

import numpy as np
import pytest

from musicsim import gaussians
from musicsim.errors import ModelError
from musicsim.explorer.models.encoders import FLUCTUATION, SHAPE, SOUND_SIZES, TIMBRE
from musicsim.explorer.models.representations import FLUCTUATION_SHARE, SHAPE_SHARE, TIMBRE_SHARE
from musicsim.explorer.models.schema import SOUND
from musicsim.explorer.models.similarity_model import SimilarityModel
from musicsim.explorer.refresh.fitting import fit_sound, parts_of
from musicsim.library.stores.song_gaussians import part_gaussians, shape_gaussian
from tests.old_features import older_sound


@pytest.fixture
def songs(tiny_library):
    """The features of twelve songs."""
    return [tiny_library.frame_files.frames(song.content_hash) for song in tiny_library.songs()]


@pytest.fixture
def model(songs):
    encoder, within = fit_sound([parts_of(song) for song in songs])
    fitted = SimilarityModel(SOUND, random_state=0).use_encoder(encoder)
    return fitted.fit_space(fitted.features(songs), within)


def part_of_vectors(model, vectors, columns):
    return vectors[:, model.axes_[:, columns].any(axis=1)].astype(np.float64)


def test_features_are_logarithms_and_mean_pattern(model, songs):
    features = model.features(songs)
    assert features.shape == (12, SOUND_SIZES[1])
    prior = gaussians.load_prior()
    for row, song in zip(features, songs, strict=True):
        np.testing.assert_array_equal(row[TIMBRE], model.encoder_.timbre.transform(part_gaussians(song).merge())[0])
        np.testing.assert_array_equal(row[FLUCTUATION], song.fluctuation.mean(axis=0, dtype=np.float32))
        np.testing.assert_array_equal(row[SHAPE], model.encoder_.shape.transform(shape_gaussian(song))[0])
    whole = gaussians.SongGaussians.concatenate([shape_gaussian(song) for song in songs])
    own = gaussians.GaussianEmbedding().fit(whole).population_.join(prior.spectra)
    np.testing.assert_allclose(model.encoder_.shape.population_.covariance, own.covariance, rtol=1e-9)


def test_vectors_of_timbre_and_shape_have_equal_lengths(model, songs):
    vectors = model.transform(songs)
    before = (model.features(songs) - model.mean_) @ model.axes_.T
    for columns in (TIMBRE, SHAPE):
        found, plain = (part_of_vectors(model, X, columns) for X in (vectors, before))
        lengths = np.linalg.norm(plain, axis=1)
        # vectors are float32
        np.testing.assert_allclose(found, plain / lengths[:, None] * np.sqrt(np.mean(lengths**2)), atol=1e-5)
    np.testing.assert_allclose(
        part_of_vectors(model, vectors, FLUCTUATION), part_of_vectors(model, before, FLUCTUATION), atol=1e-5
    )


def test_parts_have_their_shares_of_squared_distance(rng):
    """With features of many songs, the mean squared distance is 1."""
    features = rng.standard_normal((3_000, SOUND_SIZES[1])).astype(np.float32)
    features[:, 5:820:7] *= 3
    features[:, 1420::5] *= 4
    model = SimilarityModel(SOUND)
    model.fit_space(features)
    vectors = model.vectors(features)
    for columns, share in ((TIMBRE, TIMBRE_SHARE), (FLUCTUATION, FLUCTUATION_SHARE), (SHAPE, SHAPE_SHARE)):
        part = part_of_vectors(model, vectors, columns)
        # the 60 songs of the constants count as 2 %
        assert 2 * part.var(axis=0).sum() == pytest.approx(share, rel=0.06)
    assert pytest.approx(1) == TIMBRE_SHARE + FLUCTUATION_SHARE + SHAPE_SHARE


def test_mapped_features_and_axes_give_distances_exactly(model, songs):
    """The explanations of results share out these distances."""
    mapped, vectors = model.map_features(model.features(songs)), model.transform(songs).astype(np.float64)
    for i, j in ((0, 1), (3, 8), (11, 2)):
        delta = (mapped[i] - mapped[j]).astype(np.float64)
        terms = delta * (model.axes_.T @ (model.axes_ @ delta))
        assert terms.sum() == pytest.approx(np.sum((vectors[i] - vectors[j]) ** 2), abs=1e-5)


def test_song_of_older_version_has_no_features(model, songs):
    older = replace(songs[0], spectral_shape=None)
    features = model.features([older, songs[1]])
    assert np.isnan(features[0]).all()
    assert np.isfinite(features[1]).all()
    assert np.isnan(model.vectors(features)[0]).all()


def test_duplicates_are_near_even_in_a_library_of_two_songs(songs):
    """The mean of so few songs says little, so that of the program's constants counts more."""
    encoder, within = fit_sound([parts_of(songs[0])] * 2)
    model = SimilarityModel(SOUND, random_state=0).use_encoder(encoder)
    features = model.features([songs[0], songs[0]])
    features[1] += np.random.default_rng(0).normal(scale=1e-3, size=features.shape[1])
    vectors = model.fit_space(features, within).vectors(features)
    assert np.linalg.norm(vectors[0] - vectors[1]) < 0.1


def test_saved_model_gives_same_vectors(model, songs, tmp_path):
    model.save(tmp_path / "model")
    again = SimilarityModel.load(tmp_path / "model")
    np.testing.assert_array_equal(again.lengths_, model.lengths_)
    np.testing.assert_array_equal(again.transform(songs), model.transform(songs))


def test_model_of_older_version_is_loaded_without_shape(model, songs, tmp_path):
    features = model.features(songs)[:, : SOUND_SIZES[0]]
    older = older_sound(model.encoder_.timbre, features)
    expected = (features - older.mean_) @ older.axes_.T
    older.save(tmp_path / "model")
    again = SimilarityModel.load(tmp_path / "model")
    assert (again.n_features, again.lengths_) == (SOUND_SIZES[0], None)
    np.testing.assert_allclose(again.transform(songs), expected, atol=1e-6)
    np.testing.assert_allclose(
        again.transform([replace(song, spectral_shape=None) for song in songs]), expected, atol=1e-6
    )


@pytest.mark.parametrize("missing", ["shape_mean", "shape_covariance", "shape_songs"])
def test_incomplete_shape_is_rejected(model, tmp_path, missing):
    model.save(tmp_path / "model")
    with np.load(tmp_path / "model" / "model.npz") as file:
        arrays = {name: file[name] for name in file.files if name != missing}
    np.savez(tmp_path / "model" / "model.npz", **arrays)
    with pytest.raises(ModelError, match=f"{missing} is missing"):
        SimilarityModel.load(tmp_path / "model")


@pytest.mark.parametrize("lengths", [np.ones(3), np.array([1.0, -1.0]), np.array([np.nan, 1.0])])
def test_invalid_lengths_are_rejected(model, tmp_path, lengths):
    model.lengths_ = lengths
    model.save(tmp_path / "model")
    with pytest.raises(ModelError, match="lengths"):
        SimilarityModel.load(tmp_path / "model")
