"""The jobs: pick up new files, and make the mixes of the day."""

from collections.abc import Sequence

from musicsim.explorer import jobs
from musicsim.explorer.job_progress import JobProgress
from musicsim.explorer.refresh.add_music import scan_again
from musicsim.extensions.daily.limits import LimitedProgress, limit_cpu
from musicsim.extensions.daily.making import make_daily_mixes
from musicsim.extensions.daily.options import read_settings
from musicsim.extensions.daily.rendering import summarize
from musicsim.library import Library


def start_mixes(library: Library) -> int:
    """Start the job for today's mixes at the owner's request, at any hour and also on battery; return its id."""
    return jobs.start(library, "daily", {"hours": "", "cpu": read_settings(library).cpu, "ignore_battery": True})


def pick_up(
    library: Library, *, folders: Sequence[str], hours: str, cpu: int, ignore_battery: bool, progress: JobProgress
) -> None:
    """Scan folders within the limits, and update the models; stops when the limits do not allow it any more."""
    limited = LimitedProgress(progress, hours, ignore_battery=ignore_battery)
    try:
        progress.end_scan(scan_again(library, folders, n_workers=limit_cpu(cpu), progress=limited))
    finally:
        progress.outcome = limited.obstacle or progress.outcome


def make_mixes(library: Library, *, hours: str, cpu: int, ignore_battery: bool, progress: JobProgress) -> None:
    """Make the mixes of the day within the limits."""
    limit_cpu(cpu)
    limited = LimitedProgress(progress, hours, ignore_battery=ignore_battery)
    try:
        progress.outcome = summarize(make_daily_mixes(library, progress=limited))
    finally:
        progress.outcome = limited.obstacle or progress.outcome
