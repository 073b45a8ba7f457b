"""A metric is learned from what listeners do, judged on held-out artists, and kept whole or not at all."""

import dataclasses
import json

import numpy as np
import pytest

from musicsim.errors import ModelError, NotFoundError, StoreLockedError
from musicsim.explorer.learning.supervision import Supervision
from musicsim.explorer.models.artifacts import load_report
from musicsim.explorer.refresh import learned_model
from musicsim.explorer.refresh.learned_model import learn
from musicsim.explorer.requests.training import LearningSettings
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.library import Library
from musicsim.progress import Canceled
from tests.learning import Watcher


@pytest.fixture(scope="module")
def module_library(taught_folder, tmp_path_factory):
    """One training on plays that several tests look at."""
    import shutil

    folder = tmp_path_factory.mktemp("learned") / "library"
    shutil.copytree(taught_folder, folder)
    with Library.open(folder) as library:
        watcher = Watcher()
        model_id = learn(library, LearningSettings(method="ranking"), "mine", watcher)
        yield library, model_id, watcher


def test_plays_teach_what_artists_not_heard_confirm(module_library):
    library, model_id, _ = module_library
    report = load_report(library.models.path(model_id))
    lead = report["leads"]["auc"]
    # a taste is hidden below a production that varies more: the plain distance cannot see it
    assert lead["low"] > 0.05
    assert report["is_better"]
    assert lead["after"] - lead["before"] == pytest.approx(lead["mean"])
    parts = [report["split"][part]["artists"] for part in ("train", "validation", "test")]
    n = report["n_artists"]
    assert sum(parts) == n
    # whole artists: the shares are those of 40 : 30 : 30 up to one
    assert parts == pytest.approx([0.4 * n, 0.3 * n, 0.3 * n], abs=1)


def test_the_verdict_is_on_artists_that_were_neither_trained_nor_chosen_on(module_library):
    """Recomputed from the stored settings: the report's figures are those of the held-out artists alone."""
    from musicsim.evaluation import ArtistSplit, ranking_scores

    library, model_id, _ = module_library
    report = load_report(library.models.path(model_id))
    snapshot = take_snapshot(library, library.models.native().id)
    groups = np.array([song.group for song in snapshot.songs_at()])
    rest, test = next(ArtistSplit(1, 0.3, 0).split(groups, groups=groups))
    inner, _ = next(ArtistSplit(1, 3 / 7, 1).split(rest, groups=groups[rest]))
    train = rest[inner]
    relevance = Supervision(snapshot, "plays").relevance(train).restrict(test, train)
    scores = ranking_scores(snapshot.X[test], snapshot.X[train], relevance)
    assert report["leads"]["auc"]["before"] == pytest.approx(scores["auc"], abs=1e-6)  # float32 vectors
    assert report["leads"]["map"]["before"] == pytest.approx(scores["map"], abs=1e-6)


def test_the_learned_model_is_ready_and_not_in_use(module_library):
    library, model_id, _ = module_library
    record = library.models.get(model_id)
    assert record.is_complete
    assert not record.is_active
    assert LearningSettings(**record.settings) == LearningSettings(method="ranking")
    seen = take_snapshot(library, model_id)
    assert len(seen.songs_at()) == 200
    assert np.isfinite(seen.map).all()
    assert all((labels >= 0).all() for labels in seen.clusters.values())
    vectors = seen.model.vectors(library.models.features(model_id).X)
    np.testing.assert_array_equal(vectors, library.vectors(model_id).X)


def test_distances_keep_their_scale(module_library):
    """Similarities read alike before and after: the mean squared distance is that of the native vectors."""
    library, model_id, _ = module_library
    native, learned = take_snapshot(library), take_snapshot(library, model_id)
    spread = [np.var(X, axis=0, dtype=np.float64).sum() for X in (native.X, learned.X)]
    assert spread[1] == pytest.approx(spread[0], rel=1e-5)  # float32 vectors


def test_points_of_the_live_lines(module_library):
    _, _, watcher = module_library
    path = [p for p in watcher.points if p["C"] is not None]
    assert {p["C"] for p in path} >= {1.0, 10.0, 100.0}
    for C in {p["C"] for p in path}:
        objectives = [p["objective"] for p in path if p["C"] == C]
        assert objectives == sorted(objectives, reverse=True), "the best objective so far never rises"
    assert all(p["dual_bound"] <= p["objective"] * (1 + 1e-9) for p in watcher.points)
    assert max(p["quality"] for p in path) > path[0]["untrained"]
    assert [p for p in watcher.points if p["C"] is None], "the last fit is drawn too"


def test_enough_keeps_the_best_so_far(taught):
    watcher = Watcher(enough_after=25)
    model_id = learn(taught, LearningSettings(method="ranking"), "early", watcher)
    report = load_report(taught.models.path(model_id))
    assert report["stopped_early"]
    assert len(watcher.points) == 25
    assert len(report["path"]) < 6
    assert report["C"] in [entry["C"] for entry in report["path"]]
    assert len(take_snapshot(taught, model_id).songs_at()) == 200


def test_enough_at_once_waits_for_something_to_keep(taught):
    model_id = learn(taught, LearningSettings(method="ranking"), "at once", Watcher(enough_after=0))
    report = load_report(taught.models.path(model_id))
    assert report["stopped_early"]
    assert len(report["path"]) == 1
    assert take_snapshot(taught, model_id).model.metric_.any()


@pytest.mark.parametrize("moment", ["trying C", "held-out artists", "drawing the map"])
def test_a_training_that_is_cancelled_leaves_nothing(taught, moment):
    before = [record.id for record in taught.models.all()]
    with pytest.raises(Canceled):
        learn(taught, LearningSettings(C=100.0), "gone", Watcher(stop_at=moment))
    assert [record.id for record in taught.models.all()] == before
    assert [folder.name for folder in taught.models.folder.iterdir()] == before


def test_a_given_c_is_taken(taught):
    model_id = learn(taught, LearningSettings(C=100.0, loss="map"), "given", Watcher())
    report = load_report(taught.models.path(model_id))
    assert (report["C"], [entry["C"] for entry in report["path"]]) == (100.0, [100.0])


def test_training_again_under_the_name_replaces_the_model_in_use(taught):
    first = learn(taught, LearningSettings(C=1e3), "mine", Watcher())
    taught.models.activate(first)
    second = learn(taught, LearningSettings(C=1e4), "mine", Watcher())
    assert taught.models.active().id == second
    assert {record.name for record in taught.models.all()} == {"Sound", "mine"}


def test_nonsense_as_supervision_is_not_called_better(taught, rng):
    """Labels by lot: what is learned from them is noise, and the verdict says so."""
    genres = [f"genre {n}" for n in rng.integers(5, size=200)]
    for song, genre in zip(taught.songs(), genres, strict=True):
        with taught.write() as connection:
            connection.exec_driver_sql("UPDATE songs SET genre = ? WHERE id = ?", (genre, song.id))
    model_id = learn(taught, LearningSettings(supervision="genre", C=100.0), "noise", Watcher())
    report = load_report(taught.models.path(model_id))
    assert not report["is_better"]
    assert abs(report["leads"]["auc"]["mean"]) < 0.05  # of 60 held-out songs, 0.02 is about one deviation


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"supervision": "playlists"}, ModelError, "import some"),
        ({"supervision": "stars"}, ValueError, "should be one of plays"),
        ({"on": "nobody"}, NotFoundError, "There are: 'Sound'"),
        ({"C": 1e-9}, ModelError, "nothing was learned"),
        ({"loss": "fun"}, ValueError, "loss='fun'"),
    ],
)
def test_what_cannot_be_learned_is_said(taught, settings, error, message):
    before = [record.id for record in taught.models.all()]
    with pytest.raises(error, match=message):
        learn(taught, LearningSettings(**{"method": "ranking"} | settings), "x", Watcher())
    assert [record.id for record in taught.models.all()] == before


def test_too_few_artists_to_hold_some_out(tiny_library):
    with pytest.raises(ModelError, match="3 artists are too few"):
        learn(tiny_library, LearningSettings(supervision="genre", method="ranking"), "x", Watcher())


def test_one_at_a_time(taught):
    with taught.exclusive(), pytest.raises(StoreLockedError):
        learn(taught, LearningSettings(method="ranking"), "x", Watcher())


def test_who_waits_for_a_training_is_told_so(taught, monkeypatch):
    told = []

    def try_to_add(*_):
        with Library.open(taught.folder) as other, pytest.raises(StoreLockedError) as refused:
            other.add(taught.folder.parent)
        told.append(str(refused.value))
        raise ModelError("nothing was learned")

    monkeypatch.setattr(learned_model, "learn_unlocked", try_to_add)
    with pytest.raises(ModelError):
        learn(taught, LearningSettings(method="ranking"), "x", Watcher())
    assert "another musicsim is training a model in this library" in told[0]
    with taught.exclusive(), pytest.raises(StoreLockedError, match="is adding songs in this library"):
        learn(taught, LearningSettings(method="ranking"), "x", Watcher())
    # a killed process leaves its words, or none
    with taught.exclusive():
        (taught.folder / "writer.txt").write_bytes(b"\xff\x1b[31m")
        with pytest.raises(StoreLockedError, match=r"another musicsim is \[31m in"):
            learn(taught, LearningSettings(method="ranking"), "x", Watcher())
        (taught.folder / "writer.txt").unlink()
        with pytest.raises(StoreLockedError, match="another musicsim is at work in"):
            learn(taught, LearningSettings(method="ranking"), "x", Watcher())
    assert not (taught.folder / "writer.txt").exists()


def test_settings_are_json(taught):
    settings = LearningSettings(C=2.0, supervision="genre")
    assert LearningSettings(**json.loads(json.dumps(dataclasses.asdict(settings)))) == settings
