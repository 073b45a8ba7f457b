"""Tests that an index tuned for a recall reaches it on queries that were not used for tuning."""

import numpy as np
import pytest
from sklearn.base import clone

from benchmarks.support.search_data import hard
from musicsim.search import ExactIndex, PartitionIndex, SpillForest, calibrate, tune, tuning

K = 10


@pytest.fixture(scope="module")
def task():
    """Return rows, queries of the same kind that are not rows, and the distances of their tenth neighbors."""
    X, Q = hard(24_000, 500, seed=4)
    return X, Q, ExactIndex().fit(X).query(Q, K)[0][:, -1:]


def _recall(index, task):
    _, Q, limits = task
    return (index.query(Q, K)[0] <= limits * (1 + 1e-6)).mean()


@pytest.mark.parametrize("goal", [0.8, 0.95])
@pytest.mark.parametrize(
    "kind", [SpillForest(4, random_state=0), PartitionIndex(random_state=0)], ids=["forest", "partition"]
)
def test_calibrate_keeps_its_promise_on_fresh_queries(task, kind, goal):
    X = task[0]
    index = clone(kind).fit(X)
    found = calibrate(index, X, K, goal, random_state=1)
    assert index.n_probes == found.n_probes
    assert found.recall >= goal
    # two standard errors of 500 queries and of the calibration's 400
    assert _recall(index, task) >= goal - 2 * np.hypot(found.error, found.error)
    # a smaller index is not enough: a third of the probes misses the goal
    index.n_probes = max(1, found.n_probes // 3)
    assert _recall(index, task) < goal


def test_a_recall_of_one_looks_wherever_it_must(task):
    X = task[0][:3000]
    index = SpillForest(n_trees=2, random_state=0).fit(X)
    assert calibrate(index, X, K, 1.0, n_queries=50, random_state=0).recall == 1.0


def test_copies_of_the_query_do_not_lower_the_recall(rng):
    X = np.repeat(rng.standard_normal((300, 6)), 8, axis=0).astype(np.float32)
    index = SpillForest(n_trees=2, random_state=0).fit(X)
    assert calibrate(index, X, 5, 0.99, n_queries=100, random_state=0).recall >= 0.99


def test_tune_chooses_among_the_fastest_the_smallest_and_keeps_its_promise(task):
    settings = [SpillForest(1, 512), SpillForest(4, 64), PartitionIndex(2.0), PartitionIndex(explained=0.5)]
    index = tune(task[0], K, 0.9, settings=settings, n_queries=200, random_state=0)
    assert [trial["index"] for trial in index.trials_] == settings
    able = [trial for trial in index.trials_ if trial["recall"] >= 0.9]
    fastest = min(trial["seconds"] for trial in able)
    among = [trial for trial in able if trial["seconds"] <= 1.1 * fastest]
    smallest = min(among, key=lambda trial: trial["nbytes"])["index"]
    assert type(index) is type(smallest)
    left_out = {"n_probes", "n_jobs", "random_state"}
    for name in smallest.get_params().keys() - left_out:
        assert getattr(index, name) == getattr(smallest, name)
    assert not hasattr(smallest, "n_samples_")  # the given options are not tuned
    assert index.calibration_.recall >= 0.9
    assert _recall(index, task) >= 0.9 - 3 * index.calibration_.error


@pytest.mark.parametrize("trial_rows", [100_000, 600])
def test_tune_takes_no_forest_that_is_slower_than_all_rows(task, trial_rows, monkeypatch):
    monkeypatch.setattr(tuning, "TRIAL_ROWS", trial_rows)
    options = {"settings": [SpillForest(2)], "n_queries": 40, "n_jobs": 1, "random_state": 0}
    # all rows take ten times as long as the forest, even if it was tried on few of them
    assert isinstance(tune(task[0], K, 0.9, **options), SpillForest)
    monkeypatch.setattr(tuning, "EXACT_BELOW", 1000)
    # every leaf must be visited, and has one row
    X = np.random.default_rng(0).standard_normal((1500, 20)).astype(np.float32)
    options |= {"settings": [SpillForest(10, 1)], "n_queries": 10}
    assert isinstance(tune(X, K, 1.0, **options), ExactIndex)


@pytest.mark.long
@pytest.mark.parametrize(
    ("n", "too_small"),
    [
        (20_000, PartitionIndex(2.0, explained=0.9, ranked=1.5)),  # its recall has a ceiling
        (40_000, PartitionIndex(2.0, explained=0.9, ranked=2.5)),  # only all rows reach it
    ],
)
def test_codes_that_do_for_the_rows_of_the_trial_alone_are_not_chosen(n, too_small, rng, monkeypatch):
    monkeypatch.setattr(tuning, "TRIAL_ROWS", 5_000)
    X = (rng.standard_normal((n, 30)) * 0.95 ** np.arange(30)).astype(np.float32)
    index = tune(X, 10, 0.95, settings=[too_small, PartitionIndex()], random_state=0)
    assert index.trials_[0]["recall"] >= 0.95
    assert index.explained == PartitionIndex().explained
    assert index.calibration_.recall >= 0.95


def test_no_more_leaves_than_the_goal_needs():
    X = np.random.default_rng(0).standard_normal((3000, 2)).astype(np.float32)
    forest = SpillForest(24, n_jobs=1, random_state=0).fit(X)
    # one leaf of 24 trees contains the nearest
    assert calibrate(forest, X, 1, 0.5, random_state=0).n_probes == 1


def test_what_cannot_reach_the_recall_is_not_chosen(task):
    # with three of twenty axes and twenty rows ranked, some of the ten nearest are missed
    unable, able = PartitionIndex(explained=0.2, ranked=1.0), SpillForest(4)
    index = tune(task[0], K, 0.97, settings=[unable, able], n_queries=100, random_state=0)
    assert index.trials_[0]["recall"] < 0.97
    assert isinstance(index, SpillForest)


def test_tune_compares_with_every_row_of_a_small_set(rng):
    assert isinstance(tune(rng.standard_normal((500, 4))), ExactIndex)


def test_so_few_rows_that_there_are_no_neighbors_are_no_trouble(rng):
    X = rng.standard_normal((5, 3)).astype(np.float32)
    index = SpillForest(random_state=0).fit(X)
    assert calibrate(index, X, 10).recall == 1.0
    assert index.query(X, 3)[1][:, 0].tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"recall": 0.0}, "recall=0.0"),
        ({"recall": 1.1}, "recall=1.1"),
        ({"k": 0}, "k=0"),
        ({"n_queries": 1}, "n_queries=1"),
    ],
)
def test_bad_arguments_are_named(rng, arguments, message):
    X = rng.standard_normal((50, 3)).astype(np.float32)
    with pytest.raises(ValueError, match=message):
        calibrate(SpillForest(random_state=0).fit(X), X, **arguments)
    with pytest.raises(ValueError, match=message):
        tune(X, **arguments)


def test_other_rows_than_the_index_has_are_refused(rng):
    X = rng.standard_normal((50, 3)).astype(np.float32)
    with pytest.raises(ValueError, match="X has shape"):
        calibrate(SpillForest(random_state=0).fit(X), X[:40])
