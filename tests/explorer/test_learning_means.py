"""Metrics in closed form, one for all songs or one for each region: learned, judged, stored, and searched with."""

import json

import numpy as np
import pytest

from musicsim.errors import ModelError
from musicsim.evaluation import ArtistSplit, query_scores
from musicsim.explorer.artifacts import load_report
from musicsim.explorer.feedback import Thumbs
from musicsim.explorer.learning import LearningSettings, learn
from musicsim.explorer.learning_means import trials
from musicsim.explorer.query import find_similar
from musicsim.explorer.snapshot import take_snapshot
from musicsim.explorer.supervision import Supervision
from musicsim.library import Library
from tests.command import run
from tests.learning import Watcher


def test_one_metric_in_closed_form_is_judged_on_artists_it_never_heard(taught):
    watcher = Watcher()
    model_id = learn(taught, LearningSettings(method="mean"), "mine", watcher)
    report = load_report(taught.models.path(model_id))
    assert report["leads"]["auc"]["low"] > 0.05
    assert report["is_better"]
    best = max(report["path"], key=lambda entry: entry["quality"])
    assert report["setting"] == best["setting"]
    assert [point["setting"] for point in watcher.points] == [trial.words for trial in trials("mean")]
    assert take_snapshot(taught, model_id).model.local_ is None
    again = learn(taught, LearningSettings(method="mean"), "again", Watcher())
    np.testing.assert_allclose(taught.models.features(again).X, taught.models.features(model_id).X)
    np.testing.assert_allclose(take_snapshot(taught, again).X, take_snapshot(taught, model_id).X)


def test_the_lead_of_local_metrics_is_that_of_distances_by_each_querys_own(taught):
    """Recomputed: the held-out figures before are those of plain distance on the held-out artists."""
    model_id = learn(taught, LearningSettings(method="local"), "mine", Watcher())
    report = load_report(taught.models.path(model_id))
    assert report["leads"]["auc"]["low"] > 0.05
    snapshot = take_snapshot(taught, taught.models.native().id)
    groups = np.array([song.group for song in snapshot.indexed])
    rest, test = next(ArtistSplit(1, 0.3, 0).split(groups, groups=groups))
    inner, _ = next(ArtistSplit(1, 3 / 7, 1).split(rest, groups=groups[rest]))
    relevance = Supervision(snapshot, "plays").relevance(rest[inner]).restrict(test, rest[inner])
    scores = query_scores(snapshot.X[test], snapshot.X[rest[inner]], relevance)
    assert report["leads"]["auc"]["before"] == pytest.approx(np.nanmean(scores["auc"]), abs=1e-6)


def test_a_search_uses_the_metric_of_the_place_where_the_query_lies(taught):
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
            hits = find_similar(
                snapshot, snapshot.indexed[row].id, 10, max_per_artist=None, hub_reduction=False
            )
            assert [hit.song.id for hit in hits] == [snapshot.indexed[r].id for r in order]
            plain = np.argsort(np.linalg.norm(away, axis=1), kind="stable")[1:11]
            differs += list(plain) != order
        assert differs, "local metrics that change nothing"
        hits = find_similar(snapshot, snapshot.indexed[0].id, 10, thumbs=Thumbs.of([hits[5].song.id], []))
        assert len(hits) == 10


def test_stopped_early_the_best_so_far_is_kept(taught):
    watcher = Watcher(enough_after=2)
    model_id = learn(taught, LearningSettings(method="mean"), "mine", watcher)
    report = load_report(taught.models.path(model_id))
    assert report["stopped_early"]
    assert len(report["path"]) < len(trials("mean"))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"method": "magic"}, "method='magic'"),
        ({"method": "local", "supervision": "answers"}, "not for answers"),
    ],
)
def test_settings_that_make_no_sense_are_named(settings, words):
    with pytest.raises(ValueError, match=words):
        LearningSettings(**settings)


def test_the_command_line_learns_in_closed_form_and_tells(taught):
    out, _ = run("train", "--from", "genre", "--method", "mean", "--name", "closed", library=taught.folder)
    assert "artists it never heard" in " ".join(out.split())
    told = json.loads(run("models", "list", "--json", library=taught.folder)[0])
    assert "closed" in {model["name"] for model in told}
    _, problem = run("train", "--method", "magic", library=taught.folder, expect=2)
    assert "--method should be one of ranking, mean, local" in " ".join(problem.replace("│", " ").split())


def test_thumbs_that_were_kept_teach(taught):
    """Everybody who searched pressed thumbs by the taste that plays show."""
    snapshot = take_snapshot(taught)
    with pytest.raises(ModelError, match="no thumbs were kept"):
        Supervision(snapshot, "judgements")
    truth = Supervision(snapshot, "plays").relevance()
    rng = np.random.default_rng(0)
    ids = snapshot.row_ids
    for row in range(len(truth)):
        fits, not_fits = (
            rng.permutation(truth.relevant(row))[:4],
            rng.permutation(truth.irrelevant(row))[:4],
        )
        taught.judgements.keep(
            int(ids[row]), {int(ids[i]): 1 for i in fits} | {int(ids[i]): -1 for i in not_fits}
        )
    supervision = Supervision(snapshot, "judgements")
    assert supervision.detail.endswith("thumbs on answers to 200 searches")
    kept, relevance = taught.judgements.of(int(ids[3])), supervision.relevance()
    assert set(ids[relevance.relevant(3)].tolist()) == {i for i, v in kept.items() if v > 0}
    assert set(ids[relevance.irrelevant(3)].tolist()) == {i for i, v in kept.items() if v < 0}
    model_id = learn(taught, LearningSettings(supervision="judgements", method="mean"), "mine", Watcher())
    assert load_report(taught.models.path(model_id))["leads"]["auc"]["low"] > 0
