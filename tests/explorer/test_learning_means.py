"""Tests of closed-form metrics, global and per region: learning, evaluation, storage and search."""

import json

import numpy as np
import pytest

from musicsim.errors import ModelError
from musicsim.evaluation import ArtistSplit
from musicsim.explorer.learning.closed_form import trials
from musicsim.explorer.learning.supervision import Supervision
from musicsim.explorer.learning.task import LearningTask, Split
from musicsim.explorer.models.artifacts import load_report
from musicsim.explorer.refresh.learned_model import learn
from musicsim.explorer.requests.training import LearningSettings
from musicsim.explorer.search.feedback import Thumbs
from musicsim.explorer.search.query import find_similar
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.library import Library
from tests.command import run
from tests.learning import Watcher, score_found


def test_closed_form_metric_improves_held_out_artists(taught):
    watcher = Watcher()
    model_id = learn(taught, LearningSettings(method="mean"), "mine", watcher)
    report = load_report(taught.models.path(model_id))
    assert report["leads"]["auc"]["low"] > 0.05
    assert report["is_better"]
    best = max(report["path"], key=lambda entry: entry["quality"])
    assert report["setting"] == best["setting"]
    assert [point["setting"] for point in watcher.points] == list(trials("mean", 80))
    assert take_snapshot(taught, model_id).model.local_ is None
    again = learn(taught, LearningSettings(method="mean"), "again", Watcher())
    np.testing.assert_allclose(taught.models.features(again).X, taught.models.features(model_id).X)
    np.testing.assert_allclose(take_snapshot(taught, again).X, take_snapshot(taught, model_id).X)


@pytest.mark.long
def test_local_lead_matches_recomputed_scores(taught):
    """Recompute the scores before learning. They must be those of the search for held-out artists."""
    model_id = learn(taught, LearningSettings(method="local"), "mine", Watcher())
    report = load_report(taught.models.path(model_id))
    assert report["leads"]["auc"]["low"] > 0.05
    snapshot = take_snapshot(taught, taught.models.native().id)
    groups = np.array([song.group for song in snapshot.songs_at()])
    rest, test = next(ArtistSplit(1, 0.3, 0).split(groups, groups=groups))
    inner, _ = next(ArtistSplit(1, 3 / 7, 1).split(rest, groups=groups[rest]))
    relevance = Supervision(snapshot, "plays").relevance(rest[inner]).restrict(test, rest[inner])
    scores = score_found(snapshot, test, rest[inner], relevance)
    assert report["leads"]["auc"]["before"] == pytest.approx(scores["auc"], abs=1e-6)


@pytest.mark.long
def test_search_uses_local_metric_of_query(taught):
    model_id = learn(taught, LearningSettings(method="local"), "mine", Watcher())
    with Library.open(taught.folder) as opened:
        snapshot = take_snapshot(opened, model_id)
        local = snapshot.model.local_
        assert len(local.metrics) > 1
        differs = 0
        for row in (0, 50, 120):
            z = snapshot.X[row].astype(np.float64)
            metric = np.tensordot(local.weights_at(z), local.metrics, 1)
            away = snapshot.X - z
            squares = np.einsum("ni,ij,nj->n", away, metric, away)
            order = [r for r in np.argsort(squares, kind="stable") if r != row][:10]
            hits = find_similar(snapshot, snapshot.songs_at([row])[0].id, 10, max_per_artist=None, hub_reduction=False)
            assert [hit.song.id for hit in hits] == [snapshot.songs_at([r])[0].id for r in order]
            plain = np.argsort(np.linalg.norm(away, axis=1), kind="stable")[1:11]
            differs += list(plain) != order
        assert differs, "local metrics that change nothing"
        hits = find_similar(snapshot, snapshot.songs_at([0])[0].id, 10, thumbs=Thumbs.from_ids([hits[5].song.id], []))
        assert len(hits) == 10


@pytest.mark.long
def test_early_stop_keeps_best_metric(taught):
    watcher = Watcher(enough_after=2)
    model_id = learn(taught, LearningSettings(method="mean"), "mine", watcher)
    report = load_report(taught.models.path(model_id))
    assert report["stopped_early"]
    assert len(report["path"]) < len(trials("mean", 80))


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"method": "magic"}, "method='magic'"), ({"method": "local", "supervision": "answers"}, "with answers")],
)
def test_rejects_invalid_settings(settings, words):
    with pytest.raises(ValueError, match=words):
        LearningSettings(**settings)


@pytest.mark.long
def test_cli_learns_in_closed_form(taught):
    out, _ = run("train", "--from", "genre", "--method", "mean", "--name", "closed", library=taught.folder)
    assert "held-out artists" in " ".join(out.split())
    told = json.loads(run("models", "list", "--json", library=taught.folder)[0])
    assert "closed" in {model["name"] for model in told}
    _, problem = run("train", "--method", "magic", library=taught.folder, expect=2)
    assert "--method should be one of automatic, ranking, mean, local" in " ".join(problem.replace("│", " ").split())


@pytest.mark.long
def test_learns_from_stored_thumbs(taught):
    """Add thumbs for searches that follow the same taste as the plays."""
    snapshot = take_snapshot(taught)
    with pytest.raises(ModelError, match="no thumbs have been saved"):
        Supervision(snapshot, "judgements")
    truth = Supervision(snapshot, "plays").relevance()
    rng = np.random.default_rng(0)
    ids = snapshot.row_ids
    for row in range(len(truth)):
        fits, not_fits = (rng.permutation(truth.relevant(row))[:12], rng.permutation(truth.irrelevant(row))[:12])
        taught.judgments.rate_results(
            int(ids[row]), {int(ids[i]): 1 for i in fits} | {int(ids[i]): -1 for i in not_fits}
        )
    supervision = Supervision(snapshot, "judgements")
    assert supervision.detail.endswith("thumbs on results of 200 searches")
    kept, relevance = taught.judgments.ratings_of(int(ids[3])), supervision.relevance()
    assert set(ids[relevance.relevant(3)].tolist()) == {i for i, v in kept.items() if v > 0}
    assert set(ids[relevance.irrelevant(3)].tolist()) == {i for i, v in kept.items() if v < 0}
    model_id = learn(taught, LearningSettings(supervision="judgements", method="mean"), "mine", Watcher())
    lead = load_report(taught.models.path(model_id))["leads"]["auc"]
    assert lead["low"] > 0
    assert lead["above_low"] > 0


def keep_thumbs(library, snapshot, rows):
    """Vote the fourth of these rows up and the fifth down, as results for each of the first three."""
    ids = snapshot.row_ids[rows].tolist()
    for query in ids[:3]:
        library.judgments.rate_results(query, {ids[3]: 1, ids[4]: -1})


@pytest.mark.parametrize("method", ["ranking", "mean", "local"])
def test_requires_held_out_query_to_choose_setting(taught, method):
    """All supervision concerns training artists."""
    snapshot = take_snapshot(taught)
    keep_thumbs(taught, snapshot, Split.from_groups([song.group for song in snapshot.songs_at()], 0).train)
    with pytest.raises(ModelError, match="according to judgements, no held-out song has both a similar and"):
        learn(taught, LearningSettings(supervision="judgements", method=method), "mine", Watcher())
    assert "mine" not in {record.name for record in taught.models.all()}


@pytest.mark.long
def test_fixed_setting_needs_no_held_out_songs(taught):
    snapshot = take_snapshot(taught)
    keep_thumbs(taught, snapshot, Split.from_groups([song.group for song in snapshot.songs_at()], 0).train)
    model_id = learn(taught, LearningSettings(supervision="judgements", C=100.0), "mine", Watcher())
    report = load_report(taught.models.path(model_id))
    assert (report["C"], report["leads"], report["is_better"]) == (100.0, {}, False)


def test_held_out_sample_contains_only_evaluable_songs(taught):
    snapshot = take_snapshot(taught)
    split = Split.from_groups([song.group for song in snapshot.songs_at()], 0)
    rows = np.concatenate([split.validation[:3], split.train])
    keep_thumbs(taught, snapshot, rows)
    task = LearningTask.from_settings(snapshot, LearningSettings(supervision="judgements", method="mean"), [])
    queries, database = task.queries(split.validation, 10)
    np.testing.assert_array_equal(queries, split.validation[:3])
    np.testing.assert_array_equal(database, split.train)


@pytest.mark.long
def test_trials_are_unique_and_region_count_matches(taught):
    watcher = Watcher()
    model_id = learn(taught, LearningSettings(method="local"), "mine", watcher)
    report = load_report(taught.models.path(model_id))
    n_train = report["split"]["train"]["songs"]
    counts = [int(entry["setting"].split()[0]) for entry in report["path"]]
    assert sorted(set(counts)) == [2, 5, n_train // 10]
    assert len(counts) == 4 * len(set(counts))
    n_regions = int(report["setting"].split()[0])
    assert len(take_snapshot(taught, model_id).model.local_.metrics) == n_regions


@pytest.mark.parametrize(("n_songs", "regions"), [(4, {1}), (40, {2, 4}), (99, {2, 5, 9}), (4000, {2, 5, 10, 20})])
def test_regions_have_at_least_ten_songs(n_songs, regions):
    tried = trials("local", n_songs)
    assert {learner.n_metrics for learner in tried.values()} == regions
    assert len(tried) == 4 * len(regions)
