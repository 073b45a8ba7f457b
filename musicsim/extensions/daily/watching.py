"""Watch a library: find new, changed and missing files, and start the jobs for them and for the mixes of the day."""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

from musicsim import addresses
from musicsim.explorer import JobProgress, jobs, scan_again
from musicsim.extensions.daily.mixes import make_daily_mixes, read_state, summarize
from musicsim.extensions.daily.options import DailySettings, LimitedProgress, find_obstacle, limit_cpu, read_settings
from musicsim.library import FoundFiles, Library, find_audio, is_below, remote_folders


def start_mixes(library: Library) -> int:
    """Start the job for today's mixes at the owner's request, at any hour and also on battery; return its id."""
    return jobs.start(library, "daily", {"hours": "", "cpu": read_settings(library).cpu, "ignore_battery": True})


def pick_up(library: Library, *, folders: Sequence[str], progress: JobProgress, **limits: Any) -> None:
    """Scan folders within the limits, and update the models; stops when the limits do not allow it any more."""
    with _within_limits(progress, **limits) as (limited, n_workers):
        progress.end_scan(scan_again(library, folders, n_workers=n_workers, progress=limited))


def make_mixes(library: Library, *, progress: JobProgress, **limits: Any) -> None:
    """Make the mixes of the day within the limits."""
    with _within_limits(progress, **limits) as (limited, _):
        progress.outcome = summarize(make_daily_mixes(library, progress=limited))


@contextmanager
def _within_limits(
    progress: JobProgress, *, hours: str, cpu: int, ignore_battery: bool
) -> Iterator[tuple[LimitedProgress, int]]:
    """Limit a job, whose outcome becomes the limit that ends it; yield its progress and the number of workers."""
    limited = LimitedProgress(progress, hours, ignore_battery=ignore_battery)
    try:
        yield limited, limit_cpu(cpu)
    finally:
        progress.outcome = limited.obstacle or progress.outcome


class FileChanges(NamedTuple):
    folders: list[str]  # the library's folders and files that changed
    digest: str  # hash of the changes, which tells whether they were already tried


def find_changes(library: Library, roots: Sequence[Path]) -> FileChanges:
    """Compare the sizes and times of all files in some of the library's folders with the library; 1 kB per file.

    Addresses such as ``s3://…`` are left out, because listing them may cost money. A folder that does not exist is left
    out, because its drive may be unplugged; a scan would mark its songs as missing.
    """
    stored = {
        path: None if file.is_missing else (file.size, file.mtime_ns)
        for path, file in library.files.list_known().items()
    }
    stored |= {path: (size, mtime_ns) for path, (size, mtime_ns, *_) in library.files.list_failed().items()}
    remote = remote_folders(library.folder)
    folders: list[str] = []
    digest = blake2b(digest_size=16)
    for root in roots:
        if addresses.is_address(root) or not root.exists():
            continue
        found = find_audio([root], absent_ok=True)
        changed = [
            f"{file.path} {file.size} {file.mtime_ns}" for file in found.files if stored.get(file.path) != file[1:]
        ]
        changed += [f"{path} is gone" for path in _find_gone(root, found, stored, remote)]
        if changed:
            folders.append(os.fspath(root))
            digest.update("\0".join(sorted(changed)).encode("utf-8", "surrogateescape"))
    return FileChanges(folders, digest.hexdigest())


def _find_gone(
    root: Path, found: FoundFiles, stored: dict[Path, tuple[int, int] | None], remote: list[Path]
) -> list[Path]:
    existing = {file.path for file in found.files}
    return [
        path
        for path, state in stored.items()
        if state is not None
        and path not in existing
        and is_below(path, root)
        and not found.unread(path)
        and not any(is_below(path, folder) for folder in remote)
    ]


class Step(NamedTuple):
    words: str  # a sentence about what happens now
    is_last: bool = True  # False while a job is running, so that another step may be due soon


class Watcher:
    """Starts at most one job per :meth:`step`, and only if no other job is running.

    It watches all folders and makes mixes every day; with `obeys_switches`, only if the settings say so.
    """

    def __init__(self, library: Library, *, ignore_battery: bool = False, obeys_switches: bool = False) -> None:
        self.library, self._ignore_battery, self._obeys_switches = library, ignore_battery, obeys_switches
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
        roots = [root for root in self.library.files.roots() if not self._obeys_switches or settings.watches(root)]
        if roots and time.monotonic() - self._checked >= 60 * settings.every:
            self._checked = time.monotonic()
            changes = find_changes(self.library, roots)
            if changes.folders and not self._is_tried(changes.digest):
                folders = {"folders": changes.folders}
                self._jobs[changes.digest] = jobs.start(self.library, "pickup", folders | limits)
                return Step(f"Picking up new files in {', '.join(changes.folders)}.", is_last=False)
        return self._step_to_mixes(settings, limits)

    def _step_to_mixes(self, settings: DailySettings, limits: dict[str, Any]) -> Step:
        if self._obeys_switches and not settings.has_mixes(self.library):
            return Step("There are no new files.")
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
