"""Tests that new songs get clusters and map positions while the others keep theirs."""

import shutil

import numpy as np
import pytest
from sklearn.neighbors import NearestCentroid

from benchmarks.large_library import write_library
from musicsim.explorer.models.artifacts import load_clusters, load_map, save_clusters, save_map
from musicsim.explorer.refresh import placing
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.library import Library
from musicsim.progress import Canceled, no_progress

N = 120


@pytest.fixture(scope="module")
def drawn_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("drawn") / "library"
    write_library(folder, N).close()
    return folder


@pytest.fixture
def drawn(drawn_folder, tmp_path):
    """Open a copy that the test may change."""
    shutil.copytree(drawn_folder, tmp_path / "library")
    with Library.open(tmp_path / "library") as library:
        yield library


class Drawn:
    """The model of a drawn library, and the files stored with it."""

    def __init__(self, library: Library) -> None:
        self.library, self.record = library, library.models.get()
        self.folder = library.models.path(self.record.id)
        rows = library.vectors()
        self.ids, self.X = rows.song_ids, rows.X
        self.labels = (self.X[:, 0] > np.median(self.X[:, 0])).astype(np.int64)
        self.places = np.random.default_rng(1).normal(size=(len(self.ids), 2)).astype(np.float32)

    def keep_clusters(self, rows) -> None:
        save_clusters(self.folder, self.ids[rows], {"2": self.labels[rows]})

    def keep_map(self, rows) -> None:
        save_map(self.folder, self.ids[rows], self.places[rows])

    def place_new(self, progress=no_progress) -> None:
        placing.update_clusters_and_map(self.library, self.record, progress)

    def kept(self):
        """Return the stored labels by song and the stored positions by song."""
        (grouped, labels), (mapped, places) = load_clusters(self.folder), load_map(self.folder)
        return (
            dict(zip(grouped.tolist(), labels["2"].tolist(), strict=True)),
            dict(zip(mapped.tolist(), places.tolist(), strict=True)),
        )

    def as_kept(self, rows):
        return (
            dict(zip(self.ids[rows].tolist(), self.labels[rows].tolist(), strict=True)),
            dict(zip(self.ids[rows].tolist(), self.places[rows].tolist(), strict=True)),
        )


@pytest.fixture
def model(drawn):
    return Drawn(drawn)


def nearest_group(model: Drawn, rows: np.ndarray, row: int) -> int:
    """Return the group with the nearest mean, from the definition."""
    means = [model.X[rows[model.labels[rows] == k]].mean(axis=0) for k in (0, 1)]
    return int(np.argmin([np.linalg.norm(model.X[row] - mean) for mean in means]))


ALL = np.arange(N)


@pytest.mark.parametrize(
    ("with_label", "with_place"),
    [
        (ALL[:110], ALL[:110]),
        (ALL, ALL[:110]),  # killed between writing the two files
        (ALL[:110], ALL),
        (ALL[8:], ALL[:112]),
        (ALL[:110][::-1], ALL[:110]),  # the same number of songs in another order
        (ALL[::-1], ALL[:110]),
    ],
)
def test_known_songs_keep_clusters_and_places(model, with_label, with_place):
    model.keep_clusters(with_label)
    model.keep_map(with_place)
    model.place_new()
    labels, places = model.kept()
    assert labels.keys() == places.keys() == set(model.ids.tolist())
    known_labels, known_places = model.as_kept(with_label)[0], model.as_kept(with_place)[1]
    assert {i: labels[i] for i in known_labels} == known_labels
    assert {i: places[i] for i in known_places} == known_places
    assert np.isfinite(list(places.values())).all()
    for row in np.setdiff1d(ALL, with_label):
        assert labels[int(model.ids[row])] == nearest_group(model, np.sort(with_label), row)


def test_new_songs_match_scikit_learn_clusters(model):
    model.labels = model.labels + 5 * (model.X[:, 1] > np.median(model.X[:, 1]))  # 0, 1, 5, 6
    rows = np.sort(np.random.default_rng(2).permutation(N)[:105])
    model.keep_clusters(rows)
    model.keep_map(ALL)
    model.place_new()
    labels = model.kept()[0]
    new = np.setdiff1d(ALL, rows)
    judge = NearestCentroid().fit(model.X[rows], model.labels[rows]).predict(model.X[new])
    assert [labels[i] for i in model.ids[new].tolist()] == judge.tolist()


def test_files_unchanged_when_all_songs_are_placed(model):
    model.keep_clusters(ALL[::-1])
    model.keep_map(ALL)
    before = [(model.folder / name).stat().st_mtime_ns for name in ("clusters.npz", "map.npz")]
    told = []
    model.place_new(told.append)
    assert [(model.folder / name).stat().st_mtime_ns for name in ("clusters.npz", "map.npz")] == before
    assert not told


def test_failed_placing_changes_nothing_and_can_be_repeated(model, monkeypatch):
    model.keep_clusters(ALL[:110])
    model.keep_map(ALL[:110])

    def killed(*_):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(placing.MapPlacer, "place", killed)
        with pytest.raises(MemoryError):
            model.place_new()
    assert model.kept() == model.as_kept(ALL[:110])
    model.place_new()
    assert model.kept()[1].keys() == set(model.ids.tolist())


def test_canceled_map_keeps_clusters_unchanged(model):
    model.keep_clusters(ALL[:90])
    model.keep_map(ALL[:90])

    def cancelled(text, *_):
        if text == "drawing the map":
            raise Canceled

    with pytest.raises(Canceled):
        model.place_new(cancelled)
    assert model.kept() == model.as_kept(ALL[:90])


@pytest.mark.long
@pytest.mark.parametrize("damage", [lambda old: old[: len(old) // 2], lambda old: b"", lambda old: b"PK\3\4"])
@pytest.mark.parametrize("name", ["map.npz", "clusters.npz"])
def test_damaged_file_is_ignored_and_rebuilt(model, name, damage, caplog):
    model.keep_clusters(ALL)
    model.keep_map(ALL)
    file = model.folder / name
    file.write_bytes(damage(file.read_bytes()))
    seen = take_snapshot(model.library)
    if name == "map.npz":
        assert np.isnan(seen.map).all()
    else:
        assert seen.clusters == {}
        np.testing.assert_array_equal(seen.map, model.places)
    assert str(file) in caplog.text
    model.place_new()
    seen = take_snapshot(model.library)
    assert np.isfinite(seen.map).all()
    assert seen.clusters
    assert all((labels >= 0).all() for labels in seen.clusters.values())
    if name == "clusters.npz":  # the map was not involved
        np.testing.assert_array_equal(seen.map, model.places)


@pytest.mark.long
@pytest.mark.parametrize("name", ["map.npz", "clusters.npz"])
def test_single_bit_flips_do_not_break_loading(model, name, rng):
    model.keep_clusters(ALL[:5])
    model.keep_map(ALL[:5])
    file = model.folder / name
    whole = file.read_bytes()
    for at in range(len(whole)):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << rng.integers(8)
        file.write_bytes(damaged)
        load_map(model.folder)
        load_clusters(model.folder)
