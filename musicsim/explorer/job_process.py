"""The process of a background job, which calls the function for the job's kind."""

import contextlib
import logging
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from musicsim import logs
from musicsim.errors import MusicsimError, StoreLockedError
from musicsim.explorer.job_progress import WRITE_EVERY_S, JobProgress, track
from musicsim.explorer.jobs import job_kinds
from musicsim.explorer.pools import use_pool
from musicsim.explorer.refresh.add_music import add_and_refresh, scan_again
from musicsim.explorer.refresh.fitting import RepresentationSettings
from musicsim.explorer.refresh.learned_model import learn
from musicsim.explorer.refresh.model_catalogue import add_representation, import_model_file
from musicsim.explorer.requests.training import LearningSettings
from musicsim.library import Library
from musicsim.library.archive.backups import back_up
from musicsim.library.stores.jobs import Job
from musicsim.progress import Canceled
from musicsim.registry import extensions
from musicsim.storage import writing_to
from musicsim.wording import count

_log = logging.getLogger(__name__)


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
    try:
        kind = job_kinds()[job.kind]
        with (
            track(library, job.id) as progress,
            writing_to(library.folder),
            use_pool(library) if kind.uses_pool else contextlib.nullcontext(),
        ):
            if _call(library, job, progress) is False:
                raise Canceled
    except Canceled:
        return "cancelled"
    except MusicsimError:
        return "failed"
    except Exception:
        _log.exception("job %s (%s) failed", job.id, job.kind)
        return "failed"
    return "done"


def _call(library: Library, job: Job, progress: JobProgress) -> bool | None:
    """Call the function for the job's kind; retry as long as another process is writing to the library."""
    while True:
        try:
            return load_target(job.kind)(library, progress=progress, **job.arguments)
        except StoreLockedError:
            time.sleep(WRITE_EVERY_S)  # sleep first, because progress that arrives too soon is not stored
            progress("Waiting for another musicsim process. The job starts afterwards.")


def load_target(kind: str) -> Callable[..., bool | None]:
    """Return the function that runs jobs of this kind."""
    job = job_kinds()[kind]
    for extension in extensions():
        if extension.jobs.get(kind) is job:
            return cast(Callable[..., bool | None], extension.load(job.target))
    module, _, name = job.target.partition(":")
    return cast(Callable[..., bool | None], getattr(import_module(f"musicsim.explorer.{module}"), name))


def _add(library: Library, *, paths: Sequence[str], progress: JobProgress, **options: bool) -> None:
    progress.end_scan(add_and_refresh(library, paths, progress=progress, **options))


def _scan(library: Library, *, folders: Sequence[str] = (), progress: JobProgress) -> None:
    progress.end_scan(scan_again(library, folders, progress=progress))


def _train(
    library: Library, *, settings: Mapping[str, Any], name: str, use: bool = False, progress: JobProgress
) -> None:
    learn(library, LearningSettings(**settings), name, progress, use=use)


def _represent(library: Library, *, settings: Mapping[str, Any], name: str, progress: JobProgress) -> None:
    add_representation(library, RepresentationSettings(**settings), name, progress)


def _take_model(library: Library, *, path: str, progress: JobProgress) -> None:
    import_model_file(library, Path(path), progress)


def _backup(library: Library, *, path: str, progress: JobProgress) -> None:
    done = back_up(library, Path(path), progress)
    damaged = f" · without damaged models: {', '.join(done.damaged)}" if done.damaged else ""
    progress.outcome = f"{count(done.n_songs, 'song')} · {done.n_bytes / 1e6:,.1f} MB · {path}{damaged}"
