"""The experiment on documents: its parts, what it may see, and a run on made-up queries."""

import numpy as np
import pytest

from benchmarks.support.report import Settings
from experiments import letor
from experiments.support.letor import (
    BEYOND,
    DOCUMENT,
    EITHER,
    Fold,
    best_of,
    euclid,
    halves,
    judged,
    ndcg,
    pair_differences,
    ranknet,
    scores_of_known,
    within_queries,
)
from experiments.support.letor_boosting import lambdarank
from experiments.support.letor_files import RankingRows
from experiments.support.lgmml_printed import closeness, local_metrics
from musicsim.evaluation.graded import score_groups

TINY = letor.Protocol(
    seeds=2, lgmml={"n_metrics": 5, "n_epochs": 2}, lgmml_grid=[{"n_queries": 5, "max_features": 0.5}], regs=(0.1,),
    printed={"n_metrics": 4, "n_epochs": 2}, printed_grid=[{"reg": 1e-3, "phi": 1.0, "margin": 0.1}],
    Cs=(1.0,), mlr_queries=5, mlr_cuts=3, ridges=(0.1,), trees=[{"num_leaves": 4, "min_child_samples": 5}],
)  # fmt: skip


def made_up(seed, n_queries=25, d=4):
    """Relevance rises with the first column, and with nothing else."""
    rng = np.random.default_rng(seed)
    group = rng.integers(3, 9, n_queries)
    X = rng.normal(size=(group.sum(), d)).astype(np.float32)
    y = (X[:, 0] > 0).astype(float) + (X[:, 0] > 1)
    return RankingRows(X, y, group, (), ())


def fold():
    return Fold("made up", made_up(0), made_up(1), made_up(2))


def test_features_are_normalized_within_query():
    rows = made_up(0)
    X = within_queries(RankingRows(np.c_[rows.X, np.ones(len(rows.X))], rows.y, rows.group, (), ()))
    for part in np.split(X, np.cumsum(rows.group)[:-1]):
        np.testing.assert_allclose(part.mean(axis=0), 0, atol=1e-9)
        np.testing.assert_allclose(part.std(axis=0), [1, 1, 1, 1, 0], atol=1e-9)


def test_pairs_differ_in_relevance_within_query():
    rows = made_up(0)
    expected = [
        a - b
        for part, y in zip(
            np.split(rows.X, np.cumsum(rows.group)[:-1]), np.split(rows.y, np.cumsum(rows.group)[:-1]), strict=True
        )
        for a, la in zip(part, y, strict=True)
        for b, lb in zip(part, y, strict=True)
        if la > lb
    ]
    np.testing.assert_array_equal(pair_differences(rows.X, rows.y, rows.group), expected)


def test_label_0_documents_are_irrelevant():
    rows = RankingRows(np.zeros((5, 1), np.float32), np.array([1.0, 0, 2, 1, 0]), np.array([3, 2]), (), ())
    relevance = judged(rows)
    assert [relevance.relevant(i).tolist() for i in range(5)] == [[2], [], [0], [], []]
    assert [relevance.irrelevant(i).tolist() for i in range(5)] == [[1], [], [1], [4], []]


def test_halves_share_queries_but_no_documents():
    rows = made_up(0)
    rows = RankingRows(np.arange(len(rows.y), dtype=np.float32)[:, None], rows.y, rows.group, (), ())
    first, second = halves(rows, 0)
    assert len(first.group) == len(second.group) == len(rows.group)
    np.testing.assert_array_equal(first.group + second.group, rows.group)
    query = np.repeat(np.arange(len(rows.group)), rows.group)
    for part in (first, second):
        places = part.X[:, 0].astype(int)
        np.testing.assert_array_equal(query[places], np.repeat(np.arange(len(part.group)), part.group))
        np.testing.assert_array_equal(rows.y[places], part.y)
    np.testing.assert_array_equal(np.sort(np.r_[first.X[:, 0], second.X[:, 0]]), np.arange(len(rows.y)))


def test_validation_picks_first_of_equal_settings():
    data = fold()

    def by(column, sign):
        return lambda: lambda rows: sign * rows.X[:, column].astype(float)

    fits = [("noise", by(1, 1)), ("good", by(0, 1)), ("as good", by(0, 1)), ("bad", by(0, -1))]
    best = best_of(iter(fits), data)
    assert (best.chosen, best.place) == ("good", 1)
    assert best.choosing_s >= best.seconds >= 0


def test_rankers_ignore_test_queries():
    data = fold()
    other = Fold(data.name, data.train, data.validation, made_up(9))
    for make in (lambda f: euclid(f, EITHER, 0), lambda f: ranknet(f, (0.1,))):
        np.testing.assert_array_equal(make(data).score(data.test), make(other).score(data.test))


def test_anchor_can_lie_beyond_relevant_documents():
    data = fold()
    train = data.train
    chosen = euclid(data, BEYOND, 0).score(train)
    by_document = euclid(data, DOCUMENT, 0).score(train)
    assert ndcg(chosen, train) > ndcg(by_document, train)
    # far beyond the mean distances fall along the way there: the one column that counts decides
    assert np.corrcoef(chosen, within_queries(train)[:, 0])[0, 1] > 0.9


def test_known_queries_use_both_weight_types():
    learned, ranked = halves(made_up(0), 0)
    found = scores_of_known(learned, ranked, 0, 2, (10,), n_metrics=4, n_epochs=2)
    assert set(found) == {"shared phi", "phi of the query"}
    assert all(scores["ndcg@10"].shape == (25,) for scores in found.values())


def test_metrics_and_anchors_match_algorithms_1_and_2():
    rows = made_up(0)
    X, y = rows.X.astype(float), rows.y
    starts = np.concatenate([[0], np.cumsum(rows.group)])
    reg = 0.1
    local = local_metrics(X, y, rows.group, 6, reg, np.random.default_rng(0))
    for M, anchor in zip(local.metrics, local.anchors, strict=True):
        place = int(np.flatnonzero((anchor == X).all(axis=1))[0])
        q = int(np.searchsorted(starts, place, side="right")) - 1
        here = np.arange(starts[q], starts[q + 1])
        ups, downs = X[here][y[here] > 0], X[here][y[here] == 0]
        S, D = reg * np.eye(4), reg * np.eye(4)
        for p in ups:
            S += sum(np.outer(p - other, p - other) for other in ups)
            D += sum(np.outer(p - other, p - other) for other in downs)
        np.testing.assert_allclose(M @ S @ M, D, atol=1e-8)  # (8)
        size = len(here)
        ndcgs = [
            score_groups(-np.array([(x - p) @ M @ (x - p) for x in X[here]]), y[here], [size], (size,)) for p in ups
        ]
        best = max(float(found[f"ndcg@{size}"][0]) for found in ndcgs)
        chosen = ups.tolist().index(anchor.tolist())
        assert float(ndcgs[chosen][f"ndcg@{size}"][0]) == best
        t = np.sqrt([(x - anchor) @ M @ (x - anchor) for x in X])
        r = local.anchors.tolist().index(anchor.tolist())
        np.testing.assert_allclose(closeness(local, X)[:, r], t * np.exp(-t), atol=1e-6)


def test_trees_rank_by_informative_column():
    pytest.importorskip("lightgbm")
    data = fold()
    trees = lambdarank(data, TINY.trees, 0)
    assert trees.chosen == "num_leaves 4, min_child_samples 5"
    assert ndcg(trees.score(data.test), data.test) > 0.9


def test_run_uses_every_method_and_reports_missing_ones(monkeypatch):
    def none(*_):
        raise ImportError

    monkeypatch.setattr(letor, "SHORT", TINY)
    monkeypatch.setattr(letor, "folds", lambda seed: iter([fold()]))
    monkeypatch.setattr(letor, "lambdarank", none)
    monkeypatch.setattr(letor, "gbrt", none)
    rows, claims = letor.run(Settings(), lambda line: None)
    of_test = {row["method"]: row for row in rows if row["data"] == "made up"}
    assert len(of_test) == 14
    assert of_test[letor.LINEAR]["NDCG@10"] > 0.9  # a column is all there is to find
    assert of_test[letor.WARP]["seeds"] == 2
    assert of_test[letor.AS_PRINTED]["paper, MSLR-WEB10K"] == 0.5390
    assert of_test[letor.TREES]["chosen"] == "lightgbm is not installed"
    assert [row["method"] for row in rows if "known" in row["data"]] == [
        f"{letor.WARP}, shared phi", f"{letor.WARP}, phi of the query",
    ]  # fmt: skip
    assert all((claim.value is None) == ("LightGBM" in claim.claim) for claim in claims)
    assert {claim.goal for claim in claims} == {0.0}


def test_missing_data_gives_clear_error(monkeypatch):
    monkeypatch.setattr(letor, "shared_data", lambda: None)
    with pytest.raises(SystemExit, match="MUSICSIM_SHARED_DATA"):
        next(letor.folds(0))


def test_selects_queries_from_file():
    rows = made_up(0)
    some = letor.queries_of(rows, np.array([1, 4]))
    starts = np.concatenate([[0], np.cumsum(rows.group)])
    np.testing.assert_array_equal(some.X, np.concatenate([rows.X[starts[q] : starts[q + 1]] for q in (1, 4)]))
    np.testing.assert_array_equal(some.group, rows.group[[1, 4]])
