"""Tests of learning a metric from listeners: evaluated on held-out artists, and saved completely or not at all."""

import dataclasses
import json
from dataclasses import asdict

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from musicsim.errors import ModelError, NotFoundError, StoreLockedError
from musicsim.explorer.learning.ranking import choose_entry
from musicsim.explorer.learning.supervision import Supervision
from musicsim.explorer.models.artifacts import load_report
from musicsim.explorer.refresh import learned_model
from musicsim.explorer.refresh.joined_model import join_models
from musicsim.explorer.refresh.learned_model import choose_default_models, learn
from musicsim.explorer.refresh.model_catalogue import refit_model
from musicsim.explorer.refresh.model_text import settings_words
from musicsim.explorer.requests.training import LearningSettings
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.library import Library
from musicsim.progress import Canceled
from tests.learning import RANKED, Watcher, hush, score_found


@pytest.fixture(scope="module")
def module_library(taught_folder, tmp_path_factory):
    """Train once on plays, for several tests that only read the result."""
    import shutil

    folder = tmp_path_factory.mktemp("learned") / "library"
    shutil.copytree(taught_folder, folder)
    with Library.open(folder) as library:
        watcher = Watcher()
        model_id = learn(library, LearningSettings(method="ranking"), "mine", watcher)
        yield library, model_id, watcher


def test_plays_improve_ranking_on_held_out_artists(module_library):
    library, model_id, _ = module_library
    report = load_report(library.models.path(model_id))
    lead = report["leads"]["auc"]
    # The taste is hidden by production differences that vary more, so the plain distance cannot see it.
    assert lead["low"] > 0.05
    assert report["is_better"]
    assert lead["after"] - lead["before"] == pytest.approx(lead["mean"])
    parts = [report["split"][part]["artists"] for part in ("train", "validation", "test")]
    n = report["n_artists"]
    assert sum(parts) == n
    # Artists are never split, so the shares are 40 : 30 : 30 up to one artist.
    assert parts == pytest.approx([0.4 * n, 0.3 * n, 0.3 * n], abs=1)


def test_verdict_uses_only_held_out_artists(module_library):
    """Recompute the scores from the stored settings. They must be those of the search for held-out artists."""
    from musicsim.evaluation import ArtistSplit

    library, model_id, _ = module_library
    report = load_report(library.models.path(model_id))
    snapshot = take_snapshot(library, library.models.native().id)
    groups = np.array([song.group for song in snapshot.songs_at()])
    rest, test = next(ArtistSplit(1, 0.3, 0).split(groups, groups=groups))
    inner, _ = next(ArtistSplit(1, 3 / 7, 1).split(rest, groups=groups[rest]))
    train = rest[inner]
    relevance = Supervision(snapshot, "plays").relevance(train).restrict(test, train)
    scores = score_found(snapshot, test, train, relevance)
    assert report["leads"]["auc"]["before"] == pytest.approx(scores["auc"], abs=1e-6)  # float32 vectors
    assert report["leads"]["map"]["before"] == pytest.approx(scores["map"], abs=1e-6)


def test_learned_model_is_complete_but_inactive(module_library):
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
    """Similarities keep their scale: the mean squared distance is that of the original vectors."""
    library, model_id, _ = module_library
    native, learned = take_snapshot(library), take_snapshot(library, model_id)
    spread = [np.var(X, axis=0, dtype=np.float64).sum() for X in (native.X, learned.X)]
    assert spread[1] == pytest.approx(spread[0], rel=1e-5)  # float32 vectors


def test_progress_points_are_consistent(module_library):
    _, _, watcher = module_library
    path = [p for p in watcher.points if p["C"] is not None]
    assert {p["C"] for p in path} >= {1.0, 10.0, 100.0}
    for C in {p["C"] for p in path}:
        objectives = [p["objective"] for p in path if p["C"] == C]
        assert objectives == sorted(objectives, reverse=True), "the best objective so far never rises"
    assert all(p["dual_bound"] <= p["objective"] * (1 + 1e-9) for p in watcher.points)
    assert max(p["quality"] for p in path) > path[0]["untrained"]
    assert [p for p in watcher.points if p["C"] is None], "the last fit is drawn too"


@pytest.mark.long
def test_early_stop_keeps_best_model(taught):
    watcher = Watcher(enough_after=25)
    model_id = learn(taught, LearningSettings(method="ranking"), "early", watcher)
    report = load_report(taught.models.path(model_id))
    assert report["stopped_early"]
    assert len(watcher.points) == 25
    assert len(report["path"]) < 6
    assert report["C"] in [entry["C"] for entry in report["path"]]
    assert len(take_snapshot(taught, model_id).songs_at()) == 200


@pytest.mark.long
def test_immediate_stop_waits_for_first_model(taught):
    model_id = learn(taught, LearningSettings(method="ranking"), "at once", Watcher(enough_after=0))
    report = load_report(taught.models.path(model_id))
    assert report["stopped_early"]
    assert len(report["path"]) == 1
    assert take_snapshot(taught, model_id).model.metric_.any()


@pytest.mark.long
@pytest.mark.parametrize("moment", ["trying C", "held-out artists", "drawing the map"])
def test_canceled_training_leaves_nothing(taught, moment):
    before = [record.id for record in taught.models.all()]
    with pytest.raises(Canceled):
        learn(taught, LearningSettings(C=100.0), "gone", Watcher(stop_at=moment))
    assert [record.id for record in taught.models.all()] == before
    assert [folder.name for folder in taught.models.folder.iterdir()] == before


@pytest.mark.long
def test_uses_given_c(taught):
    model_id = learn(taught, LearningSettings(C=100.0, loss="map"), "given", Watcher())
    report = load_report(taught.models.path(model_id))
    assert (report["C"], [entry["C"] for entry in report["path"]]) == (100.0, [100.0])


@pytest.mark.long
def test_retraining_replaces_active_model(taught):
    first = learn(taught, LearningSettings(C=1e3), "mine", Watcher())
    taught.models.activate(first)
    second = learn(taught, LearningSettings(C=1e4), "mine", Watcher())
    assert taught.models.active().id == second
    assert {record.name for record in taught.models.all()} == {"Sound", "mine"}


@pytest.mark.long
def test_random_supervision_is_not_called_better(taught, rng):
    """A metric learned from random labels is noise, and the verdict must say so."""
    genres = [f"genre {n}" for n in rng.integers(5, size=200)]
    for song, genre in zip(taught.songs(), genres, strict=True):
        with taught.write() as connection:
            connection.exec_driver_sql("UPDATE songs SET genre = ? WHERE id = ?", (genre, song.id))
    model_id = learn(taught, LearningSettings(supervision="genre", C=100.0), "noise", Watcher())
    report = load_report(taught.models.path(model_id))
    assert not report["is_better"]
    assert abs(report["leads"]["auc"]["mean"]) < 0.05  # with 60 held-out songs, 0.02 is about one standard deviation


# --- the model that a training starts from -------------------------------------------------------------------------


def default_names(library, method):
    return [record.name for record in choose_default_models(library, method)]


def test_training_starts_from_model_in_use(twelve):
    both = join_models(twelve, ["Sound", "Codewords"], "Both", hush, use=True)
    reports = [
        load_report(twelve.models.path(learn(twelve, LearningSettings("genre", on, quick=True), "mine", Watcher())))
        for on in ((), ("Both",), ("Sound",))
    ]
    assert [report["base"] for report in reports] == ["Both", "Both", "Sound"]
    in_use, named, sound = (report["hubness"]["before"] for report in reports)
    assert in_use == named != sound
    assert twelve.models.active().id == both


def test_learned_model_in_use_is_trained_again_on_its_own_models(twelve):
    join_models(twelve, ["Sound", "Codewords"], "Both", hush, use=True)
    settings = LearningSettings("genre", quick=True)
    for _ in range(2):
        record = twelve.models.get(learn(twelve, settings, "mine", Watcher()))
        twelve.models.activate(record.id)
        assert record.settings["on"] == ["Both"]
    twelve.models.delete(twelve.models.find("Both").id)
    assert default_names(twelve, "ranking") == ["Sound"]


def test_refit_does_not_change_to_model_in_use(twelve):
    record = twelve.models.get(learn(twelve, LearningSettings("genre", quick=True), "mine", Watcher()))
    join_models(twelve, ["Sound", "Codewords"], "Both", hush, use=True)
    assert refit_model(twelve, record, Watcher())
    assert load_report(twelve.models.path(twelve.models.find("mine").id))["base"] == "Sound"


@pytest.mark.parametrize(
    ("in_use", "automatic", "ranking"),
    [("Sound", ["Sound", "Codewords"], ["Sound"]), ("Codewords", ["Codewords"], ["Codewords"])],
)
def test_built_in_model_in_use_is_the_first(twelve, in_use, automatic, ranking):
    twelve.models.activate(twelve.models.find(in_use).id)
    assert (default_names(twelve, "automatic"), default_names(twelve, "ranking")) == (automatic, ranking)


# --- the penalty -----------------------------------------------------------------------------------------------------


def entries(*scores):
    return [{"C": 10.0**i, "scores": each, "quality": each.mean()} for i, each in enumerate(scores)]


def test_smallest_c_within_standard_error_is_chosen(rng):
    groups = [f"artist {i // 4}" for i in range(40)]
    by_artist = np.repeat(rng.standard_normal(10), 4)  # its mean has a standard error of about 0.3
    noise = by_artist - by_artist.mean()
    within, beyond = entries(np.zeros(40), 0.1 + noise), entries(np.zeros(40), 1.0 + noise)
    assert choose_entry(within, groups, "plain")["C"] == 1.0
    assert choose_entry(beyond, groups, "plain")["C"] == 10.0
    assert choose_entry(within, groups, "trace")["C"] == 10.0
    # as queries of one artist each, the noise is smaller
    assert choose_entry(entries(np.zeros(40), 0.2 + noise), groups, "plain")["C"] == 1.0
    assert choose_entry(entries(np.zeros(40), 0.2 + noise), [f"{i}" for i in range(40)], "plain")["C"] == 10.0


def test_one_judged_artist_cannot_justify_a_larger_c():
    assert choose_entry(entries(np.zeros(4), np.ones(4)), ["one"] * 4, "plain")["C"] == 1.0


def test_few_artists_need_a_larger_gain():
    """The interval of two artists is nine times as wide as that of a bootstrap."""
    gains = np.array([0.3, 0.3, 0.5, 0.5])
    assert choose_entry(entries(np.zeros(4), gains), ["one", "one", "two", "two"], "plain")["C"] == 1.0
    assert choose_entry(entries(np.zeros(80), np.tile(gains, 20)), [f"{i}" for i in range(80)], "plain")["C"] == 10.0


def test_weak_ranking_keeps_distances(taught):
    model_id = learn(taught, LearningSettings(C=1e-6), "weak", Watcher())
    before, after = (take_snapshot(taught, each).X for each in (taught.models.native().id, model_id))
    ratios = pdist(after) / pdist(before)
    np.testing.assert_allclose(ratios, ratios[0], rtol=1e-4)
    assert not load_report(taught.models.path(model_id))["is_better"]


@pytest.mark.parametrize(("supervision", "penalty"), [("genre", "plain"), ("answers", "trace")])
def test_settings_name_the_penalty(supervision, penalty):
    settings = asdict(LearningSettings(supervision, method="ranking"))
    assert f"full metric, {penalty} penalty" in settings_words(settings, "Sound")


def test_earlier_model_keeps_its_penalty():
    # "trace" was the default
    settings = LearningSettings(**RANKED["settings"])
    assert asdict(settings) | {"on": []} == RANKED["settings"] | {
        "generated": False, "quick": False, "overlap": "jaccard",
    }  # fmt: skip
    assert "full metric, trace penalty" in settings_words(RANKED["settings"], "Sound")


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"supervision": "playlists"}, ModelError, "import some"),
        ({"supervision": "stars"}, ValueError, "must be one of plays"),
        ({"on": "nobody"}, NotFoundError, "It has: 'Sound'"),
        ({"C": 1e-9, "regularizer": "trace"}, ModelError, "nothing was learned"),
        ({"loss": "fun"}, ValueError, "loss='fun'"),
    ],
)
def test_unlearnable_settings_give_clear_error(taught, settings, error, message):
    before = [record.id for record in taught.models.all()]
    with pytest.raises(error, match=message):
        learn(taught, LearningSettings(**{"method": "ranking"} | settings), "x", Watcher())
    assert [record.id for record in taught.models.all()] == before


def test_rejects_too_few_artists(tiny_library):
    with pytest.raises(ModelError, match=r"at least 5 artists, .* There are only 3"):
        learn(tiny_library, LearningSettings(supervision="genre", method="ranking"), "x", Watcher())


def test_rejects_concurrent_training(taught):
    with taught.exclusive(), pytest.raises(StoreLockedError):
        learn(taught, LearningSettings(method="ranking"), "x", Watcher())


def test_lock_error_names_running_operation(taught, monkeypatch):
    told = []

    def try_to_add(*_):
        with Library.open(taught.folder) as other, pytest.raises(StoreLockedError) as refused:
            other.add(taught.folder.parent)
        told.append(str(refused.value))
        raise ModelError("nothing was learned")

    monkeypatch.setattr(learned_model, "learn_unlocked", try_to_add)
    with pytest.raises(ModelError):
        learn(taught, LearningSettings(method="ranking"), "x", Watcher())
    assert "another musicsim process is training a model in this library" in told[0]
    with taught.exclusive(), pytest.raises(StoreLockedError, match="is adding songs in this library"):
        learn(taught, LearningSettings(method="ranking"), "x", Watcher())
    # a killed process leaves all of its words or none
    with taught.exclusive():
        (taught.folder / "writer.txt").write_bytes(b"\xff\x1b[31m")
        with pytest.raises(StoreLockedError, match=r"another musicsim process is \[31m in"):
            learn(taught, LearningSettings(method="ranking"), "x", Watcher())
        (taught.folder / "writer.txt").unlink()
        with pytest.raises(StoreLockedError, match="another musicsim process is at work in"):
            learn(taught, LearningSettings(method="ranking"), "x", Watcher())
    assert not (taught.folder / "writer.txt").exists()


def test_settings_are_json_serializable(taught):
    settings = LearningSettings(C=2.0, supervision="genre")
    assert LearningSettings(**json.loads(json.dumps(dataclasses.asdict(settings)))) == settings
