"""Views of jobs for pages, also between two runs of their scripts; see ``musicsim/web/watch/watch.js``."""

import math
import time
from collections.abc import Callable

from musicsim.explorer import jobs
from musicsim.explorer.refresh.add_music import FIRST_MAP
from musicsim.explorer.requests.training import RANKING
from musicsim.library import Library
from musicsim.library.stores.jobs import Job
from musicsim.progress import ProgressLine, View
from musicsim.wording import capitalize, clock, count, duration, speed, time_left

MAX_FIRST = 60
"""Number of songs that a page lists before the first map."""
_STEPS_PER_DOUBLING = 4  # the charts of a training are drawn again when they have about a fifth more points


def title_of(job: Job) -> str:
    """Return the title of a job's kind."""
    return jobs.job_kinds()[job.kind].title


def count_units(job: Job, n: int) -> str:
    """Return a number with the noun for the parts of a job, such as files."""
    return count(n, jobs.job_kinds()[job.kind].unit)


def library_facts(library: Library) -> str:
    """Return words about the size of a library."""
    seconds = library.table().columns.duration_s
    return f"{count(len(seconds), 'song')} · {duration(float(seconds.sum()))}"


def view_library(library: Library) -> View:
    """Show a library's songs, whether it has a model, and its running job; `state` follows all its jobs."""
    line, record = jobs.active(library), library.models.active()
    parts = [ProgressLine(library_facts(library))]
    parts += [] if record else [ProgressLine("No model yet")]
    if line:
        job = line[0]
        stage = ": canceling" if job.cancel_requested else ": paused" if job.state == "paused" else ""
        is_counting = job.done < job.total or not job.message
        now = _counted(job) if is_counting else [job.message]
        parts.append(ProgressLine(" · ".join([title_of(job) + stage, *now]), job.share))
    if line[1:]:
        parts.append(ProgressLine(f"{count(len(line) - 1, 'job')} waiting"))
    last = next(iter(library.jobs.recent(1)), None)  # a short job may already have ended
    return View(_state(_ids(line), record and record.id, last and (last.id, last.is_active)), tuple(parts))


def view_job(library: Library, job_id: int, revision: int | None = None) -> View:
    """Show an active job with its speed and time left; with `revision`, `state` follows the library's revision."""
    line = jobs.active(library)
    job = library.jobs.get(job_id)
    state = _state(_ids(line), job.state == "paused", job.pause_requested, job.cancel_requested, revision)
    return View(state, (ProgressLine(_facts(job), job.share),) if job.is_active else ())


def view_first_map(library: Library) -> View:
    """Show what a library without a map waits for; `state` follows the songs that can already be played."""
    job, record = jobs.current(library), library.models.active()
    n_songs = min(MAX_FIRST, len(library.table().columns.duration_s))
    state = _state(job and job.id, record and (record.id, library.revision), n_songs)
    return View(state, (ProgressLine(f"{title_of(job)}: {_await_first_map(job)}"),) if job else ())


def view_training(library: Library, job_id: int) -> View:
    """Show a training; `state` also follows its charts, in steps that grow with them."""
    jobs.active(library)  # updates the state of a job whose process has died
    job = library.jobs.get(job_id)
    points = library.jobs.trace(job.id)
    has_steps = job.arguments["settings"].get("method", RANKING) == RANKING
    step = int(_STEPS_PER_DOUBLING * math.log2(len(points) + 1))
    state = _state(job.is_active, job.cancel_requested, job.finish_requested, step)
    if not job.is_active:
        return View(state)
    status = f"Attempt {job.done + 1:,} of {job.total:,}"
    if job.done >= job.total:
        status = capitalize(job.message or "starting")
    if job.seconds_left is not None:
        status += f" · about {count(max(1, round(job.seconds_left / 60)), 'minute')} left"
    facts = [clock(max(0.0, time.time() - job.created_at))]
    facts += [f"{len(points):,} cuts" if has_steps else f"{len(points):,} tried"]
    facts += [f"gap {points[-1]['gap']:.1%}"] if points and has_steps else []
    status = "Paused" if job.state == "paused" else status
    return View(state, (ProgressLine(status, job.share, job.arguments["name"]), ProgressLine(" · ".join(facts))))


VIEWS: dict[str, Callable[[Library, int, int | None], View]] = {
    "library": lambda library, _job, _revision: view_library(library),
    "job": view_job,
    "first_map": lambda library, _job, _revision: view_first_map(library),
    "training": lambda library, job_id, _revision: view_training(library, job_id),
}
"""The views by name, as functions of a library, the id of a job, and the library's revision."""


def _state(*facts: object) -> str:
    return repr(facts)


def _ids(line: list[Job]) -> list[int]:
    return [job.id for job in line]


def _counted(job: Job) -> list[str]:
    return [f"{job.done:,} of {count_units(job, job.total)}"] if job.total else []


def _facts(job: Job) -> str:
    facts = _counted(job)
    facts += [speed(job.songs_per_second)] if job.songs_per_second else []
    facts += [time_left(job.seconds_left)] if job.seconds_left is not None else []
    facts += [f"{job.failed} failed"] if job.failed else []
    if job.state == "paused":
        facts += ["paused"]
    elif job.message:
        facts += [job.message]
    return " · ".join(facts)


def _await_first_map(job: Job) -> str:
    """Return words about what the page waits for: songs, or the model of the first ones."""
    is_early = job.kind in ("add", "scan", "demo") and job.total >= 2 * FIRST_MAP
    if job.total and job.done >= (FIRST_MAP if is_early else job.total):
        step = f" ({job.message})" if job.message else ""
        return f"the first map is being computed{step}. This takes up to a minute; you can already play the songs."
    when = f"after the first {FIRST_MAP} songs" if is_early else "when the job has finished"
    return f"you can play each song as soon as it appears here. Similar songs follow {when}."
