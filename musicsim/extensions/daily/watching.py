"""Watch a library: start jobs for new files and for the mixes of the day."""

import time
from datetime import date
from typing import NamedTuple

from musicsim.explorer import jobs
from musicsim.extensions.daily.changes import find_changes
from musicsim.extensions.daily.limits import find_obstacle
from musicsim.extensions.daily.options import DailySettings
from musicsim.extensions.daily.store import read_state
from musicsim.library import Library


class Step(NamedTuple):
    words: str  # a sentence about what happens now
    is_last: bool = True  # False while a job is running, so that another step may be due soon


class Watcher:
    """Starts at most one job per :meth:`step`, and only if no other job is running."""

    def __init__(self, library: Library, *, ignore_battery: bool = False) -> None:
        self.library, self._ignore_battery = library, ignore_battery
        self._checked = float("-inf")  # monotonic time of the last check for new files
        self._jobs: dict[str, int] = {}  # ids of jobs, keyed by the digest of the changes or by the day

    def step(self, settings: DailySettings) -> Step:
        """Start the next job that is due. Nothing is read or written outside the hours or on battery."""
        obstacle = find_obstacle(settings.hours, ignore_battery=self._ignore_battery)
        if obstacle:
            return Step(obstacle)
        running = jobs.current(self.library)
        if running is not None:
            return Step(f"{jobs.job_kinds()[running.kind].title}.", is_last=False)
        limits = {"hours": settings.hours, "cpu": settings.cpu, "ignore_battery": self._ignore_battery}
        if time.monotonic() - self._checked >= 60 * settings.every:
            self._checked = time.monotonic()
            changes = find_changes(self.library)
            if changes.folders and not self._is_tried(changes.digest):
                folders = {"folders": changes.folders}
                self._jobs[changes.digest] = jobs.start(self.library, "pickup", folders | limits)
                return Step(f"Picking up new files in {', '.join(changes.folders)}.", is_last=False)
        today = date.today().isoformat()
        if self.library.models.active() is None:
            return Step("There are no new files, and no songs for mixes.")
        if today == read_state(self.library).last_day or self._is_tried(today):
            return Step("There are no new files, and today's mixes are made.")
        self._jobs[today] = jobs.start(self.library, "daily", limits)
        return Step("Making today's mixes.", is_last=False)

    def _is_tried(self, key: str) -> bool:
        """Return whether the job for some changes or a day is over; one that the limits stopped may start again."""
        if key not in self._jobs:
            return False
        job = self.library.jobs.get(self._jobs[key])
        return job.state in ("done", "failed") or job.cancel_requested
