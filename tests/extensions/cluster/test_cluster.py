"""A Dask cluster as a pool: a real scheduler and workers on the loopback, killed, stopped and started again."""

import signal
import time
from contextlib import closing

import numpy as np
import pytest
import sqlalchemy as sa

from musicsim.errors import LibraryError
from musicsim.extensions.cluster.address import check_address
from musicsim.extensions.cluster.pool import open_cluster
from musicsim.library.db import schema
from musicsim.library.processes.workers import Limits, OverTimeError, WorkerDied
from tests.extensions.cluster.cluster_tasks import kill_the_worker_of_dask, nap
from tests.library.test_workers import double, misbehave
from tests.progress import cancel_when
from tests.sounds import open_library, write_collection

pytest.importorskip("distributed")

from benchmarks._dask import DaskProcesses
from musicsim.extensions.cluster import pool as cluster
from musicsim.extensions.cluster.pool import ClusterPool

LIMITS = Limits(seconds=60.0, memory_mb=1024)


@pytest.fixture(scope="module")
def dask(tmp_path_factory):
    with DaskProcesses(tmp_path_factory.mktemp("dask")) as processes:
        yield processes


@pytest.fixture
def own_dask(tmp_path):
    with DaskProcesses(tmp_path) as processes:
        yield processes


def results(pool, function, tasks, limits=LIMITS, then=None):
    """All results; `then` is called after the first tenth of them."""
    found = []
    with closing(pool.outcomes(function, tasks, limits=limits)) as items:
        for item in items:
            if item is not None:
                found.append(item)
                if then is not None and len(found) == 10:
                    then()
    return found


@pytest.mark.parametrize("address", ["tcp://10.0.0.5:8786", "tls://head:8786/", " local:4 "])
def test_addresses_of_clusters_are_taken(address):
    assert check_address(address) == address.strip()


@pytest.mark.parametrize("address", ["10.0.0.5", "local:0", "local", "http://10.0.0.5", "tcp://host"])
def test_what_is_no_address_is_refused_in_words(store, address):
    with pytest.raises(ValueError, match="address of a Dask scheduler"):
        store.set_setting("cluster", address)
    with pytest.raises(LibraryError, match="address of a Dask scheduler"), open_cluster(address):
        pass


@pytest.mark.slow
def test_nobody_at_an_address_is_said_in_words(monkeypatch):
    monkeypatch.setattr(cluster, "_CONNECT_S", 0.5)
    with pytest.raises(LibraryError, match="no Dask scheduler answers"), open_cluster("tcp://127.0.0.1:9"):
        pass


@pytest.mark.slow
def test_every_task_has_its_result_once(dask):
    with ClusterPool(dask.address) as pool:
        assert sorted(results(pool, double, range(500))) == [(n, 2 * n) for n in range(500)]


@pytest.mark.slow
def test_tasks_are_taken_only_when_there_is_room(dask):
    taken = []

    def tasks():
        for n in range(1_000_000):
            taken.append(n)
            yield n

    with ClusterPool(dask.address) as pool, closing(pool.outcomes(nap, tasks(), limits=LIMITS)) as items:
        n_done = 0
        for item in items:
            n_done += item is not None
            assert len(taken) <= n_done + 5 * cluster._MAX_BATCH  # 2 workers, 2 batches each, 1 being read
            if n_done == 200:
                break


@pytest.mark.slow
def test_a_task_that_crashes_hangs_or_swells_costs_itself_only(dask):
    tasks = ["a", "crash", "b", "killed", "hang", "swell", "raise", "c", "d"]
    with ClusterPool(dask.address) as pool:
        found = dict(results(pool, misbehave, tasks, Limits(seconds=3.0, memory_mb=2048)))
    assert {n: found[n] for n in "abcd"} == {n: n for n in "abcd"}
    assert found["crash"].is_crash
    assert not found["killed"].is_crash
    kinds = {name: type(found[name]) for name in ("hang", "swell", "raise")}
    assert kinds == {"hang": OverTimeError, "swell": MemoryError, "raise": ValueError}


@pytest.mark.slow
def test_workers_of_another_version_are_refused_in_words(dask, monkeypatch):
    monkeypatch.setattr(cluster, "__version__", "0.0.1")
    with ClusterPool(dask.address) as pool, pytest.raises(LibraryError, match=r"same version.*0\.0\.1"):
        results(pool, double, [1])


@pytest.mark.slow
def test_a_worker_that_is_killed_costs_nothing(own_dask):
    def kill():
        own_dask.workers[0].kill()  # the nanny, whose worker ends with it

    with ClusterPool(own_dask.address) as pool:
        assert sorted(results(pool, nap, range(60), then=kill)) == [(n, n) for n in range(60)]


@pytest.mark.slow
def test_a_scheduler_that_was_started_again_costs_nothing(own_dask):
    with ClusterPool(own_dask.address) as pool:
        found = results(pool, nap, range(60), then=own_dask.restart_scheduler)
    assert sorted(found) == [(n, n) for n in range(60)]


@pytest.mark.slow
def test_a_worker_that_hangs_costs_nothing(tmp_path):
    with DaskProcesses(tmp_path, nanny=False) as dask, ClusterPool(dask.address) as pool:
        found = results(pool, nap, range(60), then=lambda: dask.workers[0].send_signal(signal.SIGSTOP))
        dask.workers[0].kill()
    assert sorted(found) == [(n, n) for n in range(60)]


@pytest.mark.slow
def test_a_task_that_kills_its_worker_twice_is_a_failure_and_the_rest_goes_on():
    with open_cluster("local:2") as pool:
        found = dict(results(pool, kill_the_worker_of_dask, range(40)))
    killed = found.pop(13)
    assert isinstance(killed, WorkerDied)
    assert found == {n: n for n in range(40) if n != 13}


def what_is_kept(library):
    """Rows of songs without ids and times, and the bytes of frames and aspects by their hash."""
    columns = [c for c in schema.songs.c if c.name not in ("id", "added_at")]
    with library.engine.connect() as connection:
        rows = {row.content_hash: repr(row) for row in connection.execute(sa.select(*columns))}
    files = {path.name: path.read_bytes() for path in library.frame_files.folder.glob("??/*")}
    return rows, files


@pytest.mark.slow
def test_a_cluster_makes_the_very_library_that_one_machine_makes(dask, tmp_path):
    music = write_collection(tmp_path / "music", n_songs=3)
    (music / "broken.mp3").write_text("no music")
    with open_library(tmp_path / "here") as here, open_library(tmp_path / "there") as there:
        local = here.add(music)
        with ClusterPool(dask.address) as there.pool:
            away = there.add(music)
            again = there.add(music)
        assert (away.n_added, away.words) == (9, local.words)
        assert again.n_unchanged == again.n_found == 10
        assert what_is_kept(there) == what_is_kept(here)
        assert [f.reason for f in there.files.failures()] == [f.reason for f in here.files.failures()]
        song = there.songs()[0]
        assert np.isfinite(there.frames(song)).all()


@pytest.mark.slow
def test_a_scan_on_a_cluster_can_pause_stop_and_go_on(dask, tmp_path):
    music = write_collection(tmp_path / "music", n_songs=4)
    steps = []

    def pause_then_stop(_message, done, total):
        steps.append(total)
        time.sleep(0.2)
        return done >= 4

    with open_library(tmp_path / "library") as library, ClusterPool(dask.address) as library.pool:
        first = library.add(music, progress=cancel_when(pause_then_stop))
        assert first.cancelled
        assert first.n_added == 4
        second = library.add(music)
        assert (second.n_added, second.n_unchanged) == (8, 4)
    assert steps[-1] == 12
