"""Background jobs. Each job has its own process, so it keeps running when the browser tab or the server closes.

The process (:mod:`musicsim.explorer.job_process`) stores the job's state in the library's database. Only one job runs
at a time; the others wait in the database. A job is *interrupted* if its process has crashed. An interrupted job can be
started again; songs that it has already stored are not analyzed twice.
"""

import contextlib
import ctypes
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
from musicsim.errors import StorageError
from musicsim.hooks import JobKind
from musicsim.library import Library
from musicsim.library.stores.jobs import Job
from musicsim.registry import extensions

_log = logging.getLogger(__name__)
START_WITHIN_S = 30.0
_STARTING = 0  # stored instead of a process id until the process has started
_COMMANDS = {b"run-job", b"add", b"scan", b"demo", b"train", b"models"}  # commands that run jobs
_SYNCHRONIZE, _WAIT_TIMEOUT = 0x100000, 0x102  # constants of the Windows API
MAX_KEPT = 100  # number of jobs whose output and charts are kept
_CORE_KINDS = {
    "add": JobKind("job_process:_add", "Adding songs", unit="file", uses_pool=True),
    "scan": JobKind("job_process:_scan", "Scanning folders", unit="file", uses_pool=True),
    "upgrade": JobKind("refresh.add_music:bring_up_to_date", "Bringing songs up to date", unit="file", uses_pool=True),
    "demo": JobKind("refresh.add_music:build_demo", "Composing the demo collection", unit="song"),
    "refresh": JobKind("refresh.refresh:refresh", "Updating the models", uses_pool=True),
    "train": JobKind("job_process:_train", "Training a model", unit="attempt"),
    "represent": JobKind("job_process:_represent", "Computing song features", uses_pool=True),
    "take_model": JobKind("job_process:_take_model", "Importing a model", uses_pool=True),
    "walk": JobKind("playlists.fit:refit_walks", "Learning from playlists"),
    "backup": JobKind("job_process:_backup", "Backing up the library"),
}
"""Job kinds defined by the core; targets are relative to :mod:`musicsim.explorer`."""


def job_kinds() -> dict[str, JobKind]:
    """Return all kinds of jobs, keyed by name, including those of extensions."""
    added = {kind: job for extension in extensions() for kind, job in extension.jobs.items()}
    return _CORE_KINDS | {kind: job for kind, job in added.items() if kind not in _CORE_KINDS}


def start(library: Library, kind: str, arguments: Mapping[str, Any] | None = None) -> int:
    """Start a job of one of the :func:`job_kinds` in its own process, and return its id immediately.

    Arguments are JSON values:

    - "add": paths (list of str), retry (bool), anyway (bool)
    - "scan": folders (list of str, empty for all folders)
    - "demo": seed (int); "refresh": force (bool); "take_model" and "backup": path (str)
    - "train": name (str), settings (of LearningSettings), use (bool)
    - "represent": name (str), settings (of RepresentationSettings)

    If another job is running, the new job waits. If an equal job is already waiting or running, its id is returned.
    """
    if kind not in job_kinds():
        raise ValueError(f"kind={kind!r} must be one of {sorted(job_kinds())}.")
    active(library)  # an equal job whose process has died must not count
    job_id = library.jobs.create(kind, arguments or {}, is_single=True)
    library.jobs.forget_files(job_id - MAX_KEPT)
    active(library)
    return job_id


def _start_process(library: Library, job_id: int) -> None:
    if not library.jobs.claim(job_id, pid=_STARTING):
        return  # another process is starting it, or it was canceled
    log = library.jobs.log_path(job_id)
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", "musicsim", "run-job", str(library.folder), str(job_id)],
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            cwd=Path(musicsim.__file__).parents[1],  # so that Python finds a checkout that is not installed
            start_new_session=True,
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),  # the same for Windows
        )
    library.jobs.update(job_id, pid=process.pid)
    children.append(process)


children: list[subprocess.Popen[bytes]] = []
"""Processes of jobs that this process started."""


def is_alive(job: Job) -> bool:
    """Return whether the process of a job is running, or about to start."""
    if job.pid is None or job.pid == os.getpid():
        return True
    if job.pid == _STARTING:
        return time.time() - job.updated_at < START_WITHIN_S
    own = next((child for child in children if child.pid == job.pid), None)
    if own is not None:
        return own.poll() is None  # also reaps the child if it has ended
    return _is_running_on_windows(job.pid) if sys.platform == "win32" else _is_running(job.pid)


def _is_running_on_windows(pid: int) -> bool:
    """Return whether a process is running. On Windows, ``os.kill`` with 0 would send Ctrl+C instead of asking."""
    kernel = ctypes.windll.kernel32  # type: ignore[attr-defined]
    handle = kernel.OpenProcess(_SYNCHRONIZE, False, pid)
    if not handle:
        return False
    try:
        return bool(kernel.WaitForSingleObject(handle, 0) == _WAIT_TIMEOUT)
    finally:
        kernel.CloseHandle(handle)


def _is_running(pid: int) -> bool:
    """Return whether a process is running a job, and is neither a zombie nor a different process with the same id."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    process = Path(f"/proc/{pid}")
    try:
        command = (process / "cmdline").read_bytes()
        if not command:  # the process is starting, or is a zombie
            return (process / "stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
    except (FileNotFoundError, ProcessLookupError):
        return not Path("/proc/self").exists()  # without /proc, nothing more is known about the process
    except OSError:
        return True
    return b"musicsim" in command and not _COMMANDS.isdisjoint(command.split(b"\0"))


def active(library: Library) -> list[Job]:
    """Return the running job and the waiting jobs, in order; start the first one if none is running.

    A job whose process has ended is marked as *interrupted*.
    """
    line = []
    for job in library.jobs.active():
        if is_alive(job):
            line.append(job)
            continue
        with contextlib.suppress(StorageError):  # the library is read-only
            library.jobs.update(job.id, state="interrupted", message="stopped before it had finished")
            _log.warning("job %d (%s): interrupted, because its process has ended", job.id, logs.Public(job.kind))
    if line and line[0].pid is None:
        with contextlib.suppress(StorageError):
            _start_process(library, line[0].id)
        line[0] = library.jobs.get(line[0].id)
    return line


def current(library: Library) -> Job | None:
    """Return the running job or None; see :func:`active`."""
    return next(iter(active(library)), None)


def cancel(library: Library, job_id: int) -> None:
    """Remove a waiting job, or ask a running job to stop; finished work is kept."""
    if not library.jobs.claim(job_id, state="cancelled"):
        library.jobs.update(job_id, cancel_requested=True)
