"""Models replace, outlive and follow each other as their users need."""

import shutil

import numpy as np
import pytest
import sqlalchemy as sa

from musicsim.errors import LibraryError, ModelError, NotFoundError
from musicsim.library.stores.models import ModelRecord


def enter(store, name, *, kind="learned", base_id=None, finish=True, created_at=1.0, **options):
    """A model of two columns with one row, under the name as its id unless told otherwise."""
    record = ModelRecord(
        options.pop("id", name), name, created_at, 1, 3, 2, kind=kind, base_id=base_id, settings={"a": [1, "b"]}
    )
    store.models.register(record)
    store.models.path(record.id).mkdir(parents=True)
    if finish:
        store.models.finish(record.id, **options)
    return record.id


def names(store):
    return [record.name for record in store.models.all()]


def test_what_is_kept_of_a_model_comes_back(store):
    enter(store, "one", kind="native", activate=True)
    (record,) = store.models.all()
    assert (record.kind, record.settings, record.base_id) == ("native", {"a": [1, "b"]}, None)
    assert store.models.active() == store.models.native() == store.models.named("one") == record
    assert record.is_active
    assert record.features_of == "one"


def test_a_model_of_the_same_name_takes_the_place_of_the_old_one_in_use_too(store):
    enter(store, "native", kind="native", activate=True)
    enter(store, "mine", id="a", activate=True)
    enter(store, "mine", id="b")
    assert [record.id for record in store.models.all()] == ["native", "b"]
    assert store.models.active().id == "b"
    enter(store, "other", id="c")
    assert store.models.active().id == "b", "a new name changes nothing that is in use"


def test_a_replaced_model_stays_while_others_share_its_features(store):
    enter(store, "native", id="n1", kind="native", activate=True)
    enter(store, "mine", base_id="n1", activate=True)
    enter(store, "native", id="n2", kind="native")
    assert names(store) == ["mine", "native"]
    assert [r.id for r in store.models.all(retired=True) if r.is_retired] == ["n1"]
    assert store.models.active().name == "mine"
    assert store.models.native().id == "n2"
    store.models.discard_unfinished()
    assert store.models.path("n1").exists()
    store.models.delete("mine")
    assert not store.models.path("n1").exists()
    assert not store.models.path("mine").exists()
    assert store.models.active().id == "n2"


def test_unfinished_models_are_seen_by_nobody_and_swept(store):
    enter(store, "native", kind="native", activate=True)
    enter(store, "half", finish=False)
    assert names(store) == ["native"]
    with pytest.raises(NotFoundError, match="There are: 'native'"):
        store.models.named("half")
    store.models.discard_unfinished()
    assert not store.models.path("half").exists()


def test_features_are_those_of_the_model_that_owns_them(store, tmp_path):
    from tests.sounds import write_song

    store.add(write_song(tmp_path / "a.flac"))
    song_id = store.songs()[0].id
    enter(store, "native", kind="native", activate=True)
    features = np.array([[0.25, 0.25, 0.5]], dtype=np.float32)
    store.models.append("native", [song_id], features, np.ones((1, 2), np.float32))
    enter(store, "mine", base_id="native")
    store.models.append("mine", [song_id], None, np.zeros((1, 2), np.float32))
    np.testing.assert_array_equal(store.models.features("mine").X, features)
    np.testing.assert_array_equal(store.models.vectors("mine").X, [[0.0, 0.0]])


@pytest.mark.parametrize("name", ["", "  ", "x" * 61, "other"])
def test_names_that_cannot_be_are_refused(store, name):
    enter(store, "native", kind="native", activate=True)
    enter(store, "mine")
    enter(store, "other")
    with pytest.raises(LibraryError, match="name"):
        store.models.rename("mine", name)
    assert names(store) == ["native", "mine", "other"]


def test_renamed_and_the_native_model_cannot_be(store):
    enter(store, "native", kind="native", activate=True)
    enter(store, "mine")
    store.models.rename("mine", "  road   trips ")
    assert names(store) == ["native", "road trips"]
    for change in (lambda: store.models.rename("native", "x"), lambda: store.models.delete("native")):
        with pytest.raises(LibraryError, match="built-in model"):
            change()


def test_models_are_read_once_until_something_changes(store):
    enter(store, "native", kind="native", activate=True)
    asked = []
    sa.event.listen(store.engine, "before_cursor_execute", lambda *args: asked.append(args[2]))

    def times_read():
        asked.clear()
        found = names(store), store.models.active().name, store.models.native().name
        return sum("FROM models" in statement for statement in asked), found

    assert times_read()[0] <= 1
    assert times_read() == (0, (["native"], "native", "native"))
    enter(store, "mine", activate=True)
    assert times_read() == (1, (["native", "mine"], "mine", "native"))


def test_the_model_in_use_can_be_changed_and_deleted(store):
    enter(store, "native", kind="native", activate=True)
    enter(store, "mine")
    before = store.revision
    store.models.activate("mine")
    assert store.revision > before, "pages are drawn again"
    assert [r.name for r in store.models.all() if r.is_active] == ["mine"]
    store.models.delete("mine")
    assert store.models.active().name == "native"
    with pytest.raises(NotFoundError):
        store.models.activate("mine")


def test_deleting_leaves_a_model_that_is_being_made(store):
    enter(store, "native", kind="native", activate=True)
    enter(store, "mine")
    enter(store, "half", finish=False, base_id="native")
    store.models.delete("mine")
    assert not store.models.path("mine").exists()
    assert store.models.path("half").exists()
    store.models.finish("half")
    assert names(store) == ["native", "half"]


def test_the_native_name_is_for_the_native_model(store):
    enter(store, "native", kind="native", activate=True)
    with pytest.raises(LibraryError, match="built-in model"):
        enter(store, "native", id="false")
    assert store.models.native().id == "native"


@pytest.mark.parametrize("damage", ["folder", "file", "cut off"])
def test_a_model_whose_files_are_gone_is_told_apart_and_takes_no_rows(tiny_library, damage):
    models = tiny_library.models
    record, known = models.active(), models.song_rows(models.active().id)
    assert models.is_whole(record)
    target = models.path(record.id) / "vectors.f32"
    if damage == "cut off":
        target.write_bytes(target.read_bytes()[:-4])
    else:
        shutil.rmtree(models.path(record.id)) if damage == "folder" else target.unlink()
    assert not models.is_whole(record)
    new = np.ones((1, record.n_dimensions), np.float32)
    for read in (
        lambda: models.vectors(record.id),
        lambda: models.vector_file(record.id, known),
        lambda: models.append(record.id, [1], np.ones((1, record.n_features), np.float32), new),
    ):
        with pytest.raises(ModelError, match=f"files of the model {record.name!r} are gone or damaged"):
            read()
    assert models.song_rows(record.id) is known
    assert target.exists() == (damage == "cut off")
