"""Background jobs: one process each, so that they outlive the tab and the server.

A job's state lies in the library's database; its process (:mod:`musicsim.explorer.job_process`) writes there at most
four times a second. A job whose process has gone without saying so is *interrupted* and can be started again: songs
that were committed are not analysed twice.
"""

import contextlib
import logging
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import musicsim
from musicsim import logs
from musicsim.errors import StorageError, StoreLockedError
from musicsim.hooks import Job, extensions
from musicsim.library import Library
from musicsim.library.stores.jobs import Job as JobRecord

_log = logging.getLogger(__name__)
_START_WITHIN_S = 30.0
MAX_KEPT = 100  # jobs whose output and live lines are kept
_CORE_KINDS = {
    "add": Job("job_process:_add", "Adding songs", uses_pool=True),
    "scan": Job("job_process:_scan", "Scanning folders", uses_pool=True),
    "upgrade": Job("job_process:_upgrade", "Bringing songs up to date", uses_pool=True),
    "demo": Job("refresh.add_music:build_demo", "Composing the demo collection"),
    "refresh": Job("job_process:_refresh", "Updating the models", uses_pool=True),
    "train": Job("job_process:_train", "Training a model"),
    "represent": Job("job_process:_represent", "Computing song features", uses_pool=True),
    "take_model": Job("job_process:_take_model", "Importing a model", uses_pool=True),
    "walk": Job("job_process:_walk", "Learning from playlists"),
    "backup": Job("job_process:_backup", "Backing up the library"),
}
"""Kinds of jobs of the core; targets are below :mod:`musicsim.explorer`."""


def job_kinds() -> dict[str, Job]:
    """All kinds of jobs by name, those of the core and those of the extensions."""
    return _CORE_KINDS | {kind: job for extension in extensions() for kind, job in extension.jobs.items()}


def start(library: Library, kind: str, arguments: Mapping[str, Any] | None = None) -> int:
    """Start a job in a process of its own; returns its id at once.

    Parameters
    ----------
    kind : one of :func:`job_kinds`
    arguments : mapping, JSON values
        "add": paths (list of str), retry (bool), anyway (bool); "scan": folders (list of str, empty for all);
        "demo": seed (int); "refresh": force (bool); "train": name (str), settings (of LearningSettings), use (bool);
        "represent": name (str) and settings (of RepresentationSettings); "take_model": path (str); "walk": none;
        "backup": path (str). Extensions document the arguments of theirs.

    Raises
    ------
    StoreLockedError
        If a job of this library is still running.
    """
    running = current(library)
    if running is not None:
        raise StoreLockedError(f"a job is running in this library ({running.kind}): wait for it or cancel it.")
    if kind not in job_kinds():
        raise ValueError(f"kind={kind!r} should be one of {sorted(job_kinds())}.")
    job_id = library.jobs.create(kind, arguments or {})
    library.jobs.forget_files(job_id - MAX_KEPT)
    log = library.jobs.log_path(job_id)
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", "musicsim", "run-job", str(library.folder), str(job_id)],
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            cwd=Path(musicsim.__file__).parents[1],  # where a checkout that is not installed is found
            start_new_session=True,
        )
    library.jobs.update(job_id, pid=process.pid)
    _children.append(process)
    return job_id


_children: list[subprocess.Popen[bytes]] = []


def _alive(job: JobRecord) -> bool:
    """Whether the process of a job is still there."""
    if job.pid is None:
        return time.time() - job.created_at < _START_WITHIN_S
    own = next((child for child in _children if child.pid == job.pid), None)
    if own is not None:
        return own.poll() is None  # which also lets the system forget a child that has ended
    try:
        os.kill(job.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return _is_job(job.pid)


def _is_job(pid: int) -> bool:
    """Whether a process does a job: numbers of processes are used again, and killed ones keep theirs for a while."""
    process = Path(f"/proc/{pid}")
    try:
        command = (process / "cmdline").read_bytes()
        if not command:  # it is just being started, or has ended and its parent has not asked for it yet
            return (process / "stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
    except (FileNotFoundError, ProcessLookupError):
        return not Path("/proc/self").exists()  # no /proc on this system: the number has to do
    except OSError:
        return True
    return b"run-job" in command


def current(library: Library) -> JobRecord | None:
    """The job at work, None when there is none; one whose process has gone becomes *interrupted*."""
    for job in library.jobs.recent():
        if not job.is_active:
            continue
        if _alive(job):
            return job
        with contextlib.suppress(StorageError):  # of a library that can only be looked at
            library.jobs.update(job.id, state="interrupted", message="stopped before it had finished")
            _log.warning("job %d (%s): interrupted, its process has gone", job.id, logs.Public(job.kind))
    return None


def cancel(library: Library, job_id: int) -> None:
    """Ask a job to stop; what it has done stays."""
    library.jobs.update(job_id, cancel_requested=True)


def finish(library: Library, job_id: int) -> None:
    """Ask a training to stop and keep the best metric so far."""
    library.jobs.update(job_id, finish_requested=True)


def pause(library: Library, job_id: int) -> None:
    """Ask a job to rest after the songs in work."""
    library.jobs.update(job_id, pause_requested=True)


def resume(library: Library, job_id: int) -> None:
    """Let a resting job go on."""
    library.jobs.update(job_id, pause_requested=False)
