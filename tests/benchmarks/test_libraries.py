"""Libraries to measure on: the demo is made once, and drawn songs are complete."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks import libraries
from benchmarks.large_library import write_library
from benchmarks.million import measure
from musicsim.explorer.refresh.outdated import pending_upgrade
from musicsim.explorer.refresh.refresh import needs_fit
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.library import Library
from tests.waiting import until

# --- libraries -------------------------------------------------------------------------------------------


def test_concurrent_experiments_create_demo_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened, composed = [], []

    def open_library(folder: Path) -> Library:
        opened.append(folder)
        return Library.open(folder)

    def compose(library: Library, **_: Any) -> None:
        composed.append(library.folder)
        until(lambda: len(opened) == 3)
        library.add_playlists([("a list", None, [])], source="test")

    monkeypatch.setattr(libraries, "DATA_FOLDER", tmp_path)
    monkeypatch.setattr(libraries, "build_demo", compose)
    monkeypatch.setattr(libraries, "Library", SimpleNamespace(open=open_library))
    with ThreadPoolExecutor(3) as pool:
        for library in pool.map(lambda _: libraries.demo_library(0, lambda _: None), range(3)):
            assert library.playlists()
            library.close()
    assert composed == [tmp_path / "demo-0"]


# --- million ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    with write_library(tmp_path_factory.mktemp("drawn") / "library", 1200) as library:
        yield library


def test_generated_library_is_complete(drawn):
    snapshot = take_snapshot(drawn)
    assert snapshot.n_songs == snapshot.n_indexed == 1200
    assert np.isfinite(snapshot.map).all()
    assert all((labels >= 0).all() for labels in snapshot.clusters.values())
    assert snapshot.clusters
    assert drawn.is_refreshed
    assert not needs_fit(drawn, drawn.models.native(), 1200)
    assert pending_upgrade(drawn) is None
    assert drawn.duplicates.not_compared() == set()


def test_vectors_match_model_of_features(drawn):
    snapshot = take_snapshot(drawn)
    features = drawn.models.features()
    assert features.song_ids.tolist() == snapshot.row_ids.tolist()
    np.testing.assert_allclose(features.X.sum(axis=1), 1.0, rtol=1e-5)  # float32 sums of 100 shares
    np.testing.assert_allclose(snapshot.model.vectors(features.X), snapshot.X, atol=1e-6)
    assert snapshot.X.shape == (1200, 100)


def test_artists_and_genres_are_realistic(drawn):
    snapshot = take_snapshot(drawn)
    counts = np.bincount(snapshot.columns.artist.codes + 1)[1:]
    assert counts.max() > 2 * np.median(counts)
    genre = snapshot.columns.genre.codes
    _, near = snapshot.index.query(snapshot.X, 2)
    known = (genre >= 0) & (genre[near[:, 1]] >= 0)
    alike = np.mean(genre[known] == genre[near[known, 1]])
    by_chance = np.sum((np.bincount(genre[known]) / known.sum()) ** 2)
    assert alike > by_chance + 0.3


def test_same_seed_gives_same_library(drawn, tmp_path):
    one = take_snapshot(drawn)
    with write_library(tmp_path / "again", 1200) as library, write_library(tmp_path / "b", 1200, random_state=1) as b:
        again, other = take_snapshot(library), take_snapshot(b)
        for name in ("X", "row_ids", "map"):
            np.testing.assert_array_equal(getattr(again, name), getattr(one, name))
            assert not np.array_equal(getattr(other, name), getattr(one, name))
        rows = np.arange(1200)
        assert again.names_at(rows) == one.names_at(rows)


@pytest.mark.parametrize("n_songs", [1, 2, 30])
def test_small_library_is_complete(tmp_path, n_songs):
    with write_library(tmp_path / "library", n_songs) as library:
        snapshot = take_snapshot(library)
        assert snapshot.n_indexed == n_songs
        assert np.isfinite(snapshot.map).all()


def test_measurement_leaves_songs_unchanged(tmp_path):
    pytest.importorskip("psutil")
    with write_library(tmp_path / "library", 300) as library:
        before = library.songs()
    steps = measure(tmp_path / "library")
    assert all(step["s"] >= 0 and step["MB"] > 0 for step in steps)
    with Library.open(tmp_path / "library") as library:
        assert library.songs() == before
