"""Tests of additional models: other representations, updates, and transfer to other libraries."""

import json
import zipfile

import numpy as np
import pytest

from musicsim.errors import FeatureVersionError, ModelError
from musicsim.explorer.models import representations as registry
from musicsim.explorer.models.files import save_model_file
from musicsim.explorer.models.similarity_model import SimilarityModel
from musicsim.explorer.refresh.fitting import CODEWORDS_NAME, NATIVE, RepresentationSettings, free_name
from musicsim.explorer.refresh.learned_model import learn
from musicsim.explorer.refresh.model_catalogue import add_representation, import_model_file, stale_models, stale_reason
from musicsim.explorer.refresh.model_text import facts, kind_words
from musicsim.explorer.refresh.refresh import refresh
from musicsim.explorer.requests.training import LearningSettings
from musicsim.explorer.search.query import find_similar, read_example
from musicsim.explorer.snapshot.snapshot import take_snapshot
from tests.learning import CORE_REPRESENTATIONS, Watcher, hush, tag_by_kind
from tests.progress import cancel_when
from tests.sounds import stored_files, write_song


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(CORE_REPRESENTATIONS))
def test_each_representation_finds_similar_sound(twelve, name, tmp_path):
    tag_by_kind(twelve)
    settings = RepresentationSettings(name, n_codewords=32, tau=2)
    model_id = add_representation(twelve, settings, "other", hush)
    seen = take_snapshot(twelve, model_id)
    assert len(seen.songs_at()) == 24
    assert np.isfinite(seen.map).all()
    for song in seen.library.songs():
        (first, *_) = find_similar(seen, song.id, 1)
        # each song has a melody of its own, and noise does not have harmony
        assert first.song.genre == song.genre or name == "harmony"
        assert 0.0 <= first.similarity <= 1.0
    # the stored model reproduces the stored vectors, so nothing was lost
    again = seen.model.vectors(twelve.models.features(model_id).X)
    np.testing.assert_array_equal(again, twelve.vectors(model_id).X)
    outside = write_song(tmp_path / "new.flac", "noise", seed=99).read_bytes()
    if name in ("tags", "harmony", "rhythm"):
        with pytest.raises(ModelError, match="not available for uploaded sound"):
            read_example(seen, outside, "new.flac")
    else:
        (first, *_) = find_similar(seen, read_example(seen, outside, "new.flac"), 1)
        assert first.song.genre == "noise"


def test_native_size_codewords_are_shared(twelve):
    native = twelve.models.codewords()
    model = take_snapshot(twelve, native.id).model
    settings = RepresentationSettings("tfidf", n_codewords=model.n_codewords, tau=model.tau)
    record = twelve.models.get(add_representation(twelve, settings, "rare", hush))
    assert record.base_id == native.id
    assert not (twelve.models.path(record.id) / "histograms.f32").exists()
    np.testing.assert_array_equal(twelve.models.features(record.id).X, twelve.models.features(native.id).X)


def test_tfidf_vectors_give_cosine(twelve):
    from musicsim.kernels import tfidf_cosine_kernel

    model = take_snapshot(twelve).model
    settings = RepresentationSettings("tfidf", n_codewords=model.n_codewords, tau=model.tau)
    rows = twelve.vectors(add_representation(twelve, settings, "rare", hush))
    truth = tfidf_cosine_kernel(twelve.models.features(rows.model_id).X)
    squared = ((rows.X[:, None] - rows.X[None]) ** 2).sum(axis=2)
    # unit vectors: 1 - d^2 / 2, up to float32
    np.testing.assert_allclose(1 - squared / 2, truth, atol=1e-5)


@pytest.mark.long
def test_new_songs_are_placed_in_every_model(twelve, tmp_path):
    tag_by_kind(twelve)
    learned = learn(twelve, LearningSettings(supervision="genre", C=1e3), "mine", Watcher())
    words = add_representation(twelve, RepresentationSettings("gmm"), "gmm", hush)
    tags = add_representation(twelve, RepresentationSettings("tags"), "tags", hush)
    before = {record.id: record.n_songs_fitted for record in twelve.models.all()}
    twelve.add(write_song(tmp_path / "new.flac", "clicks", seed=77, title="new", artist="Nobody"))
    assert refresh(twelve)
    assert {record.id: record.n_songs_fitted for record in twelve.models.all()} == before
    new = next(song for song in twelve.songs() if song.title == "new")
    for model_id in (learned, words):
        seen = take_snapshot(twelve, model_id)
        assert np.isfinite(seen.map[seen.rows_of([new.id])[0]]).all()
        assert find_similar(seen, new.id, 1)[0].song.genre == "clicks"
    assert take_snapshot(twelve, tags).rows_of([new.id])[0] == -1, "nobody has tagged it"


@pytest.mark.long
def test_stale_learned_model_is_retrained(twelve):
    learned = learn(twelve, LearningSettings(supervision="genre", C=1e3), "mine", Watcher())
    twelve.models.activate(learned)
    assert stale_reason(twelve, twelve.models.get(learned)) is None
    old_native = twelve.models.native().id

    stop_before_learning = cancel_when(lambda message, *_: "refitting" in message)
    assert not refresh(twelve, force=True, progress=stop_before_learning)
    record = twelve.models.get(learned)
    assert "has been replaced" in stale_reason(twelve, record)
    assert stale_models(twelve) == [record]
    assert twelve.models.get(old_native).is_retired
    assert len(take_snapshot(twelve, learned).songs_at()) == 24, "stale, and still of use"
    assert refresh(twelve)
    (mine,) = [r for r in twelve.models.all() if r.name == "mine"]
    assert mine.id != learned
    assert mine.is_active
    assert mine.base_id == twelve.models.native().id != old_native
    assert not twelve.models.path(old_native).exists()
    assert stale_models(twelve) == []


@pytest.mark.long
def test_unlearnable_model_stays_unchanged(twelve):
    learned = learn(twelve, LearningSettings(supervision="genre", C=1e3), "mine", Watcher())
    with twelve.write() as connection:
        connection.exec_driver_sql("UPDATE songs SET genre = NULL")
    assert refresh(twelve, force=True)
    assert twelve.models.get(learned).is_complete
    assert len(take_snapshot(twelve, learned).songs_at()) == 24


@pytest.mark.long
def test_model_round_trips_through_one_file(twelve, tiny_library, tmp_path):
    learned = learn(twelve, LearningSettings(supervision="genre", C=1e3), "mine", Watcher())
    target = tmp_path / "mine.musicsim"
    save_model_file(twelve, learned, target)
    taken = import_model_file(tiny_library, target, hush)
    record = tiny_library.models.get(taken)
    assert (record.name, record.base_id) == ("mine", None)
    seen = take_snapshot(tiny_library, taken)
    assert len(seen.songs_at()) == 12
    # the same model gives the same sound the same vector in both libraries
    theirs = take_snapshot(twelve, learned)
    sound = write_song(tmp_path / "x.flac", "tones", seed=5).read_bytes()
    np.testing.assert_array_equal(read_example(seen, sound, "x").vector, read_example(theirs, sound, "x").vector)
    report = json.loads(zipfile.ZipFile(target).read("report.json"))
    assert report["changed"] == [], "which songs somebody has is not told"
    assert import_model_file(tiny_library, target, hush) != taken
    assert [r.name for r in tiny_library.models.all()] == [NATIVE, CODEWORDS_NAME, "mine", "mine 2"]


@pytest.mark.long
def test_metric_trains_on_imported_model(twelve, tmp_path):
    learned = learn(twelve, LearningSettings(supervision="genre", C=1e3), "mine", Watcher())
    save_model_file(twelve, learned, tmp_path / "mine.musicsim")
    taken = import_model_file(twelve, tmp_path / "mine.musicsim", hush)
    name = twelve.models.get(taken).name
    again = learn(twelve, LearningSettings(supervision="genre", C=1e3, on=name), "further", Watcher())
    record = twelve.models.get(again)
    assert record.base_id == taken
    model = take_snapshot(twelve, again).model
    # linear in the vectors it was learned on, so it contains both metrics
    X, Y = twelve.vectors(taken).X, twelve.vectors(again).X
    map_, *_ = np.linalg.lstsq(X - X.mean(0), Y - Y.mean(0), rcond=None)
    np.testing.assert_allclose((X - X.mean(0)) @ map_, Y - Y.mean(0), atol=1e-4)  # float32 vectors
    assert model.n_dimensions == len(model.metric_)
    with pytest.raises(ModelError, match="is itself a learned model"):
        learn(twelve, LearningSettings(supervision="genre", on="mine"), "x", Watcher())


def _broken(kind, good, folder):
    target = folder / "broken.musicsim"
    if kind == "no zip":
        target.write_bytes(b"hello")
        return target
    parts = {name: zipfile.ZipFile(good).read(name) for name in zipfile.ZipFile(good).namelist()}
    if kind == "a part missing":
        del parts["model.npz"]
    if kind == "a path that leads out":
        parts["../evil"] = b"x"
    if kind == "arrays cut off":
        parts["model.npz"] = parts["model.npz"][:500]
    if kind == "no description":
        parts["about.json"] = b"[1]"
    if kind == "another version":
        parts["model.json"] = parts["model.json"].replace(b'"feature_version": ', b'"feature_version": 9')
    if kind == "arrays that do not fit":
        np.savez(folder / "odd.npz", **(dict(np.load(_written(folder, parts["model.npz"]))) | {"mean": np.zeros(3)}))
        parts["model.npz"] = (folder / "odd.npz").read_bytes()
    if kind == "pickled arrays":
        np.savez(folder / "odd.npz", mean=np.array([{"a": 1}], dtype=object))
        parts["model.npz"] = (folder / "odd.npz").read_bytes()
    with zipfile.ZipFile(target, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return target


def _written(folder, data):
    (folder / "whole.npz").write_bytes(data)
    return folder / "whole.npz"


@pytest.mark.parametrize(
    "kind",
    [
        "no zip", "a part missing", "a path that leads out", "arrays cut off", "no description", "another version",
        "arrays that do not fit", "pickled arrays",
    ],
)  # fmt: skip
def test_invalid_model_file_leaves_nothing(tiny_library, tmp_path, kind):
    good = tmp_path / "good.musicsim"
    save_model_file(tiny_library, tiny_library.models.native().id, good)
    before = stored_files(tiny_library)
    with pytest.raises((ModelError, FeatureVersionError)):
        import_model_file(tiny_library, _broken(kind, good, tmp_path), hush)
    assert stored_files(tiny_library) == before
    assert not (tmp_path / "evil").exists()


def test_free_name_is_clean_and_unique(tiny_library):
    assert free_name(tiny_library, "  my   taste ") == "my taste"
    assert free_name(tiny_library, NATIVE) == f"{NATIVE} 2"
    assert free_name(tiny_library, "") == "my model"
    assert len(free_name(tiny_library, "x" * 300)) <= 60


def test_representation_requires_stored_frames(twelve):
    twelve.set_setting("keep_frames", False)
    refresh(twelve)
    with pytest.raises(FeatureVersionError, match="24 of 24 songs were not stored"):
        add_representation(twelve, RepresentationSettings("gmm"), "x", hush)


def test_missing_tags_error_suggests_import(twelve):
    for name in ("tags", "semantic"):
        with pytest.raises(ModelError, match="import tags"):
            add_representation(twelve, RepresentationSettings(name), "x", hush)
    assert [r.name for r in twelve.models.all()] == [NATIVE, CODEWORDS_NAME]


@pytest.fixture
def uninstall():
    """Remove a representation, as if the extension that adds it were deleted."""
    missing = {}

    def take(name):
        missing[name] = registry.CORE.pop(name)
        registry.representations.cache_clear()

    yield take
    registry.CORE.update(missing)
    registry.representations.cache_clear()


@pytest.mark.long
def test_model_of_missing_extension_is_rejected(twelve, uninstall, tmp_path):
    lost = add_representation(twelve, RepresentationSettings("rhythm"), "beats", hush)
    joint = learn(twelve, LearningSettings("genre", ("Sound", "beats"), C=100.0), "both", Watcher())
    sent = tmp_path / "beats.musicsim"
    save_model_file(twelve, lost, sent)
    twelve.models.activate(lost)
    uninstall("rhythm")
    for model_id in (lost, joint):
        with pytest.raises(
            ModelError, match=r"'rhythm' of this model is not installed: install the extension"
        ) as refusal:
            SimilarityModel.load(twelve.models.path(model_id))
        assert "\n" not in str(refusal.value)
    with pytest.raises(ModelError, match="install the extension"):
        import_model_file(twelve, sent, hush)
    assert "rhythm, which is not installed" in kind_words(twelve.models.get(lost))
    assert facts(twelve, twelve.models.get(lost), {})
    twelve.add(write_song(tmp_path / "new.flac", "clicks", seed=77, title="new", artist="Nobody"))
    assert refresh(twelve)
    assert refresh(twelve), "also without new songs"
    seen = take_snapshot(twelve, twelve.models.native().id)
    assert len(seen.songs_at()) == 25
    assert find_similar(seen, seen.songs_at([0])[0].id, 1)
    twelve.models.delete(lost)
    assert twelve.models.active().id == twelve.models.native().id
