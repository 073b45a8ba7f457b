"""Memory of processes."""

import multiprocessing
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, Self

__all__ = ["MostHeld", "alone", "family_memory", "peak_bytes"]


def family_memory(process: Any) -> dict[str, int]:
    """Return the memory of a process and all its descendants, in bytes.

    "pss" counts shared pages once, "rss" once per process. If the system does not report pss, both are rss.

    Parameters
    ----------
    process : psutil.Process
    """
    import psutil

    total = {"pss": 0, "rss": 0}
    for member in _family(process):
        try:
            memory = member.memory_full_info()
        except psutil.Error:  # it has ended in the meantime
            continue
        for kind in total:
            total[kind] += getattr(memory, kind, memory.rss)
    return total


def _family(process: Any) -> list[Any]:
    import psutil

    try:
        return [process, *process.children(recursive=True)]
    except psutil.Error:
        return []


def peak_bytes() -> int:
    """Return the peak memory of this process."""
    status = Path("/proc/self/status")
    if status.exists():  # ru_maxrss of a child starts at the peak of its parent
        peak = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(peak.split()[1]) * 1024
    import resource

    peak_rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak_rss if sys.platform == "darwin" else peak_rss * 1024


class MostHeld:
    """A context manager that measures the peak memory of this process: `bytes`, without pages of a mapped file.

    Pages of other files are counted once, at the end, because counting them takes time per page. Private memory is
    sampled ten times per second.
    """

    def __init__(self, file: Path) -> None:
        self._file, self._ended, self.bytes = file, threading.Event(), 0
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        import psutil

        self._ended.set()
        self._thread.join()
        maps = psutil.Process().memory_maps()
        others = sum(part.rss for part in maps if part.path != str(self._file.resolve()))
        self.bytes += max(0, others - _own_bytes())

    def _watch(self) -> None:
        while not self._ended.wait(0.1):
            self.bytes = max(self.bytes, _own_bytes())


def _own_bytes() -> int:
    """Return the memory of this process that is not backed by a file (Linux)."""
    status = Path("/proc/self/status").read_text()
    return next(1024 * int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon:"))


def alone(function: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    """Call a function in a new process; return its result, the seconds "s" and the peak memory "mb"."""
    context = multiprocessing.get_context("spawn")  # so that the child starts without the memory of this process
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(_measured, function, *arguments).result()


def _measured(function: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    started = time.perf_counter()
    found = function(*arguments)
    seconds = time.perf_counter() - started
    return {"s": seconds, "mb": peak_bytes() / 1e6, **found}
