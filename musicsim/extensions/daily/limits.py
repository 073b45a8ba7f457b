"""Limits of the automatic work: the hours, the battery and the share of the processors."""

import os
import time
from datetime import datetime
from typing import Any

from musicsim.extensions.daily.battery import is_on_battery
from musicsim.extensions.daily.options import includes
from musicsim.library.processes.workers import lower_priority
from musicsim.progress import Canceled, Progress

ON_BATTERY = "This machine runs on battery, so nothing is done."
_CHECK_EVERY_S = 20.0


def find_obstacle(hours: str, *, ignore_battery: bool = False) -> str:
    """Return a sentence about why nothing may be done now, or ""."""
    if not includes(hours, datetime.now()):
        return f"Nothing is done outside the hours {hours}."
    return ON_BATTERY if not ignore_battery and is_on_battery() else ""


def limit_cpu(percent: int) -> int:
    """Limit this process and its later workers to a share of the processors, and return the number of workers.

    Linux limits the process to some of the processors. On other systems, the number of workers and a low priority are
    the only limits.
    """
    n_workers = max(1, round((os.cpu_count() or 1) * percent / 100))
    if percent < 100:
        lower_priority(10)
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-n_workers:])
    return n_workers


class LimitedProgress:
    """Progress that cancels the work when the hours end or the machine is unplugged; `obstacle` is the reason."""

    def __init__(self, progress: Progress, hours: str, *, ignore_battery: bool) -> None:
        self._progress, self._hours, self._ignore_battery = progress, hours, ignore_battery
        self._checked = -_CHECK_EVERY_S
        self.obstacle = ""

    def __call__(self, message: str, done: int = 0, total: int = 0, /, **facts: Any) -> None:
        if time.monotonic() - self._checked >= _CHECK_EVERY_S:
            self._checked = time.monotonic()
            self.obstacle = find_obstacle(self._hours, ignore_battery=self._ignore_battery)
        if self.obstacle:
            raise Canceled
        self._progress(message, done, total, **facts)
