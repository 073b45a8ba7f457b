"""Tests of the user's vectors as a model, alone and as one of several that are learned together."""

import json
import shutil

import numpy as np
import pytest

from musicsim.errors import FeatureVersionError, ModelError
from musicsim.explorer.models.artifacts import load_report
from musicsim.explorer.models.files import save_model_file
from musicsim.explorer.models.representations import representations
from musicsim.explorer.refresh.fitting import RepresentationSettings
from musicsim.explorer.refresh.learned_model import learn
from musicsim.explorer.refresh.model_catalogue import add_representation, import_model_file, stale_reason
from musicsim.explorer.refresh.model_text import facts, kind_words, report_of, source_rows
from musicsim.explorer.refresh.refresh import refresh
from musicsim.explorer.requests.training import LearningSettings
from musicsim.explorer.search.query import find_similar, read_example
from musicsim.explorer.search.why_groups import GROUPS, REST
from musicsim.explorer.search.why_sides import explain_result
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.extensions.embeddings.adding import add_own_vectors
from musicsim.extensions.embeddings.representations import Distance
from tests.learning import Watcher, hush, tag_by_kind
from tests.sounds import write_song

SOUND = "Sound"


@pytest.fixture(scope="module")
def three_sources_folder(twelve_artists, tmp_path_factory):
    """Build a library with sound, tags and vectors of its own, and a model learned on four sources."""
    from musicsim.library import Library

    folder = tmp_path_factory.mktemp("sources") / "library"
    shutil.copytree(twelve_artists, folder)
    with Library.open(folder) as library:
        tag_by_kind(library)
        add_representation(library, RepresentationSettings("tags"), "tags", hush)
        add_representation(library, RepresentationSettings("rhythm"), "rhythm", hush)
        songs = library.songs()
        kinds = {genre: i for i, genre in enumerate(sorted({song.genre for song in songs}))}
        noise = np.random.default_rng(0).standard_normal((len(songs), 6))
        X = np.eye(6)[[kinds[song.genre] for song in songs]] * 4 + noise
        # four songs lack a vector; one row is for a song that is added later
        names = [str(song.path) for song in songs[4:]] + [str(folder.parent / "new.flac")]
        np.savez(folder.parent / "net.npz", paths=np.array(names), vectors=np.vstack([X[4:], [4, 0, 0, 0, 0, 0]]))
        add_own_vectors(library, folder.parent / "net.npz", "net", hush)
        settings = LearningSettings("genre", (SOUND, "tags", "rhythm", "net"), C=100.0)
        learn(library, settings, "all of it", Watcher())
    return folder


@pytest.fixture
def three_sources(three_sources_folder, tmp_path):
    """Open a copy that the test may change."""
    from musicsim.library import Library

    shutil.copytree(three_sources_folder, tmp_path / "sources")
    with Library.open(tmp_path / "sources") as library:
        yield library


def test_imported_vectors_become_model(three_sources):
    record = three_sources.models.find("net")
    seen = take_snapshot(three_sources, record.id)
    assert len(seen.songs_at()) == 20
    X = three_sources.models.features(record.id).X
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    squared = [((Y[:, None] - Y[None]) ** 2).sum(axis=2) for Y in (seen.X, unit)]
    # the cosine up to a scale: with fewer than fifty songs, the space keeps all dimensions
    np.testing.assert_allclose(squared[0] * (squared[1].sum() / squared[0].sum()), squared[1], atol=1e-5)
    assert find_similar(seen, seen.songs_at([0])[0].id, 1)[0].song.genre == seen.songs_at([0])[0].genre
    assert kind_words(record) == "your own vectors (net.npz)"
    assert "20 of 24 songs have a vector; 21 vectors with 6 dimensions" in "\n".join(facts(three_sources, record, {}))


def test_euclidean_vectors_keep_their_nearest_songs(three_sources, tmp_path):
    ids = [song.id for song in three_sources.songs()]
    X = np.random.default_rng(0).standard_normal((len(ids), 5)) * [1, 5, 0.1, 20, 3] + 40
    np.savez(tmp_path / "plain.npz", ids=np.array(ids), vectors=X)
    model_id, *_ = add_own_vectors(three_sources, tmp_path / "plain.npz", "plain", hush, distance=Distance.EUCLIDEAN)
    vectors = three_sources.vectors(model_id)
    own = np.linalg.norm(X[:, None] - X, axis=2)
    kept = np.linalg.norm(vectors.X[:, None] - vectors.X, axis=2)
    rows = [ids.index(i) for i in vectors.song_ids]
    own = own[np.ix_(rows, rows)]
    np.testing.assert_allclose(kept * (own.sum() / kept.sum()), own, atol=1e-4)
    assert (np.argsort(kept, axis=1) == np.argsort(own, axis=1)).all()
    record = three_sources.models.get(model_id)
    assert "compared by Euclidean distance" in "\n".join(facts(three_sources, record, {}))
    assert stale_reason(three_sources, record) is None


def test_joint_model_is_complete_with_source_shares(three_sources):
    record = three_sources.models.find("all of it")
    assert [m.name for m in three_sources.models.all()] == [SOUND, "Codewords", "tags", "rhythm", "net", "all of it"]
    seen = take_snapshot(three_sources, record.id)
    assert len(seen.songs_at()) == 24
    assert np.isfinite(seen.X).all()
    assert np.isfinite(seen.map).all()
    assert np.var(seen.X, axis=0, dtype=np.float64).sum() == pytest.approx(0.5, rel=1e-4)  # the spread of other models
    report = report_of(three_sources, record)
    assert report["base"] == "Sound + tags + rhythm + net"
    rows = source_rows(report)
    assert [row["source"] for row in rows] == [SOUND, "tags", "rhythm", "net"]
    assert sum(source["share"] for source in report["sources"]) == pytest.approx(1)
    assert all(0 <= source["alone"] <= 1 for source in report["sources"])
    words = "\n".join(facts(three_sources, record, report))
    assert "on “Sound”, “tags”, “rhythm” and “net”, full metric" in words
    assert "Contributions to the distance: " in words
    assert LearningSettings(**record.settings).on == (SOUND, "tags", "rhythm", "net")
    assert stale_reason(three_sources, record) is None
    json.dumps(report)


def test_external_sound_uses_audio_sources(three_sources, tmp_path):
    seen = take_snapshot(three_sources, three_sources.models.find("all of it").id)
    data = write_song(tmp_path / "x.flac", "noise", seed=99).read_bytes()
    example = read_example(seen, data, "x.flac")
    assert np.isfinite(example.vector).all()
    assert find_similar(seen, example, 1)[0].song.genre == "noise"


def test_explanation_includes_each_source_and_sound_parts(three_sources, tmp_path):
    seen = take_snapshot(three_sources, three_sources.models.find("all of it").id)
    one, other = seen.songs_at()[10:12]
    query = read_example(seen, one.path.read_bytes(), "mine")
    for asked in (one.id, query):
        _, _, why = explain_result(seen, asked, other.id)
        shown = max(0.0, why.stages[-1].similarity)
        parts = sum(part.stages[-1].similarity for part in why.parts)
        assert max(0.0, parts) == pytest.approx(shown, abs=1e-6)
        assert why.passages[0], "what sounds alike where"
    words = {part.words for part in explain_result(seen, one.id, other.id)[2].parts} - {REST}
    kinds = {representations()[name].description for name in ("tags", "rhythm", "own")}
    assert words <= kinds | set(GROUPS)
    three_sources.models.delete(three_sources.models.find("net").id)
    three_sources.models.activate(three_sources.models.find("tags").id)
    _, _, why = explain_result(take_snapshot(three_sources), one.id, other.id)
    assert [part.words for part in why.parts] == ["tags assigned by people"]


def test_new_songs_use_their_known_sources(three_sources, three_sources_folder, tmp_path):
    fresh = write_song(three_sources_folder.parent / "new.flac", "clicks", seed=77, title="new", artist="Nobody")
    three_sources.add(fresh)
    three_sources.add(write_song(tmp_path / "other.flac", "tones", seed=78, title="other", artist="Somebody"))
    assert refresh(three_sources)
    new, other = (next(s for s in three_sources.songs() if s.title == title) for title in ("new", "other"))
    seen = take_snapshot(three_sources, three_sources.models.find("all of it").id)
    assert min(seen.rows_of([new.id, other.id])) >= 0
    assert find_similar(seen, new.id, 1)[0].song.genre == "clicks"
    own = take_snapshot(three_sources, three_sources.models.find("net").id)
    assert own.rows_of([new.id])[0] >= 0, "its vector waited for it"
    assert own.rows_of([other.id])[0] == -1


def test_joint_model_outlives_sources_and_round_trips(three_sources, tiny_library, tmp_path):
    record = three_sources.models.find("all of it")
    before = take_snapshot(three_sources, record.id).X.copy()
    for name in ("tags", "net", "rhythm"):
        three_sources.models.delete(three_sources.models.find(name).id)
    three_sources.add(write_song(tmp_path / "new.flac", "clicks", seed=77, title="new", artist="Nobody"))
    assert refresh(three_sources)
    seen = take_snapshot(three_sources, record.id)
    np.testing.assert_array_equal(seen.X[:24], before)
    new = next(song for song in three_sources.songs() if song.title == "new")
    assert find_similar(seen, new.id, 1)[0].song.genre == "clicks"
    save_model_file(three_sources, record.id, tmp_path / "all.musicsim")
    taken = take_snapshot(tiny_library, import_model_file(tiny_library, tmp_path / "all.musicsim", hush))
    assert len(taken.songs_at()) == 12
    assert find_similar(taken, taken.songs_at([0])[0].id, 1)[0].song.artist == taken.songs_at([0])[0].artist


@pytest.mark.long
def test_joint_model_is_refitted_after_source_change(three_sources):
    first = three_sources.models.find("all of it")
    assert refresh(three_sources, force=True)  # fits the codewords again
    second = three_sources.models.find("all of it")
    assert second.id != first.id
    assert stale_reason(three_sources, second) is None
    assert first.base_id not in {record.id for record in three_sources.models.all(retired=True)}
    assert len(take_snapshot(three_sources, second.id).songs_at()) == 24


def test_deleting_joint_model_leaves_nothing(three_sources):
    record = three_sources.models.find("all of it")
    three_sources.models.delete(record.id)
    left = {folder.name for folder in three_sources.models.folder.iterdir()}
    assert left == {m.id for m in three_sources.models.all()}


@pytest.mark.parametrize("structure", ["full", "diagonal"])
def test_joint_model_learns_from_answers(three_sources, structure):
    songs = three_sources.songs()
    rng = np.random.default_rng(0)
    for _ in range(30):
        a, b, c = rng.choice(len(songs), 3, replace=False)
        kinds = [songs[i].genre for i in (a, b, c)]
        odd = next((n for n in range(3) if kinds.count(kinds[n]) == 1), None)
        three_sources.judgments.add("Ann", "odd", [songs[i].id for i in (a, b, c)], odd)
    settings = LearningSettings("answers", (SOUND, "net"), "order", C=10.0, structure=structure)
    model_id = learn(three_sources, settings, "my ears", Watcher())
    report = load_report(three_sources.models.path(model_id))
    assert [source["name"] for source in report["sources"]] == [SOUND, "net"]
    assert report["leads"]["order"]["after"] > 0.5


def test_canceled_training_leaves_no_hidden_model(three_sources):
    from musicsim.progress import Canceled

    before = [record.id for record in three_sources.models.all(retired=True)]
    for moment in ("trying C", "drawing the map"):
        settings = LearningSettings("genre", (SOUND, "tags"), C=100.0)
        with pytest.raises(Canceled):
            learn(three_sources, settings, "gone", Watcher(stop_at=moment))
        assert [record.id for record in three_sources.models.all(retired=True)] == before
        assert len(list(three_sources.models.folder.iterdir())) == len(before)


def test_invalid_sources_give_clear_error(three_sources, tmp_path):
    with pytest.raises(ModelError, match="is itself a learned model"):
        learn(three_sources, LearningSettings("genre", (SOUND, "all of it")), "x", Watcher())
    np.savez(tmp_path / "none.npz", paths=np.array(["nowhere"]), vectors=np.ones((1, 3)))
    with pytest.raises(ModelError, match=r"none of the 1 vectors in none\.npz"):
        add_own_vectors(three_sources, tmp_path / "none.npz", "x", hush)
    for song in three_sources.songs():
        three_sources.frame_files.aspects_path(song.content_hash).unlink()
    with pytest.raises(FeatureVersionError, match="harmony and rhythm"):
        add_representation(three_sources, RepresentationSettings("harmony"), "x", hush)
    with pytest.raises(ValueError, match="must be one of"):
        RepresentationSettings("combined")


def test_single_and_joint_models_hold_out_same_artists(three_sources):
    """Results of learning on one can then be compared with learning on several."""
    shown = []
    for on in ((SOUND,), (SOUND, "net")):
        model_id = learn(three_sources, LearningSettings("genre", on, C=100.0), "x", Watcher())
        shown.append(load_report(three_sources.models.path(model_id)))
    one, both = shown
    assert both["sources"][0]["alone"] == pytest.approx(one["leads"]["auc"]["before"], abs=1e-6)
