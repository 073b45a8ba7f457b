"""Worker processes: a task that crashes, hangs or swells costs itself and nothing else."""

import os
import time
from itertools import count

import pytest
from pebble.pool.base_pool import PoolStatus

from musicsim.errors import LibraryError
from musicsim.library.scan import workers
from musicsim.library.scan.workers import Limits, outcomes

LIMITS = Limits(seconds=60.0, memory_mb=1024)


def double(number):
    """A task that behaves."""
    return 2 * number


def misbehave(what):
    """Tasks as bad decoders would have them."""
    if what == "crash":
        os.abort()
    if what == "leave":
        os._exit(7)
    if what == "hang":
        time.sleep(600)
    if what == "swell":
        return len(bytearray(8 << 30))
    if what == "raise":
        raise ValueError("on purpose")
    return what


def test_every_task_has_its_result():
    found = dict(item for item in outcomes(double, range(50), n_workers=2, limits=LIMITS) if item is not None)
    assert found == {n: 2 * n for n in range(50)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "error"),
    [
        ("crash", "ProcessExpired"),
        ("leave", "ProcessExpired"),
        ("hang", "TimeoutError"),
        ("swell", "MemoryError"),
        ("raise", "ValueError"),
    ],
)
def test_a_bad_task_costs_itself_only(what, error):
    # the good tasks of a worker that is killed for another one's sake may not be lost either
    tasks = ["a", "b", what, "c", "d", "e", "f"]
    limits = Limits(seconds=3.0 if what == "hang" else 60.0, memory_mb=1024)
    found = dict(item for item in outcomes(misbehave, tasks, n_workers=2, limits=limits) if item is not None)
    assert type(found.pop(what)).__name__ == error
    assert found == {name: name for name in "abcdef"}


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


def test_a_pool_that_breaks_is_replaced_and_loses_no_task(monkeypatch):
    pools = []
    whole = workers._open_pool

    def breaking(*arguments):
        pools.append(whole(*arguments))
        if len(pools) == 1:  # as pebble leaves it when a process dies while it is spoken to
            pools[0]._context.status = PoolStatus.ERROR
        return pools[-1]

    monkeypatch.setattr(workers, "_open_pool", breaking)
    found = dict(item for item in outcomes(double, range(5), n_workers=1, limits=LIMITS) if item is not None)
    assert found == {n: 2 * n for n in range(5)}
    assert len(pools) == 2


def test_pools_that_break_for_ever_are_given_up(monkeypatch):
    whole = workers._open_pool

    def broken(*arguments):
        pool = whole(*arguments)
        pool._context.status = PoolStatus.ERROR
        return pool

    monkeypatch.setattr(workers, "_open_pool", broken)
    with pytest.raises(LibraryError, match="start the scan again"):
        list(outcomes(double, range(5), n_workers=1, limits=LIMITS))
