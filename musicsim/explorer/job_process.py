"""Process of a background job: calls the function for the job's kind and stores its progress."""

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
from musicsim.explorer.pools import use_pool
from musicsim.explorer.refresh.add_music import add_and_refresh, scan_again
from musicsim.explorer.refresh.fitting import RepresentationSettings
from musicsim.explorer.refresh.learned_model import learn
from musicsim.explorer.refresh.model_catalogue import add_representation, import_model_file
from musicsim.explorer.requests.training import LearningSettings
from musicsim.hooks import extensions
from musicsim.library import AddReport, Library
from musicsim.library.stores.jobs import Job
from musicsim.progress import Canceled
from musicsim.storage import writing_to

_log = logging.getLogger(__name__)
WRITE_EVERY_S = 0.25
_STORED_FACTS = ("failed", "songs_per_second", "seconds_left")


class JobProgress:
    """Progress of a job, stored at most four times per second; obeys requests to cancel, pause or finish early."""

    def __init__(self, library: Library, job_id: int) -> None:
        self._library, self._job_id = library, job_id
        self._written = 0.0
        self._is_enough = False
        self.latest: dict[str, Any] = {}
        self.outcome = ""  # one sentence about the result of the job

    def __call__(self, message: str, done: int = 0, total: int = 0, /, **facts: Any) -> None:
        """Store progress; wait during a pause, and raise Canceled if the job was canceled.

        Values that arrive too soon after the last write are stored with the next one. The first total is written
        immediately, so that the pages show progress even for a short job.
        """
        has_first_total = bool(total) and not self.latest.get("total")
        self.latest |= {"message": message, "done": done, "total": total}
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


def run(library: Library, job_id: int) -> str:
    """Run a job in this process, and return its final state."""
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
    progress = JobProgress(library, job_id)
    library.jobs.update(job_id, state="running", pid=os.getpid(), message="starting")
    try:
        kind = job_kinds()[job.kind]
        with writing_to(library.folder), use_pool(library) if kind.uses_pool else contextlib.nullcontext():
            finished = load_target(job.kind)(library, progress=progress, **job.arguments)
    except Canceled:
        finished = False
    except MusicsimError as error:
        return _fail(library, job_id, str(error))
    except Exception as error:
        _log.exception("job %s (%s) failed", job_id, job.kind)
        message = f"{type(error).__name__}: {error}. Details: {library.jobs.log_path(job_id)}"
        return _fail(library, job_id, message)
    state = "done" if finished else "cancelled"
    last = progress.latest | {
        "message": progress.outcome,
        "seconds_left": None,
    }  # including values that were not stored yet
    library.jobs.update(job_id, state=state, **last)
    return state


def load_target(kind: str) -> Callable[..., bool]:
    """Return the function that runs jobs of this kind."""
    for extension in extensions():
        if kind in extension.jobs:
            return cast(Callable[..., bool], extension.load(extension.jobs[kind].target))
    module, _, name = job_kinds()[kind].target.partition(":")
    return cast(Callable[..., bool], getattr(import_module(f"musicsim.explorer.{module}"), name))


def _fail(library: Library, job_id: int, message: str) -> str:
    try:
        library.jobs.update(job_id, state="failed", message=message, seconds_left=None)
    except StorageError:  # the disk is full; the pages notice that the process has ended
        _log.error("%s", message)
    return "failed"


def _add(library: Library, *, paths: Sequence[str], progress: JobProgress, **options: bool) -> bool:
    return _store_outcome(add_and_refresh(library, paths, progress=progress, **options), progress)


def _scan(library: Library, *, folders: Sequence[str] = (), progress: JobProgress) -> bool:
    return _store_outcome(scan_again(library, folders, progress=progress), progress)


def _store_outcome(scan: AddReport, progress: JobProgress) -> bool:
    progress.outcome = scan.words
    return not scan.cancelled


def _train(
    library: Library, *, settings: Mapping[str, Any], name: str, use: bool = False, progress: JobProgress
) -> bool:
    learn(library, LearningSettings(**settings), name, progress, use=use)
    return True


def _represent(library: Library, *, settings: Mapping[str, Any], name: str, progress: JobProgress) -> bool:
    add_representation(library, RepresentationSettings(**settings), name, progress)
    return True


def _take_model(library: Library, *, path: str, progress: JobProgress) -> bool:
    import_model_file(library, Path(path), progress)
    return True


def _backup(library: Library, *, path: str, progress: JobProgress) -> bool:
    done = back_up(library, Path(path), progress)
    damaged = f" · without damaged models: {', '.join(done.damaged)}" if done.damaged else ""
    progress.outcome = f"{done.n_songs:,} songs · {done.n_bytes / 1e6:,.1f} MB · {path}{damaged}"
    return True
