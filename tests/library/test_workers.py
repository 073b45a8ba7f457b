"""Tests of worker processes: a task that crashes, hangs or uses too much memory fails alone."""

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from itertools import count
from pathlib import Path

import pytest

from musicsim import public
from musicsim.errors import LibraryError
from musicsim.library.processes import workers
from musicsim.library.processes.pools import LocalPool, map_in_order, map_of, map_with_retry
from musicsim.library.processes.workers import Limits, WorkerDied
from tests.fork_server import fork_server_pid
from tests.waiting import HANG_S, PATIENCE_S, until

LIMITS = Limits(seconds=PATIENCE_S, memory_mb=1024)


class Stubborn(Exception):
    """An exception that cannot be rebuilt from its arguments."""

    def __init__(self, one, two):
        super().__init__(one)


def double(number):
    return 2 * number


def misbehave(what):
    """Fail in the ways of bad decoders."""
    if what == "crash":
        os.abort()
    if what == "leave":
        os._exit(7)
    if what == "exit":
        sys.exit(3)
    if what == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "hang":
        time.sleep(HANG_S)
    if what == "swell":
        return len(bytearray(8 << 30))
    if what == "raise":
        raise ValueError("on purpose")
    if what == "stubborn":
        raise Stubborn(1, 2)
    if what == "unsent":
        return lambda: None
    return what


def killed_once(mark):
    """Kill the process on the first attempt at a task. Then return the id of the process."""
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return os.getpid()


def slow(number):
    """Run an interruptible task, and return the id of its process."""
    time.sleep(0.02)
    return number, os.getpid()


def wait_for(path):
    """Run a task that ends when a file appears."""
    until(path.exists)


def results(function, tasks, n_workers=2, limits=LIMITS):
    return [item for item in LocalPool(n_workers).outcomes(function, tasks, limits=limits) if item is not None]


def test_every_task_has_result():
    assert dict(results(double, range(50))) == {n: 2 * n for n in range(50)}


def test_pool_results_can_be_ordered():
    tasks = [*range(100), "raise", *range(100)]
    found = list(map_in_order(LocalPool(2), misbehave, tasks, limits=LIMITS))
    assert isinstance(found[100], ValueError)
    assert found[:100] + found[101:] == tasks[:100] + tasks[101:]


def test_pool_map_raises_errors_of_function():
    found = map_of(LocalPool(1), LIMITS)(misbehave, [1, "raise", 2])
    assert next(found) == 1
    with pytest.raises(ValueError, match="on purpose"):
        list(found)


def is_for_visitors(_):
    return public.is_public()


def test_workers_follow_current_visitor_setting(monkeypatch):
    for value in ("1", "", "1"):
        monkeypatch.setenv("MUSICSIM_PUBLIC", value)
        assert results(is_for_visitors, [0]) == [(0, value == "1")]
    monkeypatch.delenv("MUSICSIM_PUBLIC")
    assert results(is_for_visitors, [0]) == [(0, False)]


def here_only(number):
    """Run a task that no worker can do."""
    if multiprocessing.parent_process() is not None:
        raise FileNotFoundError("not here")
    return os.getpid(), number


def test_task_unavailable_to_pool_runs_locally():
    tasks = iter(range(20))
    assert list(map_with_retry(LocalPool(2), here_only, tasks, limits=LIMITS)) == [(os.getpid(), n) for n in range(20)]
    assert list(map_with_retry(LocalPool(2), double, range(20), limits=LIMITS)) == list(range(0, 40, 2))
    with pytest.raises(ValueError, match="on purpose"):
        list(map_with_retry(LocalPool(1), misbehave, ["raise"], limits=LIMITS))


@pytest.mark.long
@pytest.mark.parametrize(
    ("what", "error"),
    [
        ("crash", "WorkerDied"),
        ("leave", "WorkerDied"),
        ("killed", "WorkerDied"),
        ("hang", "OverTimeError"),
        ("swell", "MemoryError"),
        ("raise", "ValueError"),
        ("exit", "SystemExit"),
        ("stubborn", "TypeError"),
        ("unsent", "RuntimeError"),
    ],
)
def test_bad_task_fails_alone(what, error, capfd):
    # the good tasks of a worker that is killed because of another one must not be lost either
    tasks = ["a", "b", what, "c", "d", "e", "f"]
    limits = Limits(seconds=3.0 if what == "hang" else PATIENCE_S, memory_mb=1024)
    found = dict(results(misbehave, tasks, limits=limits))
    assert type(found.pop(what)).__name__ == error
    assert found == {name: name for name in "abcdef"}
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize(("what", "is_crash"), [("crash", True), ("leave", True), ("killed", False)])
def test_crash_is_distinguished_from_kill(what, is_crash):
    ((_, death),) = results(misbehave, [what], n_workers=1)
    assert death.is_crash is is_crash
    assert not WorkerDied(None).is_crash
    assert not WorkerDied(255).is_crash, "what is said of a process whose fork server has gone"
    assert not WorkerDied(-signal.SIGTERM).is_crash


def test_task_of_killed_process_is_repeated_alone(tmp_path):
    marks = [tmp_path / str(n) for n in range(3)]
    marks[0].touch()
    found = dict(results(killed_once, marks, n_workers=1))
    assert set(found) == set(marks)
    assert all(isinstance(process, int) for process in found.values())
    assert len(set(found.values())) == 3, "each of those that were done again had a process of its own"


@pytest.mark.long
def test_pool_survives_killed_workers_and_fork_server(rng, capfd):
    found, n_kills = [], 0
    for item in LocalPool(3).outcomes(slow, range(600), limits=LIMITS):
        if item is None:
            continue
        found.append(item)
        if len(found) % 20 == 0:
            time.sleep(rng.uniform(0, 0.03))
            n_kills += 1
            _, (_, process) = item
            with contextlib.suppress(ProcessLookupError):
                os.kill(process if n_kills % 5 else fork_server_pid(), signal.SIGKILL)
    assert n_kills == 30
    assert sorted(task for task, _ in found) == list(range(600))
    assert all(answer[0] == task for task, answer in found)
    assert "Traceback" not in capfd.readouterr().err


def test_tasks_are_taken_only_when_needed():
    taken = []

    def endless():
        for n in count():
            taken.append(n)
            yield n

    for item in LocalPool(1).outcomes(double, endless(), limits=LIMITS):
        if item is not None and item[0] == 10:
            break
    assert len(taken) < 20


@pytest.mark.long
def test_long_task_yields_to_caller(tmp_path):
    go, found = tmp_path / "go", []
    for item in LocalPool(1).outcomes(wait_for, [go], limits=LIMITS):
        found.append(item)
        if item is None:
            go.touch()
    assert found[0] is None
    assert found[-1] == (go, None)


@pytest.mark.long
def test_pause_of_caller_does_not_count_for_timeout(monkeypatch):
    is_late, found = workers.Worker.is_late, []

    def is_late_with_a_result(worker, seconds):
        """Ask once the result has come, however slow the worker is."""
        if worker.tasks:
            until(worker.pipe.poll)
        return is_late(worker, seconds)

    monkeypatch.setattr(workers.Worker, "is_late", is_late_with_a_result)
    for item in LocalPool(1).outcomes(double, range(6), limits=Limits(seconds=0.5, memory_mb=1024)):
        if item is not None:
            found.append(item[1])
            time.sleep(0.7)
    assert found == [0, 2, 4, 6, 8, 10]


def test_worker_is_replaced_after_many_tasks(monkeypatch):
    monkeypatch.setattr(workers, "TASKS_PER_WORKER", 10)
    processes = {process for _, (_, process) in results(slow, range(25), n_workers=1)}
    assert len(processes) == 3


def test_abandoned_pool_leaves_no_process():
    running = LocalPool(2).outcomes(slow, count(), limits=LIMITS)
    processes = set()
    for item in running:
        processes |= {item[1][1]} if item else set()
        if len(processes) == 2:
            break
    running.close()
    for process in processes:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)


def test_workers_that_never_start_give_clear_error(monkeypatch):
    monkeypatch.setattr(workers, "run_worker", Path)  # not a function of a worker, so its processes end at once
    with pytest.raises(LibraryError, match="start the scan again"):
        results(double, range(5))


@pytest.mark.parametrize(("setting", "niceness"), [("", 3), ("0", 0)])
def test_workers_have_low_priority_unless_switched_off(setting, niceness):
    code = "import os; from musicsim.library.processes.workers import lower_priority as f; f(3); print(os.nice(0))"
    environment = os.environ | {"MUSICSIM_NICE": setting}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True)
    assert int(done.stdout) == min(os.nice(0) + niceness, 19)
