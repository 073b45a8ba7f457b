"""Tests of Gaussians of songs and the space of their logarithms, by brute force."""

from io import BytesIO

import numpy as np
import pytest
from scipy.linalg import logm, sqrtm
from sklearn.decomposition import PCA

from experiments.sound_prior import learn_prior, save_prior
from musicsim import gaussians
from musicsim.audio import FLUCTUATION_SIZE, N_SHAPE
from musicsim.explorer.refresh.fitting import SongParts
from musicsim.gaussians import GaussianEmbedding, Population, SongGaussians, Spread


def _songs(n: int = 12, d: int = 4, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(60 + 7 * i, d)) @ rng.normal(size=(d, d)) + rng.normal(scale=3, size=d) for i in range(n)]


def _fit(songs) -> SongGaussians:
    return SongGaussians.concatenate([gaussians.fit_parts(frames) for frames in songs])


def _distances(X: np.ndarray) -> np.ndarray:
    return np.linalg.norm(X[:, None].astype(float) - X[None], axis=2)


# --- Gaussians ------------------------------------------------------------------------------------


def test_frame_blocks_give_overall_mean_and_covariance():
    songs = _songs()
    found = _fit(iter(np.array_split(frames, 5)) for frames in songs)
    np.testing.assert_allclose(found.means, [frames.mean(0) for frames in songs], rtol=1e-5)
    np.testing.assert_allclose(found.covariances, [np.cov(frames.T) for frames in songs], rtol=1e-4, atol=1e-4)


def test_large_offset_keeps_precision():
    frames = np.random.default_rng(0).normal(size=(3000, 2)) + 1e6
    found = _fit([iter(np.array_split(frames, 7))])
    np.testing.assert_allclose(found.covariances[0], np.cov(frames.T), rtol=1e-5)


@pytest.mark.parametrize(("length", "expected"), [(60, [20, 20, 20]), (69, [20, 20, 29]), (71, [20, 20, 20, 11])])
def test_parts_are_consecutive_with_remainder_in_last(length: int, expected: list[int]):
    frames = np.random.default_rng(0).normal(size=(length, 3))
    parts = gaussians.fit_parts(iter(np.array_split(frames, 4)), 20)
    assert parts.n_frames.tolist() == expected
    start = 0
    for mean, n in zip(parts.means, expected, strict=True):
        np.testing.assert_allclose(mean, frames[start : start + n].mean(0), rtol=1e-5, atol=1e-6)
        start += n


def test_merged_parts_equal_whole_song():
    frames = _songs(1)[0]
    whole, merged = gaussians.fit_parts(frames), gaussians.fit_parts(frames, 13).merge()
    np.testing.assert_allclose(merged.means, whole.means, rtol=1e-5)
    np.testing.assert_allclose(merged.covariances, whole.covariances, rtol=1e-4, atol=1e-4)
    assert merged.n_frames.tolist() == [len(frames)]


def test_single_frame_has_zero_covariance():
    assert not gaussians.fit_parts(np.ones((1, 3))).covariances.any()


@pytest.mark.parametrize("frames", [np.empty((0, 3)), np.full((4, 3), np.nan)])
def test_rejects_empty_or_nan_frames(frames: np.ndarray):
    with pytest.raises(ValueError, match=r"frame|NaN"):
        _fit([frames])


# --- their space ----------------------------------------------------------------------------------


def test_vectors_match_log_euclidean_embedding():
    songs, ridge = _songs(), 0.3
    found = _fit(songs)
    X = GaussianEmbedding(ridge, level=None).fit_transform(found)
    means = np.array([frames.mean(0) for frames in songs])
    covariances = np.array([np.cov(frames.T) for frames in songs]) + ridge * np.eye(4)
    pooled = covariances.mean(0) + np.cov(means.T, bias=True)
    A = np.linalg.inv(sqrtm(pooled).real)
    logs = []
    for mean, covariance in zip(means, covariances, strict=True):
        m = A @ (mean - means.mean(0))
        logs.append(logm(np.block([[A @ covariance @ A + np.outer(m, m), m[:, None]], [m[None], np.eye(1)]])))
    apart = [[np.linalg.norm(one - other) for other in logs] for one in logs]
    np.testing.assert_allclose(_distances(X), apart, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(X[0][0], logs[0][0, 0], rtol=1e-4)
    assert X.dtype == np.float32
    assert X.shape[1] == gaussians.embedding_size(4) == 15


def test_song_gain_changes_nothing():
    songs = _songs()
    louder = [frames + np.array([6.0 * (-1) ** i, 0, 0, 0]) for i, frames in enumerate(songs)]
    plain, gained = (GaussianEmbedding().fit_transform(_fit(s)) for s in (songs, louder))
    np.testing.assert_allclose(plain, gained, atol=1e-4)


def test_distances_are_affine_invariant():
    songs, T = _songs(), np.random.default_rng(1).normal(size=(4, 4))
    plain, turned = (
        GaussianEmbedding(1e-9, level=None).fit_transform(_fit(s))
        for s in (songs, [frames @ T + 5 for frames in songs])
    )
    np.testing.assert_allclose(_distances(plain), _distances(turned), rtol=1e-3, atol=1e-3)


def test_vectors_are_independent_and_finite():
    found = _fit([*_songs(100), np.full((50, 4), -30.0)])
    embedding = GaussianEmbedding().fit(found)
    X = embedding.transform(found)
    np.testing.assert_allclose(X[70:], embedding.transform(found[70:]), atol=1e-5)
    assert np.isfinite(X).all()


def test_merged_populations_equal_overall_population():
    found = _fit(_songs())
    means, covariances = found.means.astype(float), found.covariances.astype(float)
    one, other, both = (Population.from_songs(means[s], covariances[s]) for s in (np.s_[:5], np.s_[5:], np.s_[:]))
    joined = one.join(other)
    np.testing.assert_allclose(joined.mean, both.mean)
    np.testing.assert_allclose(joined.covariance, both.covariance)


def test_single_song_uses_prior():
    found = _fit(_songs())
    of_many = GaussianEmbedding().fit(found)
    prior = Population(1e9, of_many.population_.mean, of_many.population_.covariance)
    alone = GaussianEmbedding(prior=prior).fit(found[:1])
    np.testing.assert_allclose(alone.transform(found), of_many.transform(found), atol=1e-4)


def test_rejects_mismatched_input():
    found = _fit(_songs())
    with pytest.raises(ValueError, match="must be"):
        SongGaussians(found.means, found.covariances[:, :2], found.n_frames)
    with pytest.raises(ValueError, match="ridge"):
        GaussianEmbedding(0.0).fit(found)
    with pytest.raises(ValueError, match="gaussians is empty"):
        GaussianEmbedding().fit(found[:0])
    with pytest.raises(ValueError, match="columns"):
        GaussianEmbedding().fit(found).transform(_fit(_songs(2, 3)))


# --- axes -----------------------------------------------------------------------------------------


def test_axes_without_parts_match_pca():
    X = np.random.default_rng(0).normal(size=(40, 6)) * [5, 4, 3, 2, 1, 0.1]
    mean, axes = gaussians.song_axes(X, variance=0.95)
    pca = PCA(0.95, svd_solver="full").fit(X)
    np.testing.assert_allclose(mean, pca.mean_)
    scale = np.sqrt(2 * pca.explained_variance_.sum() * 39 / 40)
    np.testing.assert_allclose(np.abs(axes) * scale, np.abs(pca.components_), atol=1e-9)


def test_axes_equalize_within_song_variance():
    rng = np.random.default_rng(0)
    songs = np.repeat(np.arange(30), 5)
    parts = rng.normal(size=(30, 4))[songs] * 3 + rng.normal(size=(150, 4)) * [3, 1, 1, 0.2]
    within = gaussians.pool_covariance(parts, songs)
    np.testing.assert_allclose(
        within, sum((len(p) - 1) * np.cov(p.T) for p in (parts[songs == s] for s in range(30))) / 120
    )
    _, axes = gaussians.song_axes(parts, within, variance=1.0, shrinkage=0.0)
    along = axes @ within @ axes.T
    np.testing.assert_allclose(along, np.eye(4) * along[0, 0], atol=1e-9)
    Y = parts @ axes.T
    np.testing.assert_allclose((_distances(Y) ** 2).mean(), 1.0)
    _, equal = gaussians.song_axes(parts, within, variance=1.0, shrinkage=1.0)
    np.testing.assert_allclose(equal @ equal.T, np.eye(4) * (equal @ equal.T)[0, 0], atol=1e-9)


def test_few_songs_use_axes_of_prior():
    rng = np.random.default_rng(0)
    axes = np.linalg.qr(rng.normal(size=(5, 5)))[0][:2]
    prior = Spread(100.0, np.zeros(5), axes, np.array([2.0, 1.0]), np.diag([4.0, 1.0]))
    _, found = gaussians.song_axes(rng.normal(size=(1, 5)), prior=prior, variance=1.0, shrinkage=0.0)
    # along the first axis, the variance within songs is twice as large
    along = found @ axes.T @ prior.within @ axes @ found.T
    np.testing.assert_allclose(along[:2, :2], np.eye(2) * along[0, 0], atol=1e-6)
    _, of_many = gaussians.song_axes(
        rng.normal(size=(10**6, 5)) * [9, 3, 1, 0.1, 0.1], prior=prior, variance=0.9, shrinkage=1.0
    )
    assert np.abs(of_many[0] / np.linalg.norm(of_many[0]))[0] > 0.999


def test_mean_is_combined_with_that_of_prior():
    X = np.random.default_rng(0).normal(size=(30, 3))
    prior = Spread(60.0, np.array([3.0, 0.0, 6.0]), np.eye(3), np.ones(3))
    mean, _ = gaussians.song_axes(X, prior=prior)
    np.testing.assert_allclose(mean, (30 * X.mean(axis=0) + 60 * prior.mean) / 90)


def test_prior_without_parts_does_not_whiten():
    X = np.random.default_rng(0).normal(size=(30, 3)) * [3, 2, 1]
    prior = Spread(60.0, np.zeros(3), np.eye(3), np.array([9.0, 4.0, 1.0]))
    _, axes = gaussians.song_axes(X, prior=prior, variance=1.0, shrinkage=0.1)
    np.testing.assert_allclose(axes @ axes.T, np.eye(3) * (axes @ axes.T)[0, 0], atol=1e-12)


# --- files in the package ------------------------------------------------------------------


def test_shipped_prior_matches_frame_dimensions():
    prior = gaussians.load_prior()
    for population, width in ((prior.frames, 39), (prior.spectra, N_SHAPE)):
        assert population.covariance.shape == (width, width)
        assert np.linalg.eigvalsh(population.covariance).min() > 0
    for spread, width in (
        (prior.timbre, gaussians.embedding_size(39)),
        (prior.fluctuation, FLUCTUATION_SIZE),
        (prior.shape, gaussians.embedding_size(N_SHAPE)),
    ):
        assert spread.axes.shape[1] == len(spread.mean) == width
        # half precision
        np.testing.assert_allclose(spread.axes @ spread.axes.T, np.eye(len(spread.axes)), atol=0.01)
        assert (np.diff(spread.between) <= 0).all()
        assert spread.within is None or np.linalg.eigvalsh(spread.within).min() > 0
    assert [spread.within is None for spread in (prior.timbre, prior.fluctuation, prior.shape)] == [False, False, True]


def test_learned_prior_reproduces_its_songs():
    songs = [gaussians.fit_parts(frames, 20) for frames in _songs()]
    shapes = [gaussians.fit_parts(frames) for frames in _songs(d=3, seed=1)]
    rng = np.random.default_rng(0)
    patterns = [rng.normal(size=(1, 7)) + 0.1 * rng.normal(size=(len(song), 7)) for song in songs]
    prior = learn_prior([SongParts(*of) for of in zip(songs, patterns, shapes, strict=True)], 1e9, variance=1.0)
    file = BytesIO()
    save_prior(prior, file)
    stored = gaussians.read_prior(BytesIO(file.getvalue()))
    song_of = np.repeat(np.arange(len(songs)), [len(song) for song in songs])

    def assert_same_space(X, within, spread):
        mean, of_songs = gaussians.song_axes(X, within)
        found, of_one = gaussians.song_axes(X[:1], None, spread)
        np.testing.assert_allclose(found, mean, atol=1e-3)
        np.testing.assert_allclose(_distances(X @ of_one.T), _distances(X @ of_songs.T), rtol=0.05, atol=0.02)

    embedding, within = gaussians.fit_embedding(songs)
    X = embedding.transform(_fit(_songs()))
    few, _ = gaussians.fit_embedding(songs[:1], stored.frames)
    np.testing.assert_allclose(few.transform(_fit(_songs())), X, atol=1e-3)
    assert_same_space(X, within, stored.timbre)
    F = np.array([some.mean(axis=0) for some in patterns])
    assert_same_space(F, gaussians.pool_covariance(np.concatenate(patterns), song_of), stored.fluctuation)
    whole = SongGaussians.concatenate(shapes)
    S = GaussianEmbedding().fit_transform(whole)
    few = GaussianEmbedding(prior=stored.spectra).fit(whole[:1])
    np.testing.assert_allclose(few.transform(whole), S, atol=1e-3)
    assert_same_space(S, None, stored.shape)


def test_array_is_refused_with_name_of_right_function():
    X = np.zeros((5, 39))
    with pytest.raises(TypeError, match="gaussians is a ndarray; pass SongGaussians, which fit_parts computes"):
        GaussianEmbedding().fit(X)
