"""Tests of the model store: models are replaced, deleted and succeeded safely."""

import shutil

import numpy as np
import pytest
import sqlalchemy as sa

from musicsim.errors import LibraryError, ModelError, NotFoundError
from musicsim.library.stores.models import ModelRecord


def enter(store, name, *, kind="learned", base_id=None, finish=True, created_at=1.0, **options):
    """Add a model of two columns with one row. By default, its name is also its id."""
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


def test_model_record_round_trips(store):
    enter(store, "one", kind="native", activate=True)
    (record,) = store.models.all()
    assert (record.kind, record.settings, record.base_id) == ("native", {"a": [1, "b"]}, None)
    assert store.models.active() == store.models.native() == store.models.find("one") == record
    assert record.is_active
    assert record.features_of == "one"


def test_model_of_same_name_replaces_active_one(store):
    enter(store, "native", kind="native", activate=True)
    enter(store, "mine", id="a", activate=True)
    enter(store, "mine", id="b")
    assert [record.id for record in store.models.all()] == ["native", "b"]
    assert store.models.active().id == "b"
    enter(store, "other", id="c")
    assert store.models.active().id == "b", "a new name changes nothing that is in use"


def test_replaced_model_stays_while_features_are_shared(store):
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


def test_unfinished_models_are_hidden_and_deleted(store):
    enter(store, "native", kind="native", activate=True)
    enter(store, "half", finish=False)
    assert names(store) == ["native"]
    with pytest.raises(NotFoundError, match="It has: 'native'"):
        store.models.find("half")
    store.models.discard_unfinished()
    assert not store.models.path("half").exists()


def test_features_come_from_base_model(store, tmp_path):
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
def test_rejects_invalid_names(store, name):
    enter(store, "native", kind="native", activate=True)
    enter(store, "mine")
    enter(store, "other")
    with pytest.raises(LibraryError, match="name"):
        store.models.rename("mine", name)
    assert names(store) == ["native", "mine", "other"]


def test_only_built_in_model_cannot_be_renamed(store):
    enter(store, "native", kind="native", activate=True)
    enter(store, "mine")
    store.models.rename("mine", "  road   trips ")
    assert names(store) == ["native", "road trips"]
    for change in (lambda: store.models.rename("native", "x"), lambda: store.models.delete("native")):
        with pytest.raises(LibraryError, match="built-in model"):
            change()


def test_models_are_cached_until_change(store):
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


def test_active_model_can_be_changed_and_deleted(store):
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


def test_deleting_model_leaves_unfinished_model(store):
    enter(store, "native", kind="native", activate=True)
    enter(store, "mine")
    enter(store, "half", finish=False, base_id="native")
    store.models.delete("mine")
    assert not store.models.path("mine").exists()
    assert store.models.path("half").exists()
    store.models.finish("half")
    assert names(store) == ["native", "half"]


def test_name_of_built_in_model_is_reserved(store):
    enter(store, "native", kind="native", activate=True)
    with pytest.raises(LibraryError, match="built-in model"):
        enter(store, "native", id="false")
    assert store.models.native().id == "native"


@pytest.mark.parametrize("damage", ["folder", "file", "cut off"])
def test_model_with_lost_files_gives_clear_error(tiny_library, damage):
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
        with pytest.raises(ModelError, match=f"files of the model {record.name!r} are missing or damaged"):
            read()
    assert models.song_rows(record.id) is known
    assert target.exists() == (damage == "cut off")
