"""Filling a library: the map grows with it, and the figures are of the whole."""

import pytest

from musicsim.explorer.refresh import add_music as building
from musicsim.explorer.refresh.add_music import add_and_refresh
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.progress import no_progress
from tests.progress import cancel_when
from tests.sounds import write_collection


@pytest.fixture
def reports(monkeypatch):
    """What was reported, with a first map after four files."""
    monkeypatch.setattr(building, "_FIRST_MAP", 4)
    return []


def test_a_new_library_has_a_map_before_the_scan_has_ended(store, tmp_path, reports):
    folder = write_collection(tmp_path / "music", n_songs=6, seconds=1)
    (folder / "Artist clicks" / "00 broken.mp3").write_text("no music")
    (folder / "zz.mp3").touch()
    models = {}

    def progress(_message, done=0, total=0, /, **facts):
        reports.append({"done": done, "total": total} | facts)
        record = store.models.active()
        models[done] = record and record.n_songs_fitted

    assert not add_and_refresh(store, [folder], progress=progress).cancelled
    last = [r for r in reports if "failed" in r][-1]
    assert (last["done"], last["total"], last["failed"]) == (20, 20, 2)
    done = [r["done"] for r in reports]
    assert done == sorted(done)
    assert models[5] == 3, "the first map is of the first four files, one of them broken"
    assert store.models.active().n_songs_fitted > 6
    assert len(take_snapshot(store).songs_at()) == 18
    assert store.files.roots() == [folder]


def test_a_cancel_between_two_maps_keeps_the_first(store, tmp_path, reports):
    folder = write_collection(tmp_path / "music", n_songs=6, seconds=1)
    assert add_and_refresh(store, [folder], progress=cancel_when(lambda _, done, total: done >= 6)).cancelled
    assert len(take_snapshot(store).songs_at()) == 4
    assert not add_and_refresh(store, [folder], progress=no_progress).cancelled
    assert len(take_snapshot(store).songs_at()) == 18
