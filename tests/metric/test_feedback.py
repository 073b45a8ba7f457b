"""Tests of feedback: songs marked up come nearer, songs marked down move away, and all marks are handled."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from musicsim.metric import adapt_weights, feedback_metric

NONE = np.empty((0, 5))


def songs(seed=0, n=60, d=5):
    return np.random.default_rng(seed).normal(size=(n, d)) * np.linspace(0.5, 2.0, d)


def metric(seed=0, d=5):
    A = np.random.default_rng(seed).normal(size=(d, d))
    return A @ A.T + 0.1 * np.eye(d)


def places(distances):
    return np.argsort(np.argsort(distances, kind="stable"), kind="stable")


@pytest.mark.parametrize("base", [None, metric()])
def test_no_thumbs_change_nothing(base):
    X = songs()
    given = feedback_metric(X[0], [], [], base)
    W = np.eye(5) if base is None else base
    np.testing.assert_allclose(given.distances(X), np.sqrt(np.einsum("ij,jk,ik->i", X - X[0], W, X - X[0])), atol=1e-9)
    np.testing.assert_allclose(given.metric, W, atol=1e-12)
    np.testing.assert_array_equal(given.point, X[0])
    # a mark on the query itself has no effect either
    again = feedback_metric(X[0], X[:1], X[:1], base)
    np.testing.assert_allclose(again.distances(X), given.distances(X), atol=1e-9)


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.integers(1, 59), st.booleans(), st.floats(0.1, 20), st.floats(0, 3))
def test_single_thumb_never_worsens_rank(seed, marked, with_base, strength, move):
    X = songs(seed)
    base = metric(seed) if with_base else None
    before = feedback_metric(X[0], NONE, NONE, base).distances(X)
    mark = X[marked : marked + 1]
    still = feedback_metric(X[0], mark, NONE, base, strength=strength, move=0.0)
    assert places(still.distances(X))[marked] <= places(before)[marked]
    down = feedback_metric(X[0], NONE, mark, base, strength=strength, move=move)
    assert places(down.distances(X))[marked] >= places(before)[marked]
    up = feedback_metric(X[0], mark, NONE, base, strength=strength, move=move)
    assert places(up.distances(X))[marked] <= places(before)[marked]
    assert up.distances(mark)[0] <= before[marked] * (1 + 1e-9)
    assert down.distances(mark)[0] >= before[marked] * (1 - 1e-9)


def test_thumbs_up_approach_and_thumbs_down_recede():
    X = songs(3, n=400)
    kind = X[:, 1] > 0
    ups, downs = np.flatnonzero(kind)[1:8], np.flatnonzero(~kind)[:7]
    x = X[np.flatnonzero(kind)[0]]
    before, after = (f.distances(X) for f in (feedback_metric(x, NONE, NONE), feedback_metric(x, X[ups], X[downs])))
    assert places(after)[ups].mean() < places(before)[ups].mean()
    assert places(after)[downs].mean() > places(before)[downs].mean()
    # also with songs that nobody marked
    rest = np.setdiff1d(np.arange(400), np.r_[ups, downs])
    first = [rest[np.argsort(d[rest])[:20]] for d in (before, after)]
    assert kind[first[1]].mean() > kind[first[0]].mean()


def test_distances_match_metric():
    X = songs(1)
    for base in (None, metric(1)):
        given = feedback_metric(X[0], X[3:6], X[8:9], base)
        away = X - given.point
        expected = np.sqrt(np.einsum("ij,jk,ik->i", away, given.metric, away))
        np.testing.assert_allclose(given.distances(X), expected, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(given.distances(X.astype(np.float32)), expected, rtol=1e-4, atol=1e-4)
        assert given.distances(X.astype(np.float32)).dtype == np.float32
        assert np.linalg.eigvalsh(given.metric)[0] > 0


def test_single_thumb_changes_metric_as_documented():
    up = feedback_metric(np.zeros(3), [[2.0, 0, 0]], [], strength=3.0, move=1.0)
    np.testing.assert_allclose(up.metric, np.diag([0.5, 1, 1]), atol=1e-12)  # the root of 1 + 3
    np.testing.assert_allclose(up.point, [1.0, 0, 0])
    down = feedback_metric(np.zeros(3), [], [[0, 5.0, 0]], strength=3.0)
    np.testing.assert_allclose(down.metric, np.diag([1, 2.0, 1]), atol=1e-12)
    np.testing.assert_array_equal(down.point, np.zeros(3))


def test_opposite_thumbs_on_same_song():
    same = feedback_metric(np.zeros(3), [[2.0, 0, 0]], [[2.0, 0, 0]], strength=3.0, move=0.0)
    # up: from the query; down: half as much from the query, and none from the song up
    np.testing.assert_allclose(same.metric, np.diag([np.sqrt(2.5 / 4.0), 1, 1]), atol=1e-12)


@settings(max_examples=40)
@given(
    st.lists(st.integers(0, 19), max_size=12),
    st.lists(st.integers(0, 19), max_size=12),
    st.floats(0, 1e9),
    st.floats(0, 1.7e308),
    st.sampled_from([1e-12, 1.0, 1e12]),
)
def test_extreme_thumbs_stay_finite(up, down, strength, move, unit):
    X = songs(4, n=20) * unit
    X[7] = X[8] * (1 + 1e-12)  # a song up next to one down
    given = feedback_metric(X[0], X[up], X[down], strength=strength, move=move)
    assert np.isfinite(given.distances(X)).all()
    assert np.isfinite(given.metric).all()
    assert np.linalg.eigvalsh(given.change).min(initial=1.0) > 0


def test_thumb_order_and_unit_do_not_matter():
    X = songs(2)
    first = feedback_metric(X[0], X[1:5], X[5:9]).distances(X)
    np.testing.assert_allclose(feedback_metric(X[0], X[4:0:-1], X[8:4:-1]).distances(X), first, rtol=1e-9)
    scaled = feedback_metric(7 * X[0], 7 * X[1:5], 7 * X[5:9]).distances(7 * X)
    np.testing.assert_allclose(scaled, 7 * first, rtol=1e-9)


def test_base_metric_equals_transformed_space():
    X, W = songs(5), metric(5)
    L = np.linalg.cholesky(W).T
    inside = feedback_metric(L @ X[0], X[1:4] @ L.T, X[4:6] @ L.T).distances(X @ L.T)
    np.testing.assert_allclose(feedback_metric(X[0], X[1:4], X[4:6], W).distances(X), inside, rtol=1e-8)
    # a metric that ignores some directions
    flat = np.diag([1.0, 1, 0, 0, 0])
    given = feedback_metric(X[0], X[1:4], X[4:6], flat)
    np.testing.assert_allclose(
        given.distances(X), feedback_metric(X[0, :2], X[1:4, :2], X[4:6, :2]).distances(X[:, :2]), rtol=1e-9
    )


def test_feedback_is_fast():
    rng = np.random.default_rng(0)
    d, m = 100, 20
    A = rng.normal(size=(m, d, d))
    metrics = A @ A.transpose(0, 2, 1) / d + np.eye(d)
    x, up, down = rng.normal(size=d), rng.normal(size=(10, d)), rng.normal(size=(10, d))

    def once():
        weights = adapt_weights(x, up, down, metrics)
        return feedback_metric(x, up, down, np.tensordot(weights, metrics, 1), weights=weights)

    once()
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        once()
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 1.0  # 0.01 on an idle core; the machine may be slow and busy


# --- weights -----------------------------------------------------------------------------------------------------


def test_weights_favor_metric_that_agrees_with_thumbs():
    metrics = np.stack([np.diag([1.0, 0.01]), np.diag([0.01, 1.0])])
    up, down = [[0.0, 3.0]], [[3.0, 0.0]]  # by the first metric, the song up is near
    before = np.array([0.3, 0.7])
    after = adapt_weights([0.0, 0], up, down, metrics, before)
    assert after[0] > before[0]
    assert after.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(adapt_weights([0.0, 0], [], [], metrics, before), before)
    np.testing.assert_allclose(adapt_weights([0.0, 0], up, up, metrics, before), before)
    np.testing.assert_allclose(adapt_weights([0.0, 0], [[0.0, 0.0]], [], metrics, before), before)
    np.testing.assert_allclose(adapt_weights([0.0, 0], up, down, metrics, before, strength=0), before)


def test_weights_maximize_objective(rng):
    metrics = np.stack([metric(seed) for seed in range(4)])
    X, before = songs(6), rng.dirichlet(np.ones(4))
    up, down = X[1:3], X[3:7]
    after = adapt_weights(X[0], up, down, metrics, before, strength=2.0)

    def squares(rows):
        return np.einsum("rij,nj,ni->rn", metrics, rows - X[0], rows - X[0])

    near, far = (squares(rows) / (before @ squares(rows)) for rows in (up, down))
    worth, s = far.mean(axis=1) - near.mean(axis=1), 2.0 * 6 / 8

    def value(phi):
        return phi @ worth - np.sum(phi * np.log(phi / before)) / s

    assert value(after) >= max(value(rng.dirichlet(np.ones(4))) for _ in range(2000)) - 1e-12


def test_zero_weight_metric_stays_at_zero():
    metrics = np.stack([np.eye(2), np.diag([1.0, 1e-6])])
    # by the first metric, with weight zero, the song down is a million times as far
    np.testing.assert_array_equal(adapt_weights([0, 0], [], [[0, 1.0]], metrics, [0.0, 1.0]), [0.0, 1.0])
    # log w rises by a third (or a third of the minimum) times the additional distance of the song down
    after = adapt_weights([0, 0], [], [[0, 1.0]], metrics, [1e-250, 1.0])
    np.testing.assert_array_equal(after, [1.0, 0.0])
    for weights in ([1e308, 1e308], [1e-320, 1e-320], [5e-324, 1.0]):
        for strength in (1.0, 1.7e308):
            after = adapt_weights([0, 0], [[1.0, 0]], [[0, 1.0]], metrics, weights, strength=strength)
            assert after.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("unknown", [np.nan, np.inf])
def test_rejects_non_finite_numbers(unknown):
    metrics = np.stack([np.eye(5)] * 2)
    with pytest.raises(ValueError, match="weights must be 2 finite numbers"):
        adapt_weights(np.zeros(5), NONE, np.ones((1, 5)), metrics, [unknown, 1.0])
    metrics[0, 1, 1] = unknown
    with pytest.raises(ValueError, match=r"metrics has shape \(2, 5, 5\); .* contain finite numbers"):
        adapt_weights(np.zeros(5), NONE, np.ones((1, 5)), metrics)


def test_rejects_wrong_number_of_columns():
    given = feedback_metric(np.zeros(3), np.ones((1, 3)), [])
    for shape in ((2, 1), (2, 4), (3,)):
        with pytest.raises(ValueError, match=r"X has shape .*; it must be \(n_songs, 3\)"):
            given.distances(np.ones(shape))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.zeros((2, 2)), NONE, NONE), "x has shape"),
        (([0, np.nan, 0, 0, 0], NONE, NONE), "x has shape"),
        ((np.zeros(5), np.zeros((2, 3)), NONE), r"up has shape \(2, 3\)"),
        ((np.zeros(5), NONE, np.full((1, 5), np.inf)), "down has shape"),
        ((np.zeros(5), NONE, NONE, np.eye(4)), r"base has shape \(4, 4\)"),
    ],
)
def test_rejects_bad_thumbs(arguments, message):
    with pytest.raises(ValueError, match=message):
        feedback_metric(*arguments)


def test_rejects_bad_parameters():
    for name in ("strength", "move"):
        with pytest.raises(ValueError, match=f"{name}=-1"):
            feedback_metric(np.zeros(5), NONE, NONE, **{name: -1})
    with pytest.raises(ValueError, match=r"strength=10000000000.0 should be a number from 0 to 1e\+09"):
        feedback_metric(np.zeros(5), NONE, NONE, strength=1e10)
    with pytest.raises(ValueError, match="metrics has shape"):
        adapt_weights(np.zeros(5), NONE, NONE, np.eye(5))
    with pytest.raises(ValueError, match="weights must be 1"):
        adapt_weights(np.zeros(5), NONE, NONE, np.eye(5)[None], [-1.0])
    with pytest.raises(ValueError, match="strength"):
        adapt_weights(np.zeros(5), NONE, NONE, np.eye(5)[None], strength=np.inf)
