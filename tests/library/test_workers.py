"""Worker processes: a task that crashes, hangs or swells costs itself and nothing else."""

import contextlib
import multiprocessing
import os
import signal
import sys
import time
from itertools import count
from multiprocessing import forkserver
from pathlib import Path

import pytest

from musicsim import public
from musicsim.errors import LibraryError
from musicsim.library.processes import workers
from musicsim.library.processes.pools import LocalPool, done_by, in_order, map_of
from musicsim.library.processes.workers import Limits, WorkerDied, outcomes

LIMITS = Limits(seconds=60.0, memory_mb=1024)


class Stubborn(Exception):
    """An exception that cannot be made again from its arguments."""

    def __init__(self, one, two):
        super().__init__(one)


def double(number):
    """A task that behaves."""
    return 2 * number


def misbehave(what):
    """Tasks as bad decoders would have them."""
    if what == "crash":
        os.abort()
    if what == "leave":
        os._exit(7)
    if what == "exit":
        sys.exit(3)
    if what == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "hang":
        time.sleep(600)
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
    """A task whose process is killed when it is done for the first time; then it says who was beside it."""
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return os.getpid()


def slow(number):
    """A task that can be interrupted, and the process that did it."""
    time.sleep(0.02)
    return number, os.getpid()


def results(function, tasks, n_workers=2, limits=LIMITS):
    return [item for item in outcomes(function, tasks, n_workers=n_workers, limits=limits) if item is not None]


def test_every_task_has_its_result():
    assert dict(results(double, range(50))) == {n: 2 * n for n in range(50)}


def test_results_of_a_pool_can_be_had_in_the_order_of_their_tasks():
    tasks = [*range(100), "raise", *range(100)]
    found = list(in_order(LocalPool(2), misbehave, tasks, limits=LIMITS))
    assert isinstance(found[100], ValueError)
    assert found[:100] + found[101:] == tasks[:100] + tasks[101:]


def test_a_map_of_a_pool_raises_what_a_call_raises():
    found = map_of(LocalPool(1), LIMITS)(misbehave, [1, "raise", 2])
    assert next(found) == 1
    with pytest.raises(ValueError, match="on purpose"):
        list(found)


def is_for_visitors(_):
    return public.is_public()


def test_a_worker_is_for_visitors_where_its_program_is_whenever_its_fork_server_was_started(monkeypatch):
    for value in ("1", "", "1"):
        monkeypatch.setenv("MUSICSIM_PUBLIC", value)
        assert results(is_for_visitors, [0]) == [(0, value == "1")]
    monkeypatch.delenv("MUSICSIM_PUBLIC")
    assert results(is_for_visitors, [0]) == [(0, False)]


def here_only(number):
    """A task that no worker can do."""
    if multiprocessing.parent_process() is not None:
        raise FileNotFoundError("not here")
    return os.getpid(), number


def test_what_a_pool_cannot_do_is_done_here():
    tasks = iter(range(20))
    assert list(done_by(LocalPool(2), here_only, tasks, limits=LIMITS)) == [(os.getpid(), n) for n in range(20)]
    assert list(done_by(LocalPool(2), double, range(20), limits=LIMITS)) == list(range(0, 40, 2))
    with pytest.raises(ValueError, match="on purpose"):
        list(done_by(LocalPool(1), misbehave, ["raise"], limits=LIMITS))


@pytest.mark.slow
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
def test_a_bad_task_costs_itself_only(what, error, capfd):
    # the good tasks of a worker that is killed for another one's sake may not be lost either
    tasks = ["a", "b", what, "c", "d", "e", "f"]
    limits = Limits(seconds=3.0 if what == "hang" else 60.0, memory_mb=1024)
    found = dict(results(misbehave, tasks, limits=limits))
    assert type(found.pop(what)).__name__ == error
    assert found == {name: name for name in "abcdef"}
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize(("what", "is_crash"), [("crash", True), ("leave", True), ("killed", False)])
def test_a_crash_is_told_from_a_kill(what, is_crash):
    ((_, death),) = results(misbehave, [what], n_workers=1)
    assert death.is_crash is is_crash
    assert not WorkerDied(None).is_crash
    assert not WorkerDied(255).is_crash, "what is said of a process whose fork server has gone"
    assert not WorkerDied(-signal.SIGTERM).is_crash


def test_a_task_whose_process_was_killed_is_done_again_alone(tmp_path):
    marks = [tmp_path / str(n) for n in range(3)]
    marks[0].touch()
    found = dict(results(killed_once, marks, n_workers=1))
    assert set(found) == set(marks)
    assert all(isinstance(process, int) for process in found.values())
    assert len(set(found.values())) == 3, "each of those that were done again had a process of its own"


@pytest.mark.slow
@pytest.mark.thorough
def test_workers_and_the_fork_server_may_be_killed_at_any_moment(rng, capfd):
    found, n_kills = [], 0
    for item in outcomes(slow, range(600), n_workers=3, limits=LIMITS):
        if item is None:
            continue
        found.append(item)
        if len(found) % 20 == 0:
            time.sleep(rng.uniform(0, 0.03))
            n_kills += 1
            _, (_, process) = item
            with contextlib.suppress(ProcessLookupError):
                os.kill(process if n_kills % 5 else forkserver._forkserver._forkserver_pid, signal.SIGKILL)
    assert n_kills == 30
    assert sorted(task for task, _ in found) == list(range(600))
    assert all(answer[0] == task for task, answer in found)
    assert "Traceback" not in capfd.readouterr().err


def test_tasks_are_taken_only_when_there_is_room():
    taken = []

    def endless():
        for n in count():
            taken.append(n)
            yield n

    for item in outcomes(double, endless(), n_workers=1, limits=LIMITS):
        if item is not None and item[0] == 10:
            break
    assert len(taken) < 20


def test_a_long_task_lets_the_caller_breathe():
    ticks = list(outcomes(time.sleep, [1.5], n_workers=1, limits=LIMITS))
    assert ticks[-1] == (1.5, None)
    assert None in ticks[:-1]


def test_time_in_which_the_caller_rests_is_no_time_of_a_task():
    found = []
    for item in outcomes(double, range(6), n_workers=1, limits=Limits(seconds=0.5, memory_mb=1024)):
        if item is not None:
            found.append(item[1])
            time.sleep(0.7)
    assert found == [0, 2, 4, 6, 8, 10]


def test_a_worker_makes_room_for_another_after_many_tasks(monkeypatch):
    monkeypatch.setattr(workers, "_TASKS_A_WORKER", 10)
    processes = {process for _, (_, process) in results(slow, range(25), n_workers=1)}
    assert len(processes) == 3


def test_a_scan_that_is_given_up_leaves_no_process():
    running = outcomes(slow, count(), n_workers=2, limits=LIMITS)
    processes = set()
    for item in running:
        processes |= {item[1][1]} if item else set()
        if len(processes) == 2:
            break
    running.close()
    for process in processes:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)


def test_workers_that_never_begin_are_given_up(monkeypatch):
    monkeypatch.setattr(workers, "_work", Path)  # no function of a worker: its processes end at once
    with pytest.raises(LibraryError, match="start the scan again"):
        results(double, range(5))
