"""Tests of mutual proximity: brute force, closed forms, and the reduction of hubs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm, spearmanr

from musicsim.evaluation import hubness
from musicsim.search import MutualProximity


def distances_of(X):
    return np.linalg.norm(X[:, None, :] - X[None, :, :], axis=2)


def mutual_proximity(D, mean_q, std_q, mean_x, std_x):
    """Adjust each row of a matrix of distances by the given moments."""
    fitted = MutualProximity()
    fitted.mean_, fitted.std_ = mean_x, std_x
    rows = np.arange(len(mean_x))
    return np.array([fitted.rescore(d, rows, own) for d, *own in zip(D, mean_q, std_q, strict=True)])


def moments_without_self(D):
    others = [np.delete(row, i) for i, row in enumerate(D)]
    return np.array([o.mean() for o in others]), np.array([o.std() for o in others])


def nearest(D, k=10):
    return (D + np.diag(np.full(len(D), np.inf))).argsort(axis=1)[:, :k]


@pytest.fixture(name="X")
def songs(rng):
    return rng.normal(size=(40, 6)).astype(np.float32)


def test_moments_are_those_of_the_distances_to_the_others(X):
    fitted = MutualProximity().fit(X)
    mean, std = moments_without_self(distances_of(X.astype(np.float64)))
    np.testing.assert_allclose(fitted.mean_, mean, rtol=1e-12)
    np.testing.assert_allclose(fitted.std_, std, rtol=1e-10)


def test_rescored_distances_equal_the_definition(X):
    D = distances_of(X.astype(np.float64))
    mean, std = moments_without_self(D)
    p = norm.sf(D, mean[:, None], std[:, None]) * norm.sf(D, mean[None, :], std[None, :])
    expected = mean.mean() + std.mean() * norm.isf(np.sqrt(p))
    fitted = MutualProximity().fit(X)
    above_the_knee = expected > 0.1 * mean.mean()
    off = ~np.eye(len(X), dtype=bool)
    assert above_the_knee[off].mean() > 0.9
    for q in range(len(X)):
        chosen = np.flatnonzero(off[q])
        query = fitted.mean_[q], fitted.std_[q]
        got = fitted.rescore(D[q, chosen], chosen, query)
        straight = above_the_knee[q, chosen]
        np.testing.assert_allclose(got[straight], expected[q, chosen][straight], rtol=1e-9)
        assert (np.argsort(got) == np.argsort(-p[q, chosen])).all()


def test_the_gaussian_form_follows_the_empirical_share(rng):
    X = rng.normal(size=(150, 12))
    D = distances_of(X)
    farther = np.empty_like(D)
    for q in range(len(X)):
        for x in range(len(X)):
            farther[q, x] = np.mean(D[q] > D[q, x]) * np.mean(D[x] > D[q, x])
    adjusted = mutual_proximity(D, *moments_without_self(D), *moments_without_self(D))
    off = ~np.eye(len(X), dtype=bool)
    # two estimates of the same quantity: distances of 12 features are nearly, but not quite, normal
    assert spearmanr(adjusted[off], -farther[off])[0] > 0.995


def test_hubs_fall(rng):
    X = rng.normal(size=(400, 60)) * rng.uniform(0.6, 1.4, size=(400, 1))  # rows near the center are hubs
    D = distances_of(X)
    fitted = MutualProximity(random_state=0).fit(X)
    adjusted = mutual_proximity(D, fitted.mean_, fitted.std_, fitted.mean_, fitted.std_)
    assert hubness(nearest(D)) > 3.0
    assert hubness(nearest(adjusted)) < 1.0


def test_adjusted_distances_are_symmetric(X):
    D = distances_of(X.astype(np.float64))
    fitted = MutualProximity().fit(X)
    adjusted = mutual_proximity(D, fitted.mean_, fitted.std_, fitted.mean_, fitted.std_)
    np.testing.assert_allclose(adjusted, adjusted.T, rtol=1e-12)


@given(st.floats(0.05, 1.0), st.floats(0.2, 4.0), st.floats(0.5, 2.0))
def test_thirty_deviations_either_way_keep_their_order(std, width, shift):
    d = np.linspace(max(0.0, 30.0 * (1.0 - std)), 30.0 * (1.0 + std), 2001)
    adjusted = mutual_proximity(d[None, :], [30.0], [std], np.full(len(d), 30.0 * shift), np.full(len(d), std * width))
    z = (d - 30.0) / std, (d - 30.0 * shift) / (std * width)
    asked = (np.abs(z[0]) <= 30.0) & (np.abs(z[1]) <= 30.0)
    assert (np.diff(adjusted[0, asked]) > 0.0).all()
    assert np.isfinite(adjusted).all()
    assert adjusted.min() >= 0.0


def test_average_songs_keep_their_distance():
    d = np.linspace(2.0, 30.0, 57)  # 8 to -20 deviations; the knee is at 1
    same = np.ones(len(d))
    np.testing.assert_allclose(mutual_proximity(d[None, :], [10.0], [1.0], 10.0 * same, same)[0], d, rtol=1e-12)


def test_below_the_knee_order_is_kept_and_zero_is_not_crossed():
    d = np.linspace(0.0, 3.0, 301)
    same = np.ones(len(d))
    adjusted = mutual_proximity(d[None, :], [10.0], [1.0], 9.0 * same, 2.0 * same)[0]
    assert adjusted[0] > 0.0
    assert (np.diff(adjusted) > 0.0).all()


def test_a_query_from_outside_equals_the_row_it_is(X):
    for n_sample in (10, 40):
        fitted = MutualProximity(n_sample=n_sample, random_state=3).fit(X)
        mean, std = fitted.moments(X.copy())
        np.testing.assert_allclose(mean, fitted.mean_, rtol=1e-12)
        np.testing.assert_allclose(std, fitted.std_, rtol=1e-10)


def test_copies_do_not_count(X):
    once, twice = (MutualProximity(nearest=1.0).fit(rows) for rows in (X, np.repeat(X, 2, axis=0)))
    np.testing.assert_allclose(twice.mean_[::2], once.mean_, rtol=1e-12)
    np.testing.assert_allclose(twice.std_[1::2], once.std_, rtol=1e-10)


def test_one_row_beside_copies_has_no_deviation():
    X = np.zeros((50, 4))
    X[-1] = 3.0
    fitted = MutualProximity().fit(X)
    np.testing.assert_array_equal(fitted.std_, 0.0)


@pytest.mark.parametrize(("n", "n_sample", "n_nearest"), [(300, 2000, 100), (90, 2000, 50), (900, 800, 200)])
def test_moments_are_those_of_the_nearest_third_within_bounds(rng, n, n_sample, n_nearest):
    X = rng.normal(size=(n, 20)).astype(np.float32)
    fitted = MutualProximity(n_sample, random_state=1).fit(X)
    D = np.linalg.norm(X[:, None].astype(float) - fitted.sample_, axis=2)
    near = np.sort(np.where(D == 0, np.inf, D), axis=1)[:, :n_nearest]
    np.testing.assert_allclose(fitted.mean_, near.mean(axis=1), rtol=1e-9)
    np.testing.assert_allclose(fitted.std_, near.std(axis=1), rtol=1e-6)


def test_blocks_and_memory_maps_do_not_show(X, tmp_path, monkeypatch):
    whole = MutualProximity(n_sample=8).fit(X)
    X.tofile(tmp_path / "rows.f32")
    rows = np.memmap(tmp_path / "rows.f32", dtype=np.float32, mode="r", shape=X.shape)
    monkeypatch.setattr("musicsim.search.proximity.BLOCK_ENTRIES", 24)
    np.testing.assert_allclose(MutualProximity(n_sample=8).fit(rows).mean_, whole.mean_, rtol=1e-12)


@pytest.mark.parametrize("X", [np.zeros((0, 3)), np.ones((1, 3)), np.eye(2), np.ones((6, 3))])
def test_where_nothing_can_be_estimated_distances_stay(X):
    fitted = MutualProximity().fit(X)
    d = np.linspace(0.0, 2.0, len(X))
    rows = np.arange(len(X))
    np.testing.assert_array_equal(fitted.rescore(d, rows, fitted.moments(np.zeros((1, X.shape[1])))), d)


def test_a_song_without_a_deviation_counts_as_an_average_one():
    d = np.array([[8.0, 9.0, 12.0]])
    mean, std = np.array([10.0, 10.0, 10.0]), np.array([1.0, 1.0, 0.0])
    np.testing.assert_allclose(mutual_proximity(d, [0.0], [0.0], mean, std), d, rtol=1e-12)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda m: MutualProximity(n_sample=0).fit(np.eye(4)), "n_sample=0"),
        (lambda m: MutualProximity(nearest=0).fit(np.eye(4)), "nearest=0"),
        (lambda m: MutualProximity().fit(np.zeros(4)), "two-dimensional"),
        (lambda m: MutualProximity().fit([[np.nan, 1.0], [0.0, 1.0]]), "NaN"),
        (lambda m: m.moments(np.zeros((1, 3))), "Q has 3 columns, but the fit had 4"),
        (lambda m: m.rescore([1.0, 2.0], [0], (1.0, 1.0)), r"rows has shape \(1,\)"),
        (lambda m: m.rescore([1.0], [4], (1.0, 1.0)), "rows must be numbers of fitted rows, from 0 to 3"),
        (lambda m: m.rescore([1.0], [-1], (1.0, 1.0)), "rows must be numbers of fitted rows, from 0 to 3"),
        (lambda m: m.rescore([1.0], [0], ([1.0, 2.0], [1.0, 1.0])), "one query"),
    ],
)
def test_what_does_not_fit_is_refused(act, message):
    fitted = MutualProximity().fit(np.eye(4))
    with pytest.raises(ValueError, match=message):
        act(fitted)


def test_others_are_rescored_as_rows_are_and_do_not_count_in_the_average(rng):
    X = rng.normal(size=(60, 4)) * rng.uniform(0.5, 2.0, size=(60, 1))
    others, query = 9.0 + X[:7], X[:1] + 0.1
    fitted = MutualProximity(random_state=0).fit(X)
    distances = np.linalg.norm(X[:7] - query, axis=1)
    of_query = fitted.moments(query)
    as_rows = fitted.rescore(distances, np.arange(7), of_query)
    np.testing.assert_allclose(fitted.rescore_others(distances, fitted.moments(X[:7]), of_query), as_rows)
    far = np.linalg.norm(others - query, axis=1)
    together = fitted.rescore_others(far, fitted.moments(others), of_query)
    alone = [fitted.rescore_others(far[i : i + 1], fitted.moments(others[i : i + 1]), of_query) for i in range(7)]
    np.testing.assert_allclose(together, np.concatenate(alone))
    with pytest.raises(ValueError, match="must be"):
        fitted.rescore_others(distances, fitted.moments(X[:3]), of_query)
