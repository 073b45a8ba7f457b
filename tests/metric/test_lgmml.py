"""Tests of local metrics: numerical gradients, counted rank estimates, rankings by loops, and invariances."""

import tracemalloc
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from musicsim.metric import GMML, LGMML, LGMMLByExample
from musicsim.metric.local_metrics import LocalMetrics, Queries, closeness, learn_local_metrics, sum_weighted
from musicsim.metric.warp import draw, ndcg_steps, warp_steps
from musicsim.relevance import Relevance
from tests.metric import truth


def ranked_documents(n_queries=40, seed=0, d=4):
    """Return documents whose relevance grows near a point that is the same for all queries."""
    rng = np.random.default_rng(seed)
    group = rng.integers(4, 12, n_queries)
    X = rng.normal(size=(group.sum(), d))
    away = np.linalg.norm(X[:, :2] - 1.5, axis=1)
    return X, (away < 2.2).astype(int) + (away < 1.2), group


def sorted_queries(seed=0):
    X, y, group = ranked_documents(seed=seed)
    return Queries.from_groups(X, y.astype(float), np.concatenate([[0], np.cumsum(group)]))


FAST = {"n_metrics": 8, "n_queries": 8, "n_epochs": 5, "max_features": 1.0, "random_state": 0}


# --- queries -----------------------------------------------------------------------------------------------------


def test_documents_are_sorted_within_queries():
    X, y, group = ranked_documents()
    queries = sorted_queries()
    starts = np.concatenate([[0], np.cumsum(group)])
    for q in range(len(group)):
        rows = slice(starts[q], starts[q + 1])
        np.testing.assert_array_equal(queries.y[rows], np.sort(y[rows]))
        assert {tuple(x) for x in queries.X[rows]} == {tuple(x) for x in X[rows]}
        np.testing.assert_array_equal(queries.lower[rows], [(y[rows] < label).sum() for label in queries.y[rows]])
        assert (q in queries.usable) == (len(set(y[rows])) > 1)
        gains = np.sort(2.0 ** y[rows] - 1)[::-1]
        best = (gains[:3] / np.log2(np.arange(2, len(gains[:3]) + 2))).sum()
        np.testing.assert_allclose(queries.gains(3)[rows], (2 ** queries.y[rows] - 1) / (best or 1.0))


def test_metrics_are_scaled_means_of_sampled_queries():
    queries = sorted_queries()
    every = len(queries.usable)
    found = learn_local_metrics(
        queries, 2, every, "full", "document", 0.5, np.eye(4), 0.0, 4, np.random.default_rng(0), lambda n: False
    )
    rows = np.concatenate([np.arange(queries.starts[q], queries.starts[q + 1]) for q in queries.usable])
    up = queries.lower[rows] > 0
    U, V = queries.X[rows[up]], queries.X[rows[~up]]
    n = len(U)
    pairs = [(i, j) for i in range(n) for j in range(n) if i != j]
    across = [(i, n + j) for i in range(n) for j in range(len(V))]
    expected = GMML(reg=0.0).fit_pairs(np.concatenate([U, V]), pairs, across).metric_
    for r in range(2):
        M = found.metrics[r]
        np.testing.assert_allclose(M / np.trace(M), expected / np.trace(expected), rtol=1e-8)
        assert np.quantile(found.squares(queries.X, r), 0.95) == pytest.approx(1.0)
        assert (found.anchors[r] == U).all(axis=1).any()


@pytest.mark.parametrize("structure", ["full", "diagonal"])
def test_max_features_limits_columns_per_metric(structure):
    X, y, group = ranked_documents()
    ranker = LGMML(structure=structure, **FAST | {"max_features": 0.5, "n_metrics": 20}).fit(X, y, group)
    diagonals = ranker.metrics_ if structure == "diagonal" else np.diagonal(ranker.metrics_, axis1=1, axis2=2)
    assert ((diagonals > 0).sum(axis=1) == 2).all()
    assert len({tuple(row) for row in diagonals > 0}) > 3
    if structure == "full":
        assert not ranker.metrics_[:, 0, :][diagonals[:, 0] == 0].any()


def test_diagonal_metric_is_mean_of_diagonals():
    queries = sorted_queries()
    arguments = (queries, 1, 12, "ideal", 0.3, np.eye(4), 0.2, 4)
    full, diagonal = (
        learn_local_metrics(*arguments[:3], structure, *arguments[3:], np.random.default_rng(0), lambda n: False)
        for structure in ("full", "diagonal")
    )
    assert diagonal.metrics.shape == (1, 4)
    assert full.metrics.shape == (1, 4, 4)
    assert np.quantile(diagonal.squares(queries.X, 0), 0.95) == pytest.approx(1.0)
    away = queries.X - diagonal.anchors[0]
    np.testing.assert_allclose(diagonal.squares(queries.X, 0), (away**2) @ diagonal.metrics[0])


def test_closeness_matches_equation_13():
    queries = sorted_queries()
    rng = np.random.default_rng(0)
    local = LocalMetrics(np.stack([np.eye(4), 0.1 * np.eye(4)]), rng.normal(size=(2, 4)))
    table, beyond = closeness(local, queries.X)
    t = np.stack([((queries.X - a) ** 2).sum(axis=1) * s for a, s in zip(local.anchors, (1, 0.1), strict=True)], axis=1)
    np.testing.assert_allclose(table, t * np.exp(-t), rtol=1e-5, atol=1e-7)
    assert beyond == pytest.approx(np.mean(t > 1))


# --- steps -------------------------------------------------------------------------------------------------------


def one_query(labels, seed=0, m=3):
    rng = np.random.default_rng(seed)
    labels = np.sort(np.asarray(labels, dtype=float))
    lower = np.array([(labels < label).sum() for label in labels])
    return rng.random((len(labels), m)).astype(np.float32), labels, lower, np.array([0, len(labels)])


def ranks_up_to(n):
    return np.concatenate([[0.0], np.cumsum(1.0 / np.log2(np.arange(2.0, n + 2.0)))])


def warp(table, lower, starts, phi, seed=5, rate=1.0, margin=0.5, batch=1, n_steps=1):
    phi, total = phi.copy(), np.zeros_like(phi)
    state = np.array([seed], dtype=np.uint64)
    loss = warp_steps(
        table, lower, starts, np.array([0]), phi, rate, margin, batch, n_steps, ranks_up_to(len(table)), state, total
    )
    return phi, loss, total


def test_drawn_numbers_are_uniform():
    state = np.array([12345], dtype=np.uint64)
    counts = np.bincount([draw(state, 7) for _ in range(14_000)])
    assert len(counts) == 7
    assert np.abs(counts - 2000).max() < 5 * np.sqrt(2000)


@pytest.mark.parametrize("seed", range(1, 6))
def test_warp_step_follows_gradient_of_its_tuple(seed):
    # one relevant and one irrelevant document: the tuple is known, and its rank estimate is 1
    table, _, lower, starts = one_query([0, 1], seed)
    phi = np.array([0.9, 0.4, 0.7])

    def loss(phi):
        f = -(table.astype(float) @ phi)
        return max(0.0, 0.5 - f[1] + f[0])

    moved, found, total = warp(table, lower, starts, phi, rate=1e-3)
    assert found == pytest.approx(loss(phi), rel=1e-6)
    h = 1e-6
    gradient = np.array([(loss(phi + h * e) - loss(phi - h * e)) / (2 * h) for e in np.eye(3)])
    np.testing.assert_allclose(moved, phi - 1e-3 * gradient, rtol=1e-6)  # float32 in the table
    np.testing.assert_array_equal(total, moved)
    assert loss(moved) <= loss(phi)


def test_negative_weights_become_zero():
    table, _, lower, starts = one_query([0, 1])
    moved, _, _ = warp(table, lower, starts, np.full(3, 0.1), rate=1e3, margin=10.0)
    assert (moved >= 0).all()
    assert (moved == 0).any()


def test_rank_estimate_is_candidates_over_draws():
    # 40 irrelevant documents, of which the nearest v violate: the loss is L(floor(40 / N)) times a known hinge
    n, v = 40, 10
    ranks = ranks_up_to(n)
    table = np.ones((n + 1, 1), dtype=np.float32)
    table[:v] = 0.0  # violators: nearer than the relevant one
    table[v:n] = 100.0
    lower = np.append(np.zeros(n, dtype=np.int64), n)
    margin = 0.5
    losses = np.array(
        [warp(table, lower, np.array([0, n + 1]), np.ones(1), seed=s, rate=0.0)[1] for s in range(1, 4001)]
    )
    # N is geometric with probability v / n, stopped after n draws
    chances = (v / n) * (1 - v / n) ** np.arange(n)
    levels = ranks[n // np.arange(1, n + 1)] * (margin + 1.0)
    expected = chances @ levels
    deviation = np.sqrt(chances @ levels**2 - expected**2)
    assert losses.mean() == pytest.approx(expected, abs=5 * deviation / np.sqrt(len(losses)))
    assert np.isin(np.round(losses, 5), np.round(np.append(levels, 0.0), 5)).all()


def test_no_violator_means_no_update():
    table = np.array([[5.0], [1.0]], dtype=np.float32)  # the irrelevant one is far
    moved, loss, _ = warp(table, np.array([0, 1]), np.array([0, 2]), np.ones(1), margin=1.0)
    assert loss == 0.0
    assert moved[0] == 1.0


@pytest.mark.parametrize("k", [2, 10])
def test_ndcg_step_is_gradient_of_weighted_hinges(k):
    table, labels, lower, starts = one_query([0, 0, 1, 1, 2], 3)
    phi = np.array([0.9, 0.4, 0.7])
    best = sum((2**label - 1) / np.log2(i + 2) for i, label in enumerate(labels[::-1][:k]))
    gains = (2**labels - 1) / best

    def weights(phi):
        rank = np.argsort(np.argsort(table.astype(float) @ phi, kind="stable"), kind="stable") + 1
        discount = np.where(rank <= k, 1 / np.log2(rank + 1), 0.0)
        return np.abs(gains[:, None] - gains[None]) * np.abs(discount[:, None] - discount[None])

    fixed = weights(phi)

    def loss(phi):
        f = -(table.astype(float) @ phi)
        pairs = [(u, v) for u in range(5) for v in range(5) if labels[u] > labels[v]]
        return sum(fixed[u, v] * max(0.0, 0.3 - f[u] + f[v]) for u, v in pairs)

    moved, total = phi.copy(), np.zeros(3)
    state = np.array([1], dtype=np.uint64)
    found = ndcg_steps(table, lower, starts, np.array([0]), moved, 1e-3, 0.3, 1, 1, gains, k, state, total)
    assert found == pytest.approx(loss(phi), rel=1e-6)
    h = 1e-6
    gradient = np.array([(loss(phi + h * e) - loss(phi - h * e)) / (2 * h) for e in np.eye(3)])
    np.testing.assert_allclose(moved, phi - 1e-3 * gradient, rtol=1e-6)


# --- the ranker --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["warp", "ndcg"])
@pytest.mark.parametrize("anchor", ["ideal", "document"])
@pytest.mark.parametrize("structure", ["full", "diagonal"])
def test_learns_to_rank_unseen_queries(loss, anchor, structure):
    ranker = LGMML(loss=loss, anchor=anchor, structure=structure, standardize=None, **FAST).fit(*ranked_documents())
    rng = np.random.default_rng(1)
    X, y, group = ranked_documents(seed=7)
    chance = np.mean([_ndcg_of(rng.normal(size=len(y)), y, group) for _ in range(20)])
    assert ranker.score(X, y, group) > chance + 0.15
    assert ranker.history_[-1]["epoch"] == 5


def _ndcg_of(scores, y, group):
    from musicsim.evaluation.graded import score_groups

    return score_groups(scores, y, group)["ndcg@10"].mean()


@pytest.mark.parametrize("standardize", [None, "column", "query"])
def test_scores_match_equation_13(standardize):
    X, y, group = ranked_documents()
    ranker = LGMML(standardize=standardize, **FAST).fit(X, y, group)
    Z = X
    if standardize == "column":
        Z = (X - X.mean(axis=0)) / X.std(axis=0)
    if standardize == "query":
        parts = np.split(X, np.cumsum(group)[:-1])
        Z = np.concatenate([(part - part.mean(axis=0)) / part.std(axis=0) for part in parts])
    expected = np.zeros(len(X))
    for M, p, phi in zip(ranker.metrics_, ranker.anchors_, ranker.weights_, strict=True):
        t = np.einsum("ij,jk,ik->i", Z - p, M, Z - p)
        assert np.quantile(t, 0.95) == pytest.approx(1.0)
        expected -= phi * t * np.exp(-t)
    np.testing.assert_allclose(ranker.predict(X, group), expected, rtol=1e-4, atol=1e-6)
    assert (ranker.weights_ >= 0).all()


@pytest.mark.parametrize("unit", [1e-12, 1e-50, 1e50])
@pytest.mark.parametrize("standardize", ["column", "query"])
def test_small_units_are_not_treated_as_constant(standardize, unit):
    X, y, group = ranked_documents()
    scale = np.array([unit, unit, 1.0, 1.0])
    first, other = (LGMML(standardize=standardize, **FAST).fit(Z, y, group).predict(Z, group) for Z in (X, X * scale))
    np.testing.assert_allclose(other, first, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("standardize", ["column", "query"])
def test_constant_column_is_ignored(standardize):
    X, y, group = ranked_documents(n_queries=300)
    found = []
    for constant, new in ((0.0, 0.0), (1e9 / 3, 1e9 / 3 + 1e-5)):  # its mean is rounded to 1e-6
        Z, of_new = (np.column_stack([X, np.full(len(X), value)]) for value in (constant, new))
        found.append(LGMML(standardize=standardize, **FAST).fit(Z, y, group).predict(of_new, group))
    np.testing.assert_allclose(found[1], found[0], atol=1e-5)


@pytest.mark.parametrize("standardize", ["column", "query"])
def test_ranking_ignores_unit_and_document_order(standardize):
    X, y, group = ranked_documents()
    ranker = LGMML(standardize=standardize, **FAST).fit(X, y, group)
    scale, shift = np.array([1e-3, 1.0, 10.0, 1e3]), np.array([0.0, 5.0, -1.0, 100.0])
    moved = LGMML(standardize=standardize, **FAST).fit(X * scale + shift, y, group)
    np.testing.assert_allclose(moved.predict(X * scale + shift, group), ranker.predict(X, group), rtol=1e-3, atol=1e-5)
    rng = np.random.default_rng(0)
    starts = np.concatenate([[0], np.cumsum(group)])
    rows = np.concatenate([first + rng.permutation(size) for first, size in zip(starts, group, strict=False)])
    np.testing.assert_allclose(ranker.predict(X[rows], group), ranker.predict(X, group)[rows], rtol=1e-5, atol=1e-7)


def test_fit_ignores_document_order():
    X, y, group = ranked_documents()
    starts = np.concatenate([[0], np.cumsum(group)])
    rng = np.random.default_rng(0)
    rows = np.concatenate([first + rng.permutation(size) for first, size in zip(starts, group, strict=False)])
    first, other = (LGMML(**FAST | {"n_metrics": 3}).fit(X[r], y[r], group) for r in (np.arange(len(X)), rows))
    # anchors and metrics use the same sets; the documents drawn by the steps differ
    np.testing.assert_allclose(other.metrics_, first.metrics_, rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(other.anchors_, first.anchors_, rtol=1e-9)


def test_fit_is_reproducible_and_keeps_parameters():
    X, y, group = ranked_documents()
    ranker = LGMML(**FAST)
    first, again = ranker.fit(X, y, group), clone(ranker).fit(X, y, group)
    np.testing.assert_array_equal(first.predict(X, group), again.predict(X, group))
    assert not np.array_equal(clone(ranker).set_params(random_state=1).fit(X, y, group).weights_, first.weights_)
    assert ranker.get_params()["n_metrics"] == 8
    with pytest.raises(NotFittedError):
        LGMML().predict(X)


def test_queries_can_have_own_weights():
    X, y, group = ranked_documents()
    ranker = LGMML(per_query=True, **FAST | {"n_epochs": 30}).fit(X, y, group)
    assert ranker.query_weights_.shape == (len(group), 8)
    own = ranker.predict(X, group, queries=np.arange(len(group)))
    assert _ndcg_of(own, y, group) >= ranker.score(X, y, group)
    # the shared weights are those of a fit without weights per query
    shared = LGMML(**FAST | {"n_epochs": 30}).fit(X, y, group)
    np.testing.assert_array_equal(shared.weights_, ranker.weights_)
    with pytest.raises(ValueError, match="per_query=True"):
        shared.predict(X, group, queries=np.arange(len(group)))
    with pytest.raises(ValueError, match="training queries, from 0 to"):
        ranker.predict(X, group, queries=np.arange(len(group)) + 1)
    with pytest.raises(ValueError, match="queries has shape"):
        ranker.predict(X, group, queries=[0])
    # another fit does not keep the weights per query of the first
    with pytest.raises(ValueError, match="per_query=True"):
        ranker.set_params(per_query=False).fit(X, y, group).predict(X, group, queries=np.arange(len(group)))


def test_document_table_is_stored_once():
    X, y, group = ranked_documents(n_queries=1500)
    ranker = LGMML(**FAST | {"n_metrics": 60, "n_epochs": 1})
    ranker.fit(X, y, group)  # compiles
    table = 4 * len(X) * 60

    def peak(run):
        tracemalloc.start()
        run()
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    # copies of X, with 4 columns, and sorted ones; a table in float64 would add 2
    assert peak(lambda: ranker.predict(X, group)) < 1.8 * table
    assert peak(lambda: ranker.fit(X, y, group)) < 2.3 * table


def test_weighted_sums_match_matrix_product():
    rng = np.random.default_rng(0)
    table, phi = rng.random((3000, 70), dtype=np.float32), rng.random(70)
    np.testing.assert_allclose(sum_weighted(table, phi), table.astype(float) @ phi, rtol=1e-13)


def test_overflowing_documents_score_zero():
    X, y, group = ranked_documents()
    ranker = LGMML(standardize=None, **FAST).fit(X, y, group)
    with pytest.warns(UserWarning, match="100% of the distances are above 1"):
        assert not ranker.predict(np.array([[1e160, -1e160, 1e160, 1e160], [1e200, 1.0, 1.0, 1.0]])).any()


def test_warns_about_distant_documents():
    X, y, group = ranked_documents()
    ranker = LGMML(standardize="column", **FAST).fit(X, y, group)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ranker.predict(X, group)
    with pytest.warns(UserWarning, match="of the distances are above 1"):
        ranker.predict(10 * X, group)


@pytest.mark.parametrize(("stage", "key"), [("metrics", "n_metrics"), ("weights", "epoch"), ("queries", "n_queries")])
def test_callback_sees_epochs_and_stops_fit(stage, key):
    X, y, group = ranked_documents()
    steps = []

    def callback(step):
        steps.append(step)
        return step["stage"] == stage and step[key] == 3

    ranker = LGMML(per_query=True, **FAST).fit(X, y, group, callback)
    assert steps[-1]["stage"] == ("metrics" if stage == "metrics" else stage) or len(ranker.history_) == 1
    assert len(ranker.metrics_) == (3 if stage == "metrics" else 8)
    assert len(ranker.history_) == {"metrics": 1, "weights": 3, "queries": 5}[stage]
    assert np.isfinite(ranker.predict(X, group)).all()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"loss": "hinge"}, "loss='hinge' should be one of warp, ndcg"),
        ({"structure": "low"}, "structure"),
        ({"anchor": "mean"}, "anchor"),
        ({"standardize": "row"}, "standardize"),
        ({"n_metrics": 0}, "n_metrics=0"),
        ({"margin": 0}, "margin=0"),
        ({"max_features": 0}, "max_features=0"),
        ({"reg": -1}, "reg=-1"),
        ({"t": 2}, "t=2"),
    ],
)
def test_rejects_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        LGMML(**parameters).fit(*ranked_documents())


def test_rejects_bad_documents():
    X, y, group = ranked_documents()
    with pytest.raises(ValueError, match="group sums to"):
        LGMML().fit(X, y, group[:-1])
    with pytest.raises(ValueError, match="integer"):
        LGMML().fit(X, y, [0.5] * len(X))
    with pytest.raises(ValueError, match="the label of row 0"):
        LGMML().fit(X, y - 5, group)
    with pytest.raises(ValueError, match=r"y: the label of row \d+ is 1100; labels must be from 0 to 1000"):
        LGMML(loss="ndcg").fit(X, 1100 * (y > 0), group)
    for structure in ("full", "diagonal"):
        with pytest.raises(ValueError, match="All pairs consist of equal rows"):
            LGMML(structure=structure).fit(np.ones((len(X), 3)), y, group)
    with pytest.raises(ValueError, match="nothing to learn from"):
        LGMML().fit(X, np.ones(len(X)), group)
    with pytest.raises(ValueError, match="column is constant"):
        LGMML(structure="diagonal", reg=0.0, max_features=1.0).fit(X * [1, 1, 1, 0], y, group)
    LGMML(**FAST).fit(X * [1, 1, 1, 0], y, group)  # with a prior, a constant column does no harm


# --- query by example --------------------------------------------------------------------------------------------


def two_places(n=120, seed=0):
    """Return songs on the left that differ in the second column, and songs on the right that differ in the third."""
    rng = np.random.default_rng(seed)
    side = np.arange(n) % 2
    kind = rng.integers(2, size=n)
    X = rng.normal(size=(n, 3)) * 2
    X[:, 0] = 10 * side + rng.normal(size=n) * 0.3
    X[np.arange(n), 1 + side] = 2 * kind + 0.3 * rng.normal(size=n)
    return X, 2 * side + kind


def test_metrics_vary_by_location():
    X, y = two_places()
    model = LGMMLByExample(n_metrics=2, rho=20.0, random_state=0).fit(X, y)
    left, right = (model.metric_at([x, 1.0, 1.0]) for x in (0.0, 10.0))
    assert left[1, 1] > 2 * left[2, 2]
    assert right[2, 2] > 2 * right[1, 1]
    new, of_new = two_places(seed=5)

    def precision(order):
        return np.mean(y[order[:, :10]] == of_new[:, None])

    one = LGMMLByExample(n_metrics=1, random_state=0).fit(X, y)
    assert precision(model.rank(new, X)) > precision(one.rank(new, X)) + 0.02
    np.testing.assert_array_equal(model.rank(new, X, 3), model.rank(new, X)[:, :3])


def test_weights_and_metrics_match_equations_3_and_11():
    X, y = two_places()
    model = LGMMLByExample(n_metrics=4, rho=3.0, random_state=0).fit(X, y)
    x = X[5] + 0.1
    t = np.array([(x - p) @ M @ (x - p) for M, p in zip(model.metrics_, model.anchors_, strict=True)])
    w = np.exp(-1.5 * t)
    np.testing.assert_allclose(model.weights_at(x[None])[0], w / w.sum(), rtol=1e-10)
    np.testing.assert_allclose(model.metric_at(x), np.tensordot(w / w.sum(), model.metrics_, 1), rtol=1e-10)
    assert model.metrics_.shape == (4, 3, 3)
    assert model.anchors_.shape == (4, 3)
    # far from every anchor, the weights still sum to one
    np.testing.assert_allclose(model.weights_at([[1e6, 0, 0]]).sum(), 1.0)
    mean = np.mean([model.metric_at(song) for song in X], axis=0)
    np.testing.assert_allclose(model.mean_metric_, mean, rtol=1e-9)
    np.testing.assert_allclose(model.components_.T @ model.components_, mean, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(model.transform(X) @ model.transform(X).T, X @ mean @ X.T, rtol=1e-8, atol=1e-8)


def test_distances_match_loop_for_any_query_count():
    X, y = two_places()
    X = X + 50
    model = LGMMLByExample(n_metrics=3, random_state=0).fit(X, y)
    expected = np.array([np.sqrt(np.einsum("ij,jk,ik->i", X - q, model.metric_at(q), X - q)) for q in X[:10]])
    few = np.concatenate([model.distances(X[i : i + 2], X) for i in range(0, 10, 2)])
    np.testing.assert_allclose(few, expected, rtol=1e-9, atol=1e-12)
    assert (np.diag(few) == 0).all()
    # squares of 1e3 lose 13 of 16 digits by cancellation, and the root loses half of the rest
    np.testing.assert_allclose(model.distances(X[:10], X), expected, rtol=1e-6, atol=1e-5)


def test_many_queries_use_little_memory():
    rng = np.random.default_rng(0)
    d, m = 20, 30
    X = rng.normal(size=(m * 10, d))
    model = LGMMLByExample(n_metrics=m, random_state=0).fit(X, np.arange(len(X)) % 3)
    Q = rng.normal(size=(4000, d))
    tracemalloc.start()
    model.distances(Q, X[:10])
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 0.5 * 8 * m * Q.size


def test_without_locality_matches_gmml():
    X, y = two_places()
    flat = LGMMLByExample(n_metrics=5, rho=0.0, random_state=0).fit(X, y)
    np.testing.assert_allclose(flat.metric_at(X[0]), flat.metrics_.mean(axis=0))
    np.testing.assert_allclose(flat.metric_at(X[0]), flat.mean_metric_)
    one = LGMMLByExample(n_metrics=1, prior=np.eye(3), random_state=0).fit(X, y).metrics_[0]
    whole = GMML(t=0.25).fit(X, y).metric_
    np.testing.assert_allclose(one / np.trace(one), whole / np.trace(whole), rtol=1e-8, atol=1e-12)


def test_labels_and_lists_agree():
    X, y = two_places()
    sets = truth.as_sets(y)
    first, second = (
        LGMMLByExample(n_metrics=3, random_state=0).fit(X, given) for given in (y, Relevance.from_lists(sets[0]))
    )
    np.testing.assert_allclose(second.metrics_, first.metrics_, rtol=1e-9)
    lists = [[(i + 1) % len(X)] if i % 3 else [] for i in range(len(X))]
    assert np.isfinite(LGMMLByExample(n_metrics=3, random_state=0).fit(X, Relevance.from_lists(lists)).metrics_).all()


def test_few_songs_get_few_metrics():
    X, y = two_places(n=39)
    assert len(LGMMLByExample(n_metrics=20, random_state=0).fit(X, y).metrics_) == 3
    assert len(LGMMLByExample(n_metrics=20, random_state=0).fit(X[:8], y[:8]).metrics_) == 1


def test_cluster_without_pairs_uses_global_metric():
    X = np.concatenate([np.random.default_rng(0).normal(size=(40, 2)), [[100.0, 100.0], [101.0, 100.0]]])
    y = np.append(np.arange(40) % 2, [-1, -1])  # the far ones are unlabeled
    model = LGMMLByExample(n_metrics=2, random_state=0).fit(X, y)
    M = model.metrics_[int(np.argmax(model.anchors_[:, 0]))]
    near = model.metrics_[int(np.argmin(model.anchors_[:, 0]))]
    assert np.isfinite(M).all()
    assert M.shape == near.shape


def test_feedback_starts_from_local_metric():
    X, y = two_places()
    model = LGMMLByExample(n_metrics=3, random_state=0).fit(X, y)
    still = model.feedback(X[0], [], [])
    np.testing.assert_allclose(still.distances(X), model.distances(X[:1], X)[0], rtol=1e-9, atol=1e-9)
    up, down = X[y == y[0]][1:4], X[y != y[0]][:3]
    after = model.feedback(X[0], up, down)
    assert after.weights.shape == (3,)
    ratio = after.distances(up).mean() / after.distances(down).mean()
    assert ratio < still.distances(up).mean() / still.distances(down).mean()


def test_follows_scikit_learn_conventions():
    X, y = two_places()
    given = {"n_metrics": 3, "rho": 1.0, "t": 0.4, "prior": None, "reg": 0.2, "random_state": 3}
    model = LGMMLByExample(**given)
    assert model.get_params() == given
    first, again = model.fit(X, y), clone(model).fit(X, y)
    np.testing.assert_array_equal(first.metrics_, again.metrics_)
    assert len(model.get_feature_names_out()) == len(model.components_)
    with pytest.raises(NotFittedError):
        LGMMLByExample().distances(X, X)
    with pytest.raises(NotFittedError):
        LGMMLByExample().feedback(X[0], X[1:2], X[2:3])
    for name, value in (("n_metrics", 0), ("rho", -1), ("reg", -1), ("t", 3)):
        with pytest.raises(ValueError, match=f"{name}="):
            clone(model).set_params(**{name: value}).fit(X, y)
    with pytest.raises(ValueError, match="nothing to learn from"):
        LGMMLByExample().fit(X, np.arange(len(X)))


def test_without_groups_all_documents_belong_to_one_query():
    X, y, _ = ranked_documents()
    alone, grouped = LGMML(**FAST).fit(X, y), LGMML(**FAST).fit(X, y, [len(y)])
    np.testing.assert_array_equal(alone.weights_, grouped.weights_)
    assert alone.score(X, y) == grouped.score(X, y, [len(y)])
