"""Shares of the progress bar of a job in which the analysis of files and updates of the models take turns.

The unit is the time to analyze one file. The weight of an update is a rough mean of measured jobs. A share never falls,
and it stays below 1 until the job has ended, because the number of an update's steps is not known in advance.
"""

import time
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from musicsim.progress import Progress

_UPDATE, _UPDATE_PER_SONG = 8.0, 0.15  # weight of an update
_STEP = 0.15  # each step of an update takes this part of the rest
_MAX_SHARE = 0.99


def count_steps(progress: Progress) -> Progress:
    """Return a progress callback for several steps, each with its own count, that adds their common `share`."""
    step, before = "", -_STEP / (1 - _STEP)  # so that the first step begins at 0

    def report(message: str, done: int = 0, total: int = 0, /, **facts: Any) -> None:
        nonlocal step, before
        if message != step:
            step, before = message, before + _STEP * (1 - before)
        share = before + _STEP * (1 - before) * (min(1.0, done / total) if total else 0.0)
        progress(message, done, total, **({"share": share} | facts))

    return report


def part_of(progress: Progress, low: float, high: float) -> Progress:
    """Return a progress callback for a part of a job, from the share `low` of the bar to `high`."""

    def report(message: str, done: int = 0, total: int = 0, /, **facts: Any) -> None:
        part = facts.get("share", done / total if total else 0.0)
        share = min(_MAX_SHARE, low + (high - low) * min(1.0, max(0.0, part)))
        progress(message, done, total, **(facts | {"share": share}))

    return report


class Stages:
    """The parts of a job: `ends` are the numbers of files after which the models are updated.

    `n_songs` songs are in the library already, and `n_done` of the files that the job counts are not analyzed again.
    """

    def __init__(self, progress: Progress, ends: Sequence[int], *, n_songs: int, n_done: int) -> None:
        self._progress, self._n_done, self._total = progress, n_done, n_done + ends[-1]
        self._parts = list(pairwise([0, *ends]))
        self._n_songs = [n_songs + end for end in ends]
        # a part without files changes nothing, unless the library has waiting changes
        updates = [
            _UPDATE + _UPDATE_PER_SONG * n if end > start or not at else 0.0
            for at, ((start, end), n) in enumerate(zip(self._parts, self._n_songs, strict=True))
        ]
        costs = [
            cost for (start, end), update in zip(self._parts, updates, strict=True) for cost in (end - start, update)
        ]
        self._bounds = [sum(costs[:n]) / sum(costs) for n in range(len(costs) + 1)]
        self._update_s: float | None = None  # seconds per song of the last update

    def analyzing(self, at: int) -> Progress:
        """Return the callback for the analysis of a part, whose counts are those of the whole job."""
        (start, end), (low, high) = self._parts[at], self._bounds[2 * at : 2 * at + 2]
        show = part_of(self._progress, low, high)
        still = sum(n for n, part in zip(self._n_songs[at:], self._parts[at:], strict=True) if part[1] > part[0])

        def report(message: str, done: int = 0, total: int = 0, /, **facts: Any) -> None:
            part = (done - self._n_done - start) / (end - start) if end > start else 0.0
            left = facts.get("seconds_left")
            if left is not None and self._update_s is not None:
                facts["seconds_left"] = left + self._update_s * still
            show(message, done, total, **(facts | {"share": part}))

        return report

    def updating(self, at: int) -> Progress:
        """Return the callback for the update after a part; its counts become part of the message."""
        show = part_of(self._progress, *self._bounds[2 * at + 1 : 2 * at + 3])
        began, before, n_songs = time.monotonic(), self._update_s, self._n_songs[at]

        def report(message: str, done: int = 0, total: int = 0, /, **facts: Any) -> None:
            seconds = time.monotonic() - began
            self._update_s = seconds / max(1, n_songs)
            left = None if before is None else before * n_songs - seconds
            facts |= {"songs_per_second": None, "seconds_left": left if left is not None and left >= 1 else None}
            counted = f" ({done:,} of {total:,})" if total else ""
            show(f"{message}{counted}", self._n_done + self._parts[at][1], self._total, **({"share": 0.0} | facts))

        return report
