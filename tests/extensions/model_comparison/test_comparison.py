"""Tests of comparing the sound and an embedding on the same queries, before and after learning on other artists."""

import json
import re

import numpy as np
import pytest

from musicsim.errors import ModelError
from musicsim.explorer.learning.supervision import Supervision
from musicsim.explorer.learning.task import artist_folds
from musicsim.explorer.learning.verdict import RANKING_MEASURES, Lead
from musicsim.explorer.refresh.learned_model import learn
from musicsim.explorer.requests.training import LearningSettings
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.extensions.model_comparison import comparison as against
from musicsim.extensions.model_comparison.comparison import Difference, comparable, compare_with
from tests.command import run
from tests.learning import Watcher, hush

adding = pytest.importorskip("musicsim.extensions.embeddings.adding", reason="another extension")

NAMES = ("Sound", "Sound, learned", "net", "net, learned")


@pytest.fixture
def unlearned(monkeypatch):
    """Skip learning, which takes most of the time and finds nothing here."""
    monkeypatch.setattr(against, "learn_ranking", lambda *_: None)


@pytest.fixture
def library(own_styles):
    return own_styles


def bring(library, songs, columns, name="net"):
    """Import an embedding of some songs."""
    path = library.folder.parent / f"{name}.npz"
    np.savez(path, ids=[song.id for song in songs], vectors=np.asarray(columns, dtype=np.float32))
    return adding.add_own_vectors(library, path, name, hush)[0]


def noise(n, d=6, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def average_precision(relevant):
    """Compute the average precision of a ranking from the relevance of its songs."""
    hits = np.flatnonzero(relevant)
    return np.mean([(i + 1) / (place + 1) for i, place in enumerate(hits)]) if len(hits) else np.nan


@pytest.mark.long
def test_noise_is_worse_and_scores_match_brute_force(library, unlearned):
    songs = library.songs()
    bring(library, songs, noise(len(songs)))
    found = compare_with(library, "net", "genre")
    assert tuple(row.name for row in found.rows) == NAMES
    assert (found.n_songs, found.n_queries, found.n_artists, found.n_folds, found.n_left_out) == (30, 30, 15, 5, 0)
    first = found.differences[0]
    assert (first.name, first.other) == ("net", "Sound")
    assert first.leads["map"].high < 0
    assert first.summary.startswith("net is worse than Sound: MAP ")
    assert len(found.differences) == 6

    ours = take_snapshot(library, library.models.native().id)
    theirs = take_snapshot(library, library.models.find("net").id)
    genre, artist = (np.array(getattr(ours.columns, name).texts()) for name in ("genre", "group"))
    place = theirs.rows_of(ours.row_ids)
    scores = {"Sound": {}, "net": {}}
    rng = np.random.default_rng(0)
    for fold in artist_folds(Supervision(ours, "genre"), np.arange(30), 5, 400, rng):
        for name, snapshot, rows in (("Sound", ours, np.arange(30)), ("net", theirs, place)):
            for q in fold.queries:
                assert artist[q] not in artist[fold.database]
                query, database = snapshot.X[rows[q]], rows[fold.database]
                distances = np.linalg.norm(snapshot.X[database] - query, axis=1)
                order = fold.database[np.argsort(snapshot.adjust_distances(query, distances, database), kind="stable")]
                scores[name][q] = average_precision(genre[order] == genre[q])
    for row in found.rows[::2]:
        assert row.figures["map"].mean == pytest.approx(np.mean(list(scores[row.name].values())), abs=1e-6)
    differences = [scores["net"][q] - scores["Sound"][q] for q in range(30)]
    assert first.leads["map"].mean == pytest.approx(np.mean(differences), abs=1e-6)


@pytest.mark.long
def test_learning_finds_relevant_dimensions_without_leakage(library, monkeypatch):
    """Three dimensions separate the genres. The other two, which are louder, separate the artists."""
    songs = library.songs()
    genres = sorted({song.genre for song in songs})
    own = np.eye(3)[[genres.index(song.genre) for song in songs]]
    artists = sorted({song.artist for song in songs})
    who = 1.5 * noise(len(artists), 2)[[artists.index(song.artist) for song in songs]]
    bring(library, songs, np.column_stack([own, who]))
    heard, original = [], against.learn_ranking

    def listening(task, watcher):
        heard.append((set(task.split.train.tolist()), task.X.shape[1]))
        return original(task, watcher)

    monkeypatch.setattr(against, "learn_ranking", listening)
    found = compare_with(library, "net", "genre")
    theirs, learned = found.rows[2:]
    assert theirs.figures["map"].mean < 0.8
    assert learned.figures["map"].mean > 0.95  # near the untrained model, the artists keep some weight
    one = next(d for d in found.differences if (d.name, d.other) == ("net, learned", "net"))
    assert one.summary.startswith("net, learned is better than net: ")
    groups = np.array(take_snapshot(library, library.models.native().id).columns.group.texts())
    parts = [frozenset(np.delete(np.arange(30), sorted(train))) for train, _ in heard]
    assert len(heard) == 10
    assert set.union(*map(set, parts)) == set(range(30))
    for (train, _), part in zip(heard, parts, strict=True):
        assert not set(groups[sorted(train)]) & set(groups[sorted(part)])


@pytest.mark.long
def test_songs_without_vector_are_excluded(library, unlearned):
    songs = library.songs()
    bring(library, songs[:24], noise(24))
    learned = learn(library, LearningSettings("genre", method="mean"), "mine", Watcher())
    library.models.activate(learned)
    found = compare_with(library, "net", "genre")
    assert (found.n_songs, found.n_left_out) == (24, 6)
    assert "6 songs without a vector are left out" in found.summary
    kept = "in 5 of 5 folds, the original vectors were kept, because no metric was significantly better"
    assert found.rows[3].note == kept
    last = found.rows[-1]
    assert last.name == "mine, in use"
    assert "trained on the same artists" in last.note
    assert not any("in use" in one.name + one.other for one in found.differences)
    assert [record.name for record in comparable(library)] == ["net", "Codewords"]
    with pytest.raises(ModelError, match="neither Sound nor a trained model"):
        compare_with(library, "mine", "genre")


@pytest.mark.long
def test_artists_are_searched_within_their_fold(library, unlearned):
    """Otherwise nothing would be relevant, because all songs of an artist are held out together."""
    songs = library.songs()
    artists = sorted({song.artist for song in songs})
    bring(library, songs, np.eye(len(artists))[[artists.index(song.artist) for song in songs]])
    found = compare_with(library, "net", "artist")
    assert found.n_folds == 3
    assert found.rows[2].figures["map"].mean == pytest.approx(1)


def lead(low, high):
    return Lead(0.5, 0.5 + (low + high) / 2, (low + high) / 2, low, high)


@pytest.mark.parametrize(
    ("leads", "words"),
    [
        ({}, "a and b cannot be compared: the ground truth covers too few artists"),
        ({"auc": lead(0.1, 0.3), "map": lead(0.1, 0.3)}, "a is better than b: MAP 0.700 .*; also on AUC"),
        ({"auc": lead(-0.3, -0.1), "map": lead(-0.1, 0.1)}, "a is worse than b: AUC 0.300"),
        ({"auc": lead(-0.1, 0.1), "map": lead(-0.1, 0.2)}, "No significant difference between a and b: MAP"),
        ({"auc": lead(0.1, 0.3), "map": lead(-0.3, -0.1)}, "a is better than b on AUC, but worse on MAP: "),
    ],
)
def test_difference_summary_matches_leads(leads, words):
    assert re.match(words, Difference("a", "b", leads).summary)


@pytest.mark.long
def test_cli_reports_comparison_in_words_and_scores(library, unlearned):
    songs = library.songs()
    bring(library, songs, noise(len(songs)))
    told = json.loads(run("evaluate", "--against", "net", "--truth", "genre", "--json", library=library.folder)[0])
    assert [row["name"] for row in told["rows"]] == list(NAMES)
    assert set(told["rows"][0]["figures"]) == set(RANKING_MEASURES)
    assert told["differences"][0]["words"].startswith("net is worse than Sound")
    assert "--model, --split" in run(
        "evaluate", "--against", "net", "--model", "Sound", library=library.folder, expect=2
    )[1].replace("\n", " ")
    assert "does not have a model 'other'" in run("evaluate", "--against", "other", library=library.folder, expect=1)[1]


def test_rejects_too_few_artists(tiny_library):
    songs = tiny_library.songs()
    bring(tiny_library, songs, noise(len(songs)))
    with pytest.raises(ModelError, match=r"only 3 artists have songs with a vector in each model.* at least 5 artists"):
        compare_with(tiny_library, "net", "folder")
