"""Tests of a Dask cluster as a pool: a real scheduler and workers on the loopback, killed and restarted."""

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
from tests.waiting import PATIENCE_S

pytest.importorskip("distributed")

from distributed import Client

from benchmarks.support.dask_processes import DaskProcesses
from musicsim.extensions.cluster import pool as cluster
from musicsim.extensions.cluster.pool import ClusterPool

LIMITS = Limits(seconds=PATIENCE_S, memory_mb=1024)


@pytest.fixture(scope="module")
def dask(tmp_path_factory):
    with DaskProcesses(tmp_path_factory.mktemp("dask")) as processes:
        yield processes


@pytest.fixture
def own_dask(tmp_path):
    with DaskProcesses(tmp_path) as processes:
        yield processes


def results(pool, function, tasks, limits=LIMITS, then=None):
    """Return all results, and call `then` after the first tenth of them."""
    found = []
    with closing(pool.outcomes(function, tasks, limits=limits)) as items:
        for item in items:
            if item is not None:
                found.append(item)
                if then is not None and len(found) == 10:
                    then()
    return found


@pytest.mark.parametrize("address", ["tcp://10.0.0.5:8786", "tls://head:8786/", " local:4 "])
def test_accepts_cluster_addresses(address):
    assert check_address(address) == address.strip()


@pytest.mark.parametrize("address", ["10.0.0.5", "local:0", "local", "http://10.0.0.5", "tcp://host"])
def test_rejects_invalid_addresses(store, address):
    with pytest.raises(ValueError, match="address of a Dask scheduler"):
        store.set_setting("cluster", address)
    with pytest.raises(LibraryError, match="address of a Dask scheduler"), open_cluster(address):
        pass


@pytest.mark.long
def test_unreachable_scheduler_gives_clear_error(monkeypatch):
    monkeypatch.setattr(cluster, "CONNECT_S", 0.5)
    with pytest.raises(LibraryError, match="no Dask scheduler responds"), open_cluster("tcp://127.0.0.1:9"):
        pass


@pytest.mark.long
def test_every_task_returns_one_result(dask):
    with ClusterPool(dask.address) as pool:
        assert sorted(results(pool, double, range(500))) == [(n, 2 * n) for n in range(500)]


@pytest.mark.long
def test_tasks_are_read_only_when_workers_are_free(dask):
    taken = []

    def tasks():
        for n in range(1_000_000):
            taken.append(n)
            yield n

    with ClusterPool(dask.address) as pool, closing(pool.outcomes(nap, tasks(), limits=LIMITS)) as items:
        n_done = 0
        for item in items:
            n_done += item is not None
            assert len(taken) <= n_done + 5 * cluster.MAX_BATCH  # 2 workers, 2 batches each, 1 being read
            if n_done == 200:
                break


@pytest.mark.long
def test_failing_task_does_not_affect_others(dask):
    tasks = ["a", "crash", "b", "killed", "hang", "swell", "raise", "c", "d"]
    with ClusterPool(dask.address) as pool:
        found = dict(results(pool, misbehave, tasks, Limits(seconds=3.0, memory_mb=2048)))
    assert {n: found[n] for n in "abcd"} == {n: n for n in "abcd"}
    assert found["crash"].is_crash
    assert not found["killed"].is_crash
    kinds = {name: type(found[name]) for name in ("hang", "swell", "raise")}
    assert kinds == {"hang": OverTimeError, "swell": MemoryError, "raise": ValueError}


def test_rejects_workers_of_another_version(dask, monkeypatch):
    monkeypatch.setattr(cluster, "__version__", "0.0.1")
    with ClusterPool(dask.address) as pool, pytest.raises(LibraryError, match=r"Install musicsim 0\.0\.1"):
        results(pool, double, [1])


@pytest.mark.long
def test_workers_that_pause_while_work_is_sent_lose_no_results(dask, monkeypatch):
    send, refusals = Client.scatter, [ValueError("Can not use replicate to delete data")]

    def refuse_once(client, *work, **options):
        if refusals:
            raise refusals.pop()  # as Dask does if no worker runs when it copies the work
        return send(client, *work, **options)

    monkeypatch.setattr(Client, "scatter", refuse_once)
    with ClusterPool(dask.address) as pool:
        assert sorted(results(pool, double, range(50))) == [(n, 2 * n) for n in range(50)]
    assert not refusals


@pytest.mark.long
def test_killed_worker_loses_no_results(own_dask):
    def kill():
        own_dask.workers[0].kill()  # the nanny, whose worker ends with it

    with ClusterPool(own_dask.address) as pool:
        assert sorted(results(pool, nap, range(60), then=kill)) == [(n, n) for n in range(60)]


@pytest.mark.long
def test_restarted_scheduler_loses_no_results(own_dask):
    with ClusterPool(own_dask.address) as pool:
        found = results(pool, nap, range(60), then=own_dask.restart_scheduler)
    assert sorted(found) == [(n, n) for n in range(60)]


@pytest.mark.long
def test_hanging_worker_loses_no_results(tmp_path):
    with DaskProcesses(tmp_path, nanny=False) as dask, ClusterPool(dask.address) as pool:
        found = results(pool, nap, range(60), then=lambda: dask.workers[0].send_signal(signal.SIGSTOP))
        dask.workers[0].kill()
    assert sorted(found) == [(n, n) for n in range(60)]


@pytest.mark.long
def test_task_killing_worker_twice_fails_alone():
    with open_cluster("local:2") as pool:
        found = dict(results(pool, kill_the_worker_of_dask, range(40)))
    killed = found.pop(13)
    assert isinstance(killed, WorkerDied)
    assert found == {n: n for n in range(40) if n != 13}


def what_is_kept(library):
    """Return rows of songs without ids and times, and the bytes of frames and aspects by their hash."""
    columns = [c for c in schema.songs.c if c.name not in ("id", "added_at")]
    with library.engine.connect() as connection:
        rows = {row.content_hash: repr(row) for row in connection.execute(sa.select(*columns))}
    files = {path.name: path.read_bytes() for path in library.frame_files.folder.glob("??/*")}
    return rows, files


@pytest.mark.long
def test_cluster_scan_matches_local_scan(dask, tmp_path):
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


@pytest.mark.long
def test_cluster_scan_can_pause_stop_and_resume(dask, tmp_path):
    music = write_collection(tmp_path / "music", n_songs=4)
    steps = []

    def pause_then_stop(_message, done, total):
        steps.append(total)
        time.sleep(0.2)
        return done >= 4

    with open_library(tmp_path / "library") as library, ClusterPool(dask.address) as library.pool:
        first = library.add(music, progress=cancel_when(pause_then_stop))
        assert first.canceled
        assert first.n_added == 4
        second = library.add(music)
        assert (second.n_added, second.n_unchanged) == (8, 4)
    assert steps[-1] == 12
