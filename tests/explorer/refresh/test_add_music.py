"""Tests of filling a library: the map grows with it, and the counts are of the whole library."""

import os
from unittest import mock

import pytest

from musicsim import demo
from musicsim.explorer import job_progress
from musicsim.explorer.libraries import demo_folder
from musicsim.explorer.refresh import add_music as building
from musicsim.explorer.refresh.add_music import add_and_refresh
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.library.scan import forecast
from musicsim.progress import Canceled, no_progress
from tests.progress import Steps, cancel_when
from tests.sounds import write_collection, write_song


@pytest.fixture
def reports(monkeypatch):
    """Return an empty list for progress reports, and draw the first maps after four and nine files."""
    monkeypatch.setattr(building, "FIRST_MAP", 4)
    monkeypatch.setattr(building, "SECOND_MAP", 9)
    return []


@pytest.mark.long
def test_new_library_has_map_before_scan_ends(store, tmp_path, reports):
    folder = write_collection(tmp_path / "music", n_songs=6, seconds=1)
    (folder / "Artist clicks" / "00 broken.mp3").write_text("no music")
    (folder / "zz.mp3").touch()
    models = {}

    def progress(_message, done=0, total=0, /, **facts):
        reports.append({"done": done, "total": total} | facts)
        record = store.models.active()
        models[done] = record and record.n_songs_fitted

    assert not add_and_refresh(store, [folder], progress=progress).canceled
    last = [r for r in reports if "failed" in r][-1]
    assert (last["done"], last["total"], last["failed"]) == (20, 20, 2)
    done = [r["done"] for r in reports]
    assert done == sorted(done)
    assert models[5] == 3, "the first map is of the first four files, one of them broken"
    assert models[10] == 8, "the second map is of the first nine files"
    assert store.models.active().n_songs_fitted > 6
    assert len(take_snapshot(store).songs_at()) == 18
    assert store.files.roots() == [folder]


@pytest.mark.long
def test_cancel_between_maps_keeps_first_map(store, tmp_path, reports):
    folder = write_collection(tmp_path / "music", n_songs=6, seconds=1)
    assert add_and_refresh(store, [folder], progress=cancel_when(lambda _, done, total: done >= 6)).canceled
    assert len(take_snapshot(store).songs_at()) == 4
    assert not add_and_refresh(store, [folder], progress=no_progress).canceled
    assert len(take_snapshot(store).songs_at()) == 18


def test_every_folder_gets_early_maps(store, tiny_library, tmp_path, monkeypatch):
    scan = mock.Mock(todo=[mock.Mock(path=tmp_path / f"{n}.mp3") for n in range(130)])
    scan.report.n_unchanged = 0
    monkeypatch.setattr(building, "Scan", mock.Mock(return_value=scan))
    for library, sizes in ((store, [12, 48, 70, 0]), (tiny_library, [60, 70, 0])):
        scan.run.reset_mock()
        add_and_refresh(library, [tmp_path], progress=no_progress)
        assert [call.kwargs["n_files"] for call in scan.run.call_args_list] == sizes


def test_demo_gets_same_early_maps_as_folder(store, monkeypatch):
    add = mock.Mock()
    monkeypatch.setattr(building, "add_stream", add)
    with pytest.raises(Canceled):
        building.build_demo(store, progress=cancel_when(lambda message, *_: message.startswith("simulating")))
    assert [len(call.args[2]) for call in add.call_args_list] == [360, 348, 300, 240], "songs left before each map"


def test_time_left_of_demo_is_for_all_its_songs(store, monkeypatch):
    """Each song takes a second to compose; the first map is drawn after 12 of the 24 songs."""
    clock = mock.Mock(**{"monotonic.return_value": 100.0})
    monkeypatch.setattr(forecast, "time", clock)
    plans = demo.plan_collection()[:24]
    monkeypatch.setattr(demo, "plan_collection", lambda **_: plans)

    def compose(part, folder):
        for plan in part:
            clock.monotonic.return_value += 1.0
            yield write_song(folder / plan.relative_path, seed=len(plan.relative_path), seconds=1.0)

    monkeypatch.setattr(building, "_compose", compose)
    steps = Steps()

    def progress(message, done=0, total=0, /, **facts):
        steps(message, done, total, **facts)
        if done == 12 and facts.get("seconds_left") is None:  # the first map
            raise Canceled

    building.build_demo(store, progress=progress)
    left = {done: facts["seconds_left"] for _, done, _, facts in steps if facts.get("seconds_left") is not None}
    assert len(left) > 6
    # two songs may be composed that are not analyzed yet
    assert all(0.9 * (24 - done) <= seconds <= (24 - done) * (done + 3) / done for done, seconds in left.items())


def test_first_songs_of_demo_arrive_before_workers_start(store, monkeypatch):
    start = mock.Mock(side_effect=Canceled)
    monkeypatch.setattr(building, "ProcessPoolExecutor", start)
    monkeypatch.setattr(building, "bring_model_up", lambda *_: True)
    seen = []
    monkeypatch.setattr(building, "add_stream", lambda _library, files, *_, **__: seen.append(list(files)))
    with pytest.raises(Canceled):
        building.build_demo(store, progress=no_progress)
    plans = demo.plan_collection()[:12]
    assert seen == [[demo_folder(store.folder) / plan.relative_path for plan in plans]]


def test_demo_library_is_recognized_while_it_is_composed(store, monkeypatch):
    monkeypatch.setattr(building, "add_stream", mock.Mock(side_effect=Canceled))
    with pytest.raises(Canceled):
        building.build_demo(store, progress=no_progress)
    assert store.files.roots() == [demo_folder(store.folder)]


def test_bar_is_full_only_when_models_and_map_are_done(store, tmp_path, reports, monkeypatch):
    folder = write_collection(tmp_path / "music", n_songs=4, seconds=1)
    stored = []
    update = store.jobs.update

    def note(job_id, **values):
        update(job_id, **values)
        stored.append(store.jobs.get(job_id))

    monkeypatch.setattr(store.jobs, "update", note)
    monkeypatch.setattr(job_progress, "WRITE_EVERY_S", 0.0)
    with job_progress.track(store, store.jobs.create("add", {}, pid=os.getpid())) as progress:
        assert not add_and_refresh(store, [folder], progress=progress).canceled
    steps = [job for job in stored if job.state == "running"]
    shares = [job.share for job in steps]
    assert shares == sorted(shares)
    assert shares[-1] < 1
    analyzed = next(job for job in steps if job.done == job.total == 12)
    assert analyzed.share < 0.7, "the models and the map of all songs are still missing"
    drawing = [job for job in steps if job.message == "drawing the map" and job.done == 12]
    assert drawing
    assert all(job.songs_per_second is None for job in drawing), "no files are analyzed now"
    assert len({job.share for job in steps if job.done == 12}) > 5, "the bar moves with every step"
