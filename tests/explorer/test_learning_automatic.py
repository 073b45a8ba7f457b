"""Tests of the automatic method: it learns if that helps, and otherwise keeps the sound alone."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from musicsim import metric
from musicsim.explorer.learning import automatic
from musicsim.explorer.learning.automatic import SOUND_ALONE
from musicsim.explorer.learning.judging import N_SHUFFLES
from musicsim.explorer.learning.supervision import Coverage, Supervision, rank_kinds
from musicsim.explorer.learning.task import LearningSettings, LearningTask
from musicsim.explorer.learning.verdict import Lead, find_losses, is_better
from musicsim.explorer.models.artifacts import load_report
from musicsim.explorer.refresh.fitting import RepresentationSettings
from musicsim.explorer.refresh.learned_model import learn
from musicsim.explorer.refresh.model_catalogue import add_representation
from musicsim.explorer.refresh.model_text import describe_split, figures, headline, path_rows, report_of
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.library.stores.playlists import OWN_PLAYLISTS
from tests.learning import RANKED, Watcher, hush


@pytest.mark.long
def test_automatic_training_on_plays_beats_sound_alone(taught):
    watcher = Watcher()
    model_id = learn(taught, LearningSettings(), "mine", watcher)
    report = load_report(taught.models.path(model_id))
    assert report["leads"]["auc"]["low"] > 0.05
    assert report["is_better"]
    assert report["setting"] != SOUND_ALONE
    assert headline(report)[0] == "better"
    assert [point["setting"] for point in watcher.points] == [entry["setting"] for entry in report["path"][1:]]
    assert all(point["untrained"] == report["path"][0]["quality"] for point in watcher.points)
    tried = " ".join(entry["setting"] for entry in report["path"])
    assert all(words in tried for words in ("whitening within", "geometric mean", "ranking", "after whitening"))
    assert LearningSettings(**taught.models.get(model_id).settings) == LearningSettings()
    assert sum(row[""] == "chosen" for row in path_rows(report)) == 1
    assert "each third of these artists" in describe_split(report)


@pytest.mark.long
def test_subset_fit_is_kept_if_full_fit_fails(taught, monkeypatch):
    fitted = automatic.fit_ranking
    n_songs = []

    def finds_nothing_in_all(mlr, X, relevance):
        n_songs.append(len(X))
        if len(X) == len(taught):
            raise automatic.NothingLearnedError
        return fitted(mlr, X, relevance)

    monkeypatch.setattr(automatic, "fit_ranking", finds_nothing_in_all)
    monkeypatch.setattr(automatic.Ways, "whitenings", lambda ways, within: [])
    monkeypatch.setattr(automatic.Ways, "means", lambda ways: [])
    report = load_report(taught.models.path(learn(taught, LearningSettings(), "mine", Watcher())))
    assert n_songs[-1] == len(taught)
    assert report["setting"].startswith("ranking")


@pytest.mark.long
def test_random_genres_are_harmless_and_not_better(taught, rng):
    for song, genre in zip(taught.songs(), rng.integers(5, size=200), strict=True):
        with taught.write() as connection:
            connection.exec_driver_sql("UPDATE songs SET genre = ? WHERE id = ?", (f"genre {genre}", song.id))
    model_id = learn(taught, LearningSettings("genre"), "noise", Watcher())
    report = load_report(taught.models.path(model_id))
    assert not report["is_better"]
    leads = {name: Lead(**lead) for name, lead in report["leads"].items()}
    assert not find_losses(leads) or report["setting"] == SOUND_ALONE
    assert report["setting"] == SOUND_ALONE or report["setting"].startswith("whitening")


@pytest.mark.long
def test_retraining_gives_same_model(taught):
    X = [take_snapshot(taught, learn(taught, LearningSettings(), name, Watcher())).X for name in "ab"]
    np.testing.assert_allclose(X[0], X[1], atol=1e-5)


@pytest.mark.long
def test_immediate_stop_keeps_sound_alone(taught):
    model_id = learn(taught, LearningSettings(), "early", Watcher(enough_after=0))
    report = load_report(taught.models.path(model_id))
    assert report["stopped_early"]
    assert report["setting"] == SOUND_ALONE
    assert not report["is_better"]
    assert "sound alone is best" in headline(report)[1]
    native = take_snapshot(taught, taught.models.native().id)
    np.testing.assert_allclose(take_snapshot(taught, model_id).X, native.X, atol=1e-6)


@pytest.mark.long
def test_joint_kernel_is_tried_and_recorded_if_used(twelve):
    add_representation(twelve, RepresentationSettings("ppk", 16), "codewords", hush)
    model_id = learn(twelve, LearningSettings("genre"), "mine", Watcher())
    report = report_of(twelve, twelve.models.get(model_id))
    tried = [entry["setting"] for entry in report["path"]]
    assert "all models, equal weights" in tried
    assert any(words.startswith("ranking with a kernel for each model") for words in tried)
    is_joined = "model" in report["setting"]
    assert ("sources" in report) == is_joined
    assert report["base"] == ("Sound + codewords" if is_joined else "Sound")
    assert len(take_snapshot(twelve, model_id).row_ids) == 24


@pytest.mark.long
def test_two_songs_per_artist_are_enough(twelve):
    model_id = learn(twelve, LearningSettings("artist"), "pairs", Watcher())
    report = report_of(twelve, twelve.models.get(model_id))
    assert report["n_artists"] == 12
    assert figures(report)


@pytest.mark.parametrize("generated", [False, True])
def test_generated_playlists_train_only_on_request(taught, generated):
    ids = [song.id for song in taught.songs()]
    drawn = {"seed": 3, "taken": [], "dialect": None, "notes": [], "kept": []}
    taught.add_playlists([("drawn", None, ids[:20], drawn)], source=OWN_PLAYLISTS)
    taught.add_playlists([("made", None, ids[20:26])], source=OWN_PLAYLISTS)
    supervision = Supervision(take_snapshot(taught), "playlists", generated=generated)
    relevance = supervision.relevance()
    rows = [i for i in range(len(relevance)) if len(relevance.relevant(i))]
    assert (len(rows) > 6) == generated
    assert supervision.detail == ("2 playlists" if generated else "1 playlist, not counting 1 generated by musicsim")


@pytest.mark.parametrize(
    ("settings", "method"),
    [
        ({}, "automatic"), ({"C": 10.0}, "ranking"), ({"structure": "diagonal"}, "ranking"),
        ({"regularizer": "l21"}, "ranking"), ({"supervision": "answers"}, "ranking"), ({"method": "mean"}, "mean"),
    ],
)  # fmt: skip
def test_automatic_is_default_without_ranking_settings(settings, method):
    assert LearningSettings(**settings).method == method


# --- the verdict ----------------------------------------------------------------------------------

UP, DOWN, EVEN = (Lead(0.5, 0.6, 0.1, 0.05, 0.2), Lead(0.5, 0.4, -0.1, -0.2, -0.05), Lead(0.5, 0.5, 0, -0.1, 0.1))


def told(**leads):
    given = {name: {k: getattr(lead, k) for k in Lead.__slots__} for name, lead in leads.items()}
    return RANKED | {"leads": given, "is_better": is_better(leads)}


def test_worse_verdict_names_fallen_measure():
    report = told(auc=UP, map=EVEN, mrr=DOWN, precision=EVEN)
    assert find_losses({"auc": UP, "mrr": DOWN}) == ["mrr"]
    assert not report["is_better"]
    said, sentence = headline(report)
    assert said == "worse"
    plainly = "Worse: similar songs rank lower than before training by some measures."
    assert sentence.startswith(f"{plainly} MRR 0.400 vs 0.500 before training")
    assert "though AUC rose" in sentence


def test_old_report_with_fallen_measure_is_worse():
    assert headline(told(auc=UP, mrr=DOWN) | {"is_better": True})[0] == "worse"


def test_rejected_setting_is_named_with_fallen_measure():
    said, sentence = headline(told(auc=EVEN, mrr=DOWN) | {"rejected": "ranking, C 10", "setting": SOUND_ALONE})
    assert said == "worse"
    assert sentence.startswith("The sound alone is better, so it was kept: on 4 held-out artists, MRR")
    assert sentence.endswith("with ranking, C 10.")


def test_no_difference_requires_no_fallen_measure():
    assert headline(told(auc=EVEN, mrr=EVEN))[0] == "no difference shown"
    assert headline(told(auc=UP, mrr=EVEN))[0] == "better"


def test_widespread_and_reliable_supervision_is_first():
    coverages = [
        Coverage("plays", 12, 0.02, ""),
        Coverage("genre", 65, 0.21, ""),
        Coverage("artist", 113, 0.36, ""),
        Coverage("folder", 309, 0.99, ""),
        Coverage("tags", 4, 0.01, "", "too few"),
    ]
    assert [c.kind for c in rank_kinds(coverages)] == ["artist", "folder", "genre", "plays"]
    assert rank_kinds(coverages[-1:]) == []


# --- a first result, and progress ----------------------------------------------------------------------------------


@pytest.fixture
def fitted(monkeypatch):
    """Try no rankings; return the settings of geometric means that were fitted."""
    settings, fit = [], metric.GMML.fit
    monkeypatch.setattr(automatic.Ways, "rankings", lambda *_: [])
    monkeypatch.setattr(metric.GMML, "fit", lambda self, *a: settings.append((self.t, self.reg)) or fit(self, *a))
    return settings


def test_thorough_training_goes_on_from_quick_one(twelve, fitted):
    settings = LearningSettings("genre", ("Sound",), quick=True)
    report = load_report(twelve.models.path(learn(twelve, settings, "mine", Watcher())))
    means = [f"geometric mean, t {t:g}, reg {reg:g}" for t, reg in dict.fromkeys(fitted)]
    assert [entry["setting"] for entry in report["path"]] == [SOUND_ALONE, *means]
    assert report["untried"] == 4 * 5, "four strengths of whitening within five kinds of classes"
    fitted.clear()
    again = learn(twelve, replace(settings, quick=False), "mine", Watcher())
    after = load_report(twelve.models.path(again))
    # N_SHUFFLES fits for the verdict and on each of three folds, and one each for the training artists and all songs
    later = 2 + N_SHUFFLES + 3 * N_SHUFFLES
    assert len(fitted) in (0, later), "no mean is tried again"
    assert after["path"][: len(report["path"])] == report["path"]
    assert not after.get("untried")
    assert [model.id for model in twelve.models.all() if model.name == "mine"] == [again]


def test_same_classes_are_tried_once(twelve):
    snapshot = take_snapshot(twelve)
    task = LearningTask.from_settings(snapshot, LearningSettings("genre"), [])
    artists, folders = snapshot.columns.artist, snapshot.columns.genre

    def kinds(folders):
        columns = SimpleNamespace(artist=artists, folder=folders)
        return automatic.WithinSongs(SimpleNamespace(columns=columns, model=None), task).kinds

    assert kinds(folders) == [("genres",), ("folders",), ("artists", "folders"), ("genres", "artists", "folders")]
    assert kinds(artists) == [("genres",), ("artists",), ("genres", "artists")]


def test_attempts_on_other_examples_are_not_used(twelve, fitted):
    settings = LearningSettings("genre", ("Sound",), quick=True)
    learn(twelve, settings, "mine", Watcher())
    n_fits = fitted.count((0.3, 1.0))
    with twelve.write() as connection:
        connection.exec_driver_sql("UPDATE songs SET genre = 'other' WHERE id % 5 = 0")
    learn(twelve, replace(settings, quick=False), "mine", Watcher())
    assert fitted.count((0.3, 1.0)) >= n_fits + 3, "the first method is tried again on three folds"


@pytest.mark.parametrize(
    "options",
    [
        {"quick": True}, {"C": 10.0}, {"method": "mean"},
        *(pytest.param(options, marks=pytest.mark.long) for options in ({}, {"method": "ranking"})),
    ],
)  # fmt: skip
def test_progress_never_falls(twelve, monkeypatch, options):
    monkeypatch.setattr(automatic, "_MIN_TIMED_S", 0.0)
    watcher = Watcher()
    learn(twelve, LearningSettings("genre", **options), "mine", watcher)
    assert watcher.shares == sorted(watcher.shares)
    assert (watcher.shares[0], watcher.shares[-1]) == (0.0, 1.0)
    assert len(set(watcher.shares)) > (20 if not options else 1)
    assert options or any(watcher.seconds_left)


def test_quick_training_is_for_automatic_method():
    with pytest.raises(ValueError, match="quick works only with the automatic method, not with ranking"):
        LearningSettings("genre", C=1.0, quick=True)
