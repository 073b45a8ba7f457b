"""Make the mixes of a day, and undo them."""

import time
from dataclasses import replace
from datetime import date

from musicsim.errors import NotFoundError
from musicsim.explorer.playlists.walk import GeneratedPlaylist, Walk
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.extensions.daily.options import read_settings
from musicsim.extensions.daily.plans import MINUTES, Plan, Skipped, plan_mixes
from musicsim.extensions.daily.publishing import publish
from musicsim.extensions.daily.store import DailyState, Mix, Run, mix_of, read_state, update_state
from musicsim.library import Library
from musicsim.progress import Progress, no_progress

_MIN_S = 60 * (MINUTES - 2)  # a shorter mix may use songs of the day before
_SEEDS_PER_DAY = 100


def make_daily_mixes(library: Library, day: date | None = None, progress: Progress = no_progress) -> Run:
    """Make and write the mixes of a day, by default today in local time. They replace the last ones.

    Each mix lasts 58 to 62 minutes, or less if too few songs match. Songs of the day before and of the day's other
    mixes are used only if others do not suffice. The same data and day give the same mixes.
    """
    wall, cpu = time.monotonic(), time.process_time()
    day = day or date.today()
    state = read_state(library)
    before = state.before(day.isoformat())
    mixes, skipped = _generate(library, day, before, progress)
    written = publish(library, mixes, state.current, read_settings(library))
    run = Run(
        day.isoformat(), time.time(), time.monotonic() - wall, time.process_time() - cpu, tuple(mixes), tuple(skipped),
        written,
    )  # fmt: skip

    def add(state: DailyState) -> DailyState:  # others may have made or undone mixes in the meantime
        before = state.before(run.day)
        return DailyState((run, before) if before else (run,), run.day)

    update_state(library, add)
    return run


def undo_daily_mixes(library: Library) -> Run | None:
    """Replace the mixes by those of the day before, and return these; None if there are none."""
    state = read_state(library)
    if state.current is None:
        raise NotFoundError("there are no daily mixes to undo. Make them with `musicsim daily`.")
    before = state.runs[1] if len(state.runs) > 1 else None
    mixes = before.mixes if before else ()
    written = publish(library, mixes, state.current, read_settings(library))
    restored = before and replace(before, written=written)

    def undo(now: DailyState) -> DailyState:  # others may have made mixes in the meantime, which stay
        runs = tuple(restored if restored and run == before else run for run in now.runs if run != state.current)
        return DailyState(runs, now.last_day)

    update_state(library, undo)
    return restored


def _generate(library: Library, day: date, before: Run | None, progress: Progress) -> tuple[list[Mix], list[Skipped]]:
    snapshot = take_snapshot(library)
    progress("weighting the songs' common features")
    walk = Walk(snapshot)
    used = {i for mix in before.mixes for i in mix.song_ids} if before else set()
    mixes: list[Mix] = []
    skipped: list[Skipped] = []
    plans = list(plan_mixes(snapshot, day))
    for number, plan in enumerate(plans):
        progress(plan.name, number, len(plans))
        if isinstance(plan, Skipped):
            skipped.append(plan)
            continue
        seed = day.toordinal() * _SEEDS_PER_DAY + number
        drawn = _draw(walk, plan, frozenset(used), seed)
        if drawn is None:
            skipped.append(Skipped(plan.name, "Too few songs match."))
            continue
        mixes.append(mix_of(plan, drawn, seed))
        used |= set(mixes[-1].song_ids)
    progress("writing the mixes", len(plans), len(plans))
    return mixes, skipped


def _draw(walk: Walk, plan: Plan, used: frozenset[int], seed: int) -> GeneratedPlaylist | None:
    """Generate a mix without the used songs, or with some of them if it would be too short."""
    drawn: list[GeneratedPlaylist] = []
    rested = plan.request.rested | used
    for request in (replace(plan.request, exclude=used), replace(plan.request, rested=rested)):
        try:
            drawn.append(walk.generate(request, seed))
        except NotFoundError:  # too few songs for a walk
            continue
        if drawn[-1].duration_s >= _MIN_S:
            return drawn[-1]
    best = max(drawn, key=lambda one: one.duration_s, default=None)
    return best if best is not None and len(best.songs) > 1 else None
