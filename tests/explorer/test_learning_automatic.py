"""The automatic method learns where it helps, and leaves the sound as it is where nothing surely does."""

import numpy as np
import pytest

from musicsim.explorer.learning import automatic
from musicsim.explorer.learning.automatic import SOUND_ALONE
from musicsim.explorer.learning.supervision import Coverage, Supervision, preselected
from musicsim.explorer.learning.task import LearningSettings
from musicsim.explorer.learning.verdict import Lead, fallen, is_better
from musicsim.explorer.models.artifacts import load_report
from musicsim.explorer.refresh.fitting import RepresentationSettings
from musicsim.explorer.refresh.learned_model import learn
from musicsim.explorer.refresh.model_catalogue import add_representation
from musicsim.explorer.refresh.model_text import figures, headline, judged_on, path_rows, report_of
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.library.stores.playlists import OWN_PLAYLISTS
from tests.learning import RANKED, Watcher, hush


def test_what_plays_teach_is_found_and_kept(taught):
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
    assert all(words in tried for words in ("whitening within", "geometric mean", "ranking", "half of it"))
    assert LearningSettings(**taught.models.get(model_id).settings) == LearningSettings()
    assert sum(row[""] == "chosen" for row in path_rows(report)) == 1
    assert "a third of these artists" in judged_on(report)


def test_where_all_songs_teach_nothing_what_some_of_them_taught_is_kept(taught, monkeypatch):
    fitted = automatic._fitted
    n_songs = []

    def finds_nothing_in_all(mlr, X, relevance):
        n_songs.append(len(X))
        if len(X) == len(taught):
            raise automatic.NothingLearnedError
        return fitted(mlr, X, relevance)

    monkeypatch.setattr(automatic, "_fitted", finds_nothing_in_all)
    monkeypatch.setattr(automatic._Ways, "whitenings", lambda ways, within: [])
    monkeypatch.setattr(automatic._Ways, "means", lambda ways: [])
    report = load_report(taught.models.path(learn(taught, LearningSettings(), "mine", Watcher())))
    assert n_songs[-1] == len(taught)
    assert report["setting"].startswith("ranking")


def test_labels_by_lot_are_not_called_better_and_do_no_harm(taught, rng):
    for song, genre in zip(taught.songs(), rng.integers(5, size=200), strict=True):
        with taught.write() as connection:
            connection.exec_driver_sql("UPDATE songs SET genre = ? WHERE id = ?", (f"genre {genre}", song.id))
    model_id = learn(taught, LearningSettings("genre"), "noise", Watcher())
    report = load_report(taught.models.path(model_id))
    assert not report["is_better"]
    leads = {name: Lead(**lead) for name, lead in report["leads"].items()}
    assert not fallen(leads) or report["setting"] == SOUND_ALONE
    assert report["setting"] == SOUND_ALONE or report["setting"].startswith("whitening")


def test_training_again_on_the_same_songs_gives_the_same_model(taught):
    X = [take_snapshot(taught, learn(taught, LearningSettings(), name, Watcher())).X for name in "ab"]
    np.testing.assert_allclose(X[0], X[1], atol=1e-5)


def test_stopped_at_once_it_keeps_the_sound(taught):
    model_id = learn(taught, LearningSettings(), "early", Watcher(enough_after=0))
    report = load_report(taught.models.path(model_id))
    assert report["stopped_early"]
    assert report["setting"] == SOUND_ALONE
    assert not report["is_better"]
    assert "sound alone is best" in headline(report)[1]
    native = take_snapshot(taught, taught.models.native().id)
    np.testing.assert_allclose(take_snapshot(taught, model_id).X, native.X, atol=1e-6)


def test_codewords_are_a_kernel_of_their_own_and_are_left_out_again_where_they_do_not_help(twelve):
    add_representation(twelve, RepresentationSettings("ppk", 16), "codewords", hush)
    model_id = learn(twelve, LearningSettings("genre"), "mine", Watcher())
    report = report_of(twelve, twelve.models.get(model_id))
    tried = [entry["setting"] for entry in report["path"]]
    assert "all models, as equals" in tried
    assert any(words.startswith("ranking with a kernel for each model") for words in tried)
    is_joined = "model" in report["setting"]
    assert ("sources" in report) == is_joined
    assert report["base"] == ("Sound + codewords" if is_joined else "Sound")
    assert len(take_snapshot(twelve, model_id).row_ids) == 24


def test_two_songs_an_artist_are_enough_to_learn_from(twelve):
    model_id = learn(twelve, LearningSettings("artist"), "pairs", Watcher())
    report = report_of(twelve, twelve.models.get(model_id))
    assert report["n_artists"] == 12
    assert figures(report)


@pytest.mark.parametrize("generated", [False, True])
def test_playlists_that_were_generated_here_teach_only_when_asked(taught, generated):
    ids = [song.id for song in taught.songs()]
    drawn = {"seed": 3, "taken": [], "dialect": None, "notes": [], "kept": []}
    taught.add_playlists([("drawn", None, ids[:20], drawn)], source=OWN_PLAYLISTS)
    taught.add_playlists([("made", None, ids[20:26])], source=OWN_PLAYLISTS)
    supervision = Supervision(take_snapshot(taught), "playlists", generated=generated)
    relevance = supervision.relevance()
    rows = [i for i in range(len(relevance)) if len(relevance.relevant(i))]
    assert (len(rows) > 6) == generated
    assert supervision.detail == ("2 playlists" if generated else "1 playlists; 1 generated here are left out")


@pytest.mark.parametrize(
    ("settings", "method"),
    [
        ({}, "automatic"), ({"C": 10.0}, "ranking"), ({"structure": "diagonal"}, "ranking"),
        ({"regularizer": "l21"}, "ranking"), ({"supervision": "answers"}, "ranking"), ({"method": "mean"}, "mean"),
    ],
)  # fmt: skip
def test_automatic_is_the_default_unless_something_of_a_ranking_is_asked_for(settings, method):
    assert LearningSettings(**settings).method == method


# --- the verdict ----------------------------------------------------------------------------------

UP, DOWN, EVEN = (Lead(0.5, 0.6, 0.1, 0.05, 0.2), Lead(0.5, 0.4, -0.1, -0.2, -0.05), Lead(0.5, 0.5, 0, -0.1, 0.1))


def told(**leads):
    given = {name: {k: getattr(lead, k) for k in Lead.__slots__} for name, lead in leads.items()}
    return RANKED | {"leads": given, "is_better": is_better(leads, "auc")}


def test_whatever_measure_falls_the_verdict_is_worse_and_names_it():
    report = told(auc=UP, map=EVEN, mrr=DOWN, precision=EVEN)
    assert fallen({"auc": UP, "mrr": DOWN}) == ["mrr"]
    assert not report["is_better"]
    said, sentence = headline(report)
    assert said == "worse"
    assert "MRR 0.400 against 0.500" in sentence
    assert "though AUC rose" in sentence


def test_a_report_of_an_older_version_that_says_better_is_worse_where_a_measure_fell():
    assert headline(told(auc=UP, mrr=DOWN) | {"is_better": True})[0] == "worse"


def test_what_was_rejected_is_named_with_what_fell():
    said, sentence = headline(told(auc=EVEN, mrr=DOWN) | {"rejected": "ranking, C 10", "setting": SOUND_ALONE})
    assert said == "worse"
    assert sentence.startswith("This library's sound alone is better, and was kept: on 4 held-out artists, MRR")
    assert sentence.endswith("with ranking, C 10.")


def test_no_difference_is_said_only_where_no_measure_fell():
    assert headline(told(auc=EVEN, mrr=EVEN))[0] == "no difference shown"
    assert headline(told(auc=UP, mrr=EVEN))[0] == "better"


def test_few_songs_of_one_kind_give_way_to_a_kind_that_most_songs_have():
    few, most, none = (
        Coverage("plays", 12, 0.02, ""),
        Coverage("artist", 500, 0.8, ""),
        Coverage("tags", 0, 0, "", "no"),
    )
    assert preselected([few, none, most]) == "artist"
    assert preselected([few, none]) == "plays"
    assert preselected([none]) is None
