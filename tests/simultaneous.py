"""Pairs of simultaneous changes, by two processes or by two threads with separate handles."""

import multiprocessing
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from musicsim.library import Library
from tests.waiting import PATIENCE_S

Change = Callable[[Library, int, int], object]
"""A change by side 0 or 1 of the pair with a number: ``change(library, side, number)``."""


def count_lost(folder: Path, change: Change, *, n_pairs: int, in_processes: bool = False, kept: Change) -> int:
    """Make pairs of simultaneous changes to the library in `folder`; return how many lost one of them.

    `kept` takes the same arguments as `change`, and returns whether the change is stored.
    """
    context: Any = multiprocessing.get_context("spawn") if in_processes else threading
    start = context.Process if in_processes else context.Thread
    barrier, n_lost = context.Barrier(3), 0
    sides = [start(target=_run, args=(folder, change, side, n_pairs, barrier), daemon=True) for side in (0, 1)]
    for side in sides:
        side.start()
    with Library.open(folder) as library:
        for number in range(n_pairs):
            barrier.wait(PATIENCE_S)  # both begin
            barrier.wait(PATIENCE_S)  # both have ended
            n_lost += not all(kept(library, side, number) for side in (0, 1))
    for side in sides:
        side.join(PATIENCE_S)
    return n_lost


def _run(folder: Path, change: Change, side: int, n_pairs: int, barrier: Any) -> None:
    try:
        with Library.open(folder) as library:
            for number in range(n_pairs):
                barrier.wait(PATIENCE_S)
                change(library, side, number)
                barrier.wait(PATIENCE_S)
    except BaseException:
        barrier.abort()  # otherwise the others would wait for this side
        raise
