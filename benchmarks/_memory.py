"""Memory of processes."""

import multiprocessing
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

__all__ = ["alone", "family_memory", "peak_bytes"]


def family_memory(process: Any) -> dict[str, int]:
    """Bytes of a process and all that it has started.

    "pss" counts what processes share once, "rss" in each of them; a system without pss has rss for both.

    Parameters
    ----------
    process : psutil.Process
    """
    import psutil

    total = {"pss": 0, "rss": 0}
    for member in _family(process):
        try:
            memory = member.memory_full_info()
        except psutil.Error:  # it has ended meanwhile
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
    """The most memory that this process has held."""
    status = Path("/proc/self/status")
    if status.exists():  # ru_maxrss of a child starts at what its parent held
        peak = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(peak.split()[1]) * 1024
    import resource

    peak_rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak_rss if sys.platform == "darwin" else peak_rss * 1024


def alone(function: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    """What a function gives in a process of its own, its seconds "s", and the most memory that it held, "mb"."""
    context = multiprocessing.get_context("spawn")  # none starts with what this process holds
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(_measured, function, *arguments).result()


def _measured(function: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    started = time.perf_counter()
    found = function(*arguments)
    seconds = time.perf_counter() - started
    return {"s": seconds, "mb": peak_bytes() / 1e6, **found}
