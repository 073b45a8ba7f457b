"""What the process of a job does: it calls what the job's kind stands for, and writes down how far that is."""

import contextlib
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from musicsim import logs
from musicsim.errors import MusicsimError, StorageError
from musicsim.explorer.health.backups import back_up
from musicsim.explorer.jobs import job_kinds
from musicsim.explorer.playlists.fit import refit_walks
from musicsim.explorer.pools import pooled
from musicsim.explorer.progress import Stopped
from musicsim.explorer.refresh.add_music import add_and_refresh, scan_again
from musicsim.explorer.refresh.fitting import RepresentationSettings
from musicsim.explorer.refresh.learned_model import learn
from musicsim.explorer.refresh.model_catalogue import add_representation, take_model
from musicsim.explorer.refresh.refresh import refresh
from musicsim.explorer.refresh.upgrade import bring_up_to_date
from musicsim.explorer.requests.training import LearningSettings
from musicsim.hooks import extensions
from musicsim.library import AddReport, Library
from musicsim.library.stores.jobs import Job
from musicsim.storage import writing_to

_log = logging.getLogger(__name__)
_WRITE_EVERY_S = 0.25


class _Reporter:
    """Writes a job's progress, not too often, and hears of a cancel or a pause."""

    def __init__(self, library: Library, job_id: int) -> None:
        self._library, self._job_id = library, job_id
        self._written = 0.0
        self._is_enough = False
        self.latest: dict[str, Any] = {}
        self.outcome = ""  # what came of the job, in words

    def __call__(self, **values: Any) -> bool:
        """Store progress; True when the job should stop. Returns only when a pause has ended.

        Values that come too soon after the last write wait for the next one. The first total is written at once, so
        that even the progress of a short job is seen.
        """
        has_first_total = bool(values.get("total")) and not self.latest.get("total")
        self.latest |= values
        if not has_first_total and time.monotonic() - self._written < _WRITE_EVERY_S:
            return False
        self._library.jobs.update(self._job_id, **self.latest)
        job = self._library.jobs.get(self._job_id)
        if job.pause_requested and not job.cancel_requested:
            self._library.jobs.update(self._job_id, state="paused", seconds_left=None, songs_per_second=None)
            while job.pause_requested and not job.cancel_requested:
                time.sleep(_WRITE_EVERY_S)
                job = self._library.jobs.get(self._job_id)
            self._library.jobs.update(self._job_id, state="running")
        self._written = time.monotonic()
        self._is_enough = job.finish_requested
        return job.cancel_requested

    # --- as a Watcher of the training

    def tell(self, message: str, done: int = 0, total: int = 0) -> None:
        """Store progress; raises Stopped when the job was cancelled."""
        if self(message=message, done=done, total=total):
            raise Stopped

    def trace(self, point: Mapping[str, Any]) -> None:
        """Keep a point of the live lines."""
        self._library.jobs.add_trace(self._job_id, point)

    def is_enough(self) -> bool:
        """Whether the best so far is asked for."""
        return self._is_enough


def run(library: Library, job_id: int) -> str:
    """Do a job in this process; returns the state it ended in."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    started = time.monotonic()
    job = library.jobs.get(job_id)
    state = _run(library, job)
    _log.log(
        logging.ERROR if state == "failed" else logging.INFO,
        "job %d (%s): %s in %s %s",
        job_id,
        logs.Public(job.kind),
        logs.Public(state),
        logs.duration(time.monotonic() - started),
        library.jobs.get(job_id).message,
    )
    return state


def _run(library: Library, job: Job) -> str:
    job_id = job.id
    report = _Reporter(library, job_id)
    library.jobs.update(job_id, state="running", pid=os.getpid(), message="starting")
    try:
        kind = job_kinds()[job.kind]
        with writing_to(library.folder), pooled(library) if kind.uses_pool else contextlib.nullcontext():
            finished = _target(job.kind)(library, report=report, **job.arguments)
    except Stopped:
        finished = False
    except MusicsimError as error:
        return _failed(library, job_id, str(error))
    except Exception as error:
        _log.exception("job %s (%s) failed", job_id, job.kind)
        message = f"{type(error).__name__}: {error}. Details: {library.jobs.log_path(job_id)}"
        return _failed(library, job_id, message)
    state = "done" if finished else "cancelled"
    last = report.latest | {"message": report.outcome, "seconds_left": None}  # what came too soon to be written
    library.jobs.update(job_id, state=state, **last)
    return state


def _target(kind: str) -> Callable[..., bool]:
    """Return the function that does jobs of a kind."""
    for extension in extensions():
        if kind in extension.jobs:
            return cast(Callable[..., bool], extension.load(extension.jobs[kind].target))
    module, _, name = job_kinds()[kind].target.partition(":")
    return cast(Callable[..., bool], getattr(import_module(f"musicsim.explorer.{module}"), name))


def _failed(library: Library, job_id: int, message: str) -> str:
    try:
        library.jobs.update(job_id, state="failed", message=message, seconds_left=None)
    except StorageError:  # there is no room even for this: who watches sees that the process has gone
        _log.error("%s", message)
    return "failed"


def _add(library: Library, *, paths: Sequence[str], report: _Reporter, **options: bool) -> bool:
    return _came_of(add_and_refresh(library, paths, report=report, **options), report)


def _scan(library: Library, *, folders: Sequence[str] = (), report: _Reporter) -> bool:
    return _came_of(scan_again(library, folders, report=report), report)


def _came_of(scan: AddReport, report: _Reporter) -> bool:
    """Whether a scan came to its end; the job then says what became of the files."""
    report.outcome = scan.words
    return not scan.cancelled


def _upgrade(library: Library, *, report: _Reporter) -> bool:
    return bring_up_to_date(library, report=report)


def _refresh(library: Library, *, force: bool = False, report: _Reporter) -> bool:
    return refresh(library, force=force, tell=report.tell)


def _train(library: Library, *, settings: Mapping[str, Any], name: str, use: bool = False, report: _Reporter) -> bool:
    learn(library, LearningSettings(**settings), name, report, use=use)
    return True


def _represent(library: Library, *, settings: Mapping[str, Any], name: str, report: _Reporter) -> bool:
    add_representation(library, RepresentationSettings(**settings), name, report.tell)
    return True


def _walk(library: Library, *, report: _Reporter) -> bool:
    refit_walks(library, report.tell)
    return True


def _take_model(library: Library, *, path: str, report: _Reporter) -> bool:
    take_model(library, Path(path), report.tell)
    return True


def _backup(library: Library, *, path: str, report: _Reporter) -> bool:
    done = back_up(library, Path(path), report.tell)
    damaged = f" · without damaged models: {', '.join(done.damaged)}" if done.damaged else ""
    report.outcome = f"{done.n_songs:,} songs · {done.n_bytes / 1e6:,.1f} MB · {path}{damaged}"
    return True
