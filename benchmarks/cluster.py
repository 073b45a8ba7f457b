"""Adding music on a Dask cluster: whether the library equals that of one machine, the extra cost, and worker deaths.

A real scheduler and two workers run as processes on this machine and talk over TCP on the loopback. The rival is
`Library.add` with two worker processes.

Dask has its defaults, with these exceptions: no profile of workers, quieter monitors, and clocks that tick once per
second instead of 50 times. Hanging workers are given up after 6 s instead of 5 minutes.

Cost: files of three to four minutes in every format (those of `benchmarks.ingest`). CPU seconds are those of all
processes from the call to the last commit: the writer, the workers and their children, the scheduler. The cluster has
done a scan before, because a real cluster is already warm; local worker processes are started by each scan. The stored
results are compared bit for bit: the files of frames and aspects, and the rows of songs.

Comparing: the ten nearest of all drawn songs, exported by this process and on the cluster; CPU seconds of all
processes, and the files byte for byte.

Deaths: songs of 25 s. A worker is killed; a worker is stopped (SIGSTOP) until the scheduler gives it up; the scheduler
is killed and restarted with new workers. Each time the library is compared with the local one.

Memory: the peak of the writing process, which stops after 500 files, with 1,000 and with 10,000 files queued.
"""

import signal
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import sqlalchemy as sa

from benchmarks.ingest import long_files, short_songs, tiny_songs
from benchmarks.large_library import write_library
from benchmarks.support.dask_processes import DaskProcesses
from benchmarks.support.memory import alone
from benchmarks.support.report import Claim, Progress, Row, Settings, at_most, main
from musicsim.extensions.cluster.connection import choosing, use_cluster
from musicsim.extensions.cluster.pool import open_cluster
from musicsim.extensions.exports.export import export
from musicsim.extensions.exports.request import ExportRequest
from musicsim.library import Library
from musicsim.library.db import schema
from musicsim.library.processes.pools import LocalPool, WorkerPool

_N_WORKERS = 2
_SAMPLE_S = 0.05
_STOP_AFTER = 500


class Step(NamedTuple):
    """The progress of a task."""

    done: int
    total: int


class CpuSeconds:
    """CPU seconds of this process and its descendants from now on, sampled during a scan.

    Workers end with the scan, so their usage is read at its last step.
    """

    def __init__(self) -> None:
        self._me, self._asking_s, self._asked = psutil.Process(), 0.0, 0.0
        self._used: dict[psutil.Process, float] = {}
        self._ask()
        self._before = dict(self._used)

    def __call__(self, step: Any) -> None:
        """Sample at most once per second, and at the last step."""
        if step.done == step.total or time.monotonic() - self._asked > 1.0:
            self._ask()

    @property
    def total(self) -> float:
        """Return the seconds of all processes, without those of sampling."""
        self._ask()
        used = sum(seconds - self._before.get(process, 0.0) for process, seconds in self._used.items())
        return used - self._asking_s

    def _ask(self) -> None:
        start = time.thread_time()
        for process in (self._me, *self._me.children(recursive=True)):
            with suppress(psutil.Error):
                times = process.cpu_times()
                self._used[process] = times.user + times.system
        self._asked = time.monotonic()
        self._asking_s += time.thread_time() - start


def what_is_kept(folder: Path) -> tuple[dict[str, str], dict[str, bytes]]:
    """Return rows of songs by the hash of their bytes, without ids and times, and files of frames and aspects."""
    columns = [column for column in schema.songs.c if column.name not in ("id", "added_at")]
    with Library.open(folder) as library:
        with library.engine.connect() as connection:
            rows = connection.execute(sa.select(*columns)).all()
        files = {path.name: path.read_bytes() for path in library.frame_files.folder.glob("??/*")}
    assert len({row.content_hash for row in rows}) == len(rows)
    return {row.content_hash: repr(row) for row in rows}, files


def differences(one: Path, other: Path) -> int:
    """Return the number of rows and files that are in one of two libraries only, or differ."""
    parts = zip(what_is_kept(one), what_is_kept(other), strict=True)
    return sum(a.get(name) != b.get(name) for a, b in parts for name in a.keys() | b.keys())


def add(folder: Path, music: Path, pool: WorkerPool, progress: Any = None) -> float:
    """Add music to a new library; return wall seconds."""
    with Library.open(folder) as library:
        library.set_setting("shortest_s", 0.0)
        library.pool = pool
        start = time.perf_counter()
        library.add(music, progress=progress)
        return time.perf_counter() - start


def cost(folder: Path, n_copies: int, seed: int, progress: Progress) -> tuple[list[Row], list[Claim]]:
    """Compare CPU time and result with those of local worker processes."""
    files, seconds = long_files(folder / "long", n_copies, seed)
    short_songs(folder / "first", 4, seed)
    progress(f"{len(files)} files, {seconds / 3600:.1f} hours")
    rows: list[dict[str, Any]] = []
    cpu = CpuSeconds()
    wall = add(folder / "local", folder / "long", LocalPool(_N_WORKERS), cpu)
    rows.append({"who": "worker processes", "wall_s": wall, "cpu_s": cpu.total})
    progress(f"here: {cpu.total:.1f} CPU seconds, {wall:.1f} s")
    with DaskProcesses(folder, _N_WORKERS) as dask, open_cluster(dask.address) as pool:
        add(folder / "before", folder / "first", pool)
        cpu = CpuSeconds()
        wall = add(folder / "cluster", folder / "long", pool, cpu)
        rows.append({"who": "Dask cluster", "wall_s": wall, "cpu_s": cpu.total})
    here, there = (row["cpu_s"] for row in rows)
    progress(f"on the cluster: {there:.1f} CPU seconds, {wall:.1f} s")
    for row in rows:
        row |= {"what": "files of minutes", "files": len(files), "audio_s_per_cpu_s": seconds / row["cpu_s"]}
    lost = differences(folder / "local", folder / "cluster")
    return rows, [
        at_most("rows and files that differ from those made here", lost, 0),
        at_most("CPU time on a cluster against worker processes: share more", there / here - 1, 0.10),
    ]


def comparing(folder: Path, n_songs: int, seed: int, progress: Progress) -> tuple[list[Row], list[Claim]]:
    """Compare CPU time and result of neighbor lists with those of this process."""
    rows: list[dict[str, Any]] = []

    def listed(who: str) -> bytes:
        cpu, start = CpuSeconds(), time.perf_counter()
        export(
            library,
            "neighbours",
            folder / "list.csv",
            ExportRequest(),
            progress=lambda _, done, total: cpu(Step(done, total)),
        )
        wall = time.perf_counter() - start
        rows.append({"what": "ten nearest", "who": who, "songs": n_songs, "wall_s": wall, "cpu_s": cpu.total})
        progress(f"{who}: {cpu.total:.1f} CPU seconds, {wall:.1f} s")
        return (folder / "list.csv").read_bytes()

    with write_library(folder / "drawn", n_songs, random_state=seed) as library:
        here = listed("this process")
        with DaskProcesses(folder, _N_WORKERS) as dask, choosing(dask.address), use_cluster(library):
            there = listed("Dask cluster")
    alone_s, cluster_s = (row["cpu_s"] for row in rows)
    return rows, [
        at_most("neighbor lists that differ from those found here", float(there != here), 0),
        at_most("CPU seconds more of neighbor lists on a cluster, to begin", cluster_s - alone_s, 15),
    ]


def deaths(folder: Path, n_songs: int, seed: int, progress: Progress) -> tuple[list[Row], list[Claim]]:
    """Count losses after workers and the scheduler die or hang in the middle of a scan."""
    short_songs(folder / "short", n_songs, seed)
    add(folder / "short here", folder / "short", LocalPool(_N_WORKERS))
    accidents: dict[str, Callable[[DaskProcesses], object]] = {
        "a worker is killed": lambda dask: dask.workers[0].kill(),
        "a worker hangs": lambda dask: dask.workers[0].send_signal(signal.SIGSTOP),
        "the scheduler is started again": lambda dask: dask.restart_scheduler(1.0),
    }
    rows, claims = [], []
    for name, accident in accidents.items():
        has_happened = threading.Event()

        def watch(step: Any, accident: Any = accident, has_happened: threading.Event = has_happened) -> None:
            if step.done >= n_songs // 4 and not has_happened.is_set():
                has_happened.set()
                accident(dask)

        with DaskProcesses(folder, _N_WORKERS, nanny=False) as dask, open_cluster(dask.address) as pool:
            wall = add(folder / name, folder / "short", pool, watch)
        assert has_happened.is_set()
        lost = differences(folder / "short here", folder / name)
        rows.append({"what": name, "who": "Dask cluster", "files": n_songs, "wall_s": wall, "differences": lost})
        claims.append(at_most(f"{name}: rows and files that differ", lost, 0))
        progress(f"{name}: {wall:.1f} s, {lost} differences")
    return rows, claims


def _first_added(folder: Path, music: Path, address: str) -> dict[str, Any]:
    """Add the first files of many."""
    with open_cluster(address) as pool:
        return {"wall_s": add(folder, music, pool, lambda step: step.done >= _STOP_AFTER)}


def memory(folder: Path, seed: int, progress: Progress) -> tuple[list[Row], list[Claim]]:
    """Measure the peak memory of the writer and the memory of the scheduler by the number of queued files."""
    rows: list[dict[str, Any]] = []
    with DaskProcesses(folder, _N_WORKERS) as dask:
        for n_files in (1_000, 10_000):
            tiny_songs(folder / f"tiny {n_files}", n_files, seed)
            arguments = folder / f"queue {n_files}", folder / f"tiny {n_files}", dask.address
            peak = alone(_first_added, *arguments)["mb"]
            scheduler = psutil.Process(dask.scheduler.pid).memory_info().rss / 1e6
            rows.append({"what": "files that wait", "who": "Dask cluster", "files": n_files, "writer_mb": peak,
                         "scheduler_mb": scheduler})  # fmt: skip
            progress(f"{n_files} files wait: writer {peak:.0f} MB, scheduler {scheduler:.0f} MB")
    writer, scheduler = (rows[1][name] - rows[0][name] for name in ("writer_mb", "scheduler_mb"))
    return rows, [
        at_most("writer's memory, kB more for each file that waits", writer / 9, 2.0),
        at_most("scheduler's memory, 10,000 against 1,000 files, MB more", scheduler, 20.0),
    ]


def run(settings: Settings, progress: Progress) -> tuple[list[Row], list[Claim]]:
    rows: list[Row] = []
    claims: list[Claim] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in (
            cost(folder, 10 if settings.full else 1, settings.seed, progress),
            comparing(folder, 90_000 if settings.full else 30_000, settings.seed, progress),
            deaths(folder, 1_000 if settings.full else 100, settings.seed, progress),
            memory(folder, settings.seed, progress),
        ):
            rows, claims = [*rows, *part[0]], [*claims, *part[1]]
    return rows, claims


if __name__ == "__main__":
    main(
        "cluster", "adding music on a Dask cluster", run, rivals=("distributed", "av", "psutil"),
        short="1 of 10 copies of the long files, 30,000 of 90,000 songs to compare, and 100 of 1,000 songs when "
        "workers die",
    )  # fmt: skip
