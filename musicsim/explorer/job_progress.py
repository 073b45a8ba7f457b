"""Progress of a job, which the job's process stores and the pages show."""

import logging
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from musicsim import library as libraries
from musicsim.errors import MusicsimError, StorageError
from musicsim.explorer import jobs
from musicsim.library import Library
from musicsim.progress import Canceled, Progress, no_progress

_log = logging.getLogger(__name__)
WRITE_EVERY_S = 0.25
WAITS = "Waiting for the current job. This one starts afterwards."
_STORED_FACTS = ("failed", "songs_per_second", "seconds_left")  # and `share`


class JobProgress:
    """Stores a job's progress at most four times per second, and obeys requests to cancel, pause or finish early."""

    def __init__(self, library: Library, job_id: int, show: Progress = no_progress) -> None:
        self._library, self._job_id, self._show = library, job_id, show
        self._written = 0.0
        self._is_enough = False
        self.latest: dict[str, Any] = {}
        self.outcome = ""  # one sentence about the result of the job

    def __call__(self, message: str, done: int = 0, total: int = 0, /, **facts: Any) -> None:
        """Store progress; wait during a pause, and raise Canceled if the job was canceled.

        The bar shows the fact `share`, which never falls; without it, the finished parts.
        Values that arrive too soon after the last write are stored by the next write. The first total is stored
        immediately, so that the pages show progress even for a short job.
        """
        before = self.latest.get("share", 0.0)
        counted = min(1.0, done / total) if total else before
        facts["share"] = max(before, facts["share"]) if "share" in facts else counted
        self._show(message, done, total, **facts)
        has_first_total = bool(total) and not self.latest.get("total")
        self.latest |= {"message": message, "done": done, "total": total, "share": facts["share"]}
        self.latest |= {name: facts[name] for name in _STORED_FACTS if name in facts}
        if not has_first_total and time.monotonic() - self._written < WRITE_EVERY_S:
            return
        self._library.jobs.update(self._job_id, **self.latest)
        job = self._library.jobs.get(self._job_id)
        if job.pause_requested and not job.cancel_requested:
            self._library.jobs.update(self._job_id, state="paused", seconds_left=None, songs_per_second=None)
            while job.pause_requested and not job.cancel_requested:
                time.sleep(WRITE_EVERY_S)
                job = self._library.jobs.get(self._job_id)
            self._library.jobs.update(self._job_id, state="running")
        self._written = time.monotonic()
        self._is_enough = job.finish_requested
        if job.cancel_requested:
            raise Canceled

    def trace(self, point: Mapping[str, Any]) -> None:
        """Store a point of the live chart."""
        self._library.jobs.add_trace(self._job_id, point)

    def is_enough(self) -> bool:
        """Return whether the training should stop and keep the best metric so far."""
        return self._is_enough

    def end_scan(self, report: "libraries.AddReport") -> None:
        """Store the outcome of a scan; raises Canceled if it was canceled."""
        self.outcome = report.words
        if report.canceled:
            raise Canceled


@contextmanager
def track(library: Library, job_id: int, show: Progress = no_progress, *, waits: bool = False) -> Iterator[JobProgress]:
    """Store the state, progress and outcome of a job that this process runs, and start the next job at the end.

    If `waits` is True, first wait for the jobs before this one.
    """
    progress, state = JobProgress(library, job_id, show), "interrupted"
    try:
        while waits and (first := jobs.current(library)) is not None and first.id != job_id:
            progress(WAITS)
            time.sleep(WRITE_EVERY_S)
        library.jobs.update(job_id, state="running", pid=os.getpid(), message="starting")
        yield progress
        state = "done"
    except (Canceled, KeyboardInterrupt):
        state = "cancelled"
        raise
    except MusicsimError as error:
        state, progress.outcome = "failed", str(error)
        raise
    except Exception as error:
        state = "failed"
        progress.outcome = f"{type(error).__name__}: {error}. Details: {library.jobs.log_path(job_id)}"
        raise
    finally:
        last = progress.latest | {"message": progress.outcome, "seconds_left": None}  # `latest` may not be stored yet
        try:
            library.jobs.update(job_id, state=state, **last)
            if state != "interrupted":
                jobs.current(library)
        except StorageError:  # the disk is full; the pages will notice that the process has ended
            _log.error("%s", progress.outcome)
