"""From folders to songs: find files, see what is new, analyse it in worker processes, enter each as it comes.

A bad file costs that file: its reason is listed (:meth:`FileStore.failures`) and the scan goes on. A file that
stands unchanged since it was added, or since it failed, is not opened again; one that failed through no fault of its
own is. A full disk is the fault of no file: it ends the scan. Files that have gone are marked
missing; their songs keep all that was said of them until the file is back, here or elsewhere.

The hook ``folder_of_remote_songs`` is the name of a folder in the library's folder. Songs of other places are listed
below it without files, and a scan does not miss them.
"""

import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from musicsim.addresses import located
from musicsim.audio import FEATURE_VERSION
from musicsim.errors import MusicsimError, NoSoundError, StorageError
from musicsim.hooks import load_hooks
from musicsim.library.processes.pools import LocalPool, Pool
from musicsim.library.processes.workers import Limits, OverTimeError, WorkerDied
from musicsim.library.scan.analysis import Analysis, Parcel, Same, Skipped, Task, analyse, analyse_apart
from musicsim.library.scan.catalogue import enter_known, enter_song
from musicsim.library.scan.files import Found, FoundFile, find_audio
from musicsim.library.scan.forecast import Forecast
from musicsim.library.scan.target import ScanTarget
from musicsim.library.stores.files import ERROR, NO_SOUND, SHORT, SKIPPED, Failure, KnownFile, absolute
from musicsim.progress import Canceled, Progress, no_progress

_log = logging.getLogger(__name__)

# Clips cut to one length have one size; the hashes of all of them, sent with every file, would cost more than decoding.
_MAX_SAME_SIZE = 1_000


@dataclass(slots=True)
class AddReport:
    """What came of a scan."""

    n_found: int = 0  # files that were looked at
    n_added: int = 0  # songs that are new
    n_unchanged: int = 0  # files that were not opened
    n_known: int = 0  # files that hold a song which the library had already: moved, copied or with other tags
    n_skipped: int = 0  # files that are taken for no song
    n_ignored: int = 0  # audio files and whole folders that a `.musicsimignore` left out
    # files that have gone since the last scan, and files that are here again
    n_missing: int = 0
    n_back: int = 0
    # sources that are not there at all: a drive that is not plugged in
    absent: list[Path] = field(default_factory=list)
    cancelled: bool = False
    seconds: float = 0.0  # spent on analysing
    # files that could not be added, or were skipped, this time
    failures: list[Failure] = field(default_factory=list)

    @property
    def words(self) -> str:
        """What became of the files, each counted once."""
        counts = {
            "added": self.n_added,
            "already here (copied, moved or with other tags)": self.n_known,
            "unchanged": self.n_unchanged,
            "skipped": self.n_skipped,
            "failed": len(self.failures) - self.n_skipped,
        }
        return " · ".join(f"{n:,} {what}" for what, n in counts.items() if n)


class Scan:
    """One pass over folders and files: they are listed at once, and analyzed by :meth:`run`, in parts if need be.

    A file among `sources` is taken however short it is. `retry` opens files again that failed before and have
    not changed; `anyway` takes short and silent files, too; `absent_ok` goes on if a source does not exist, so that its
    songs become missing. `n_workers` are as the library's settings say by default; a library with a pool uses that.
    `todo` lists what is left, `report` counts what was done. Memory: 1 kB for each file listed, 0.5 kB for each known.

    Raises LibraryError if a source does not exist; StoreLockedError if another process is adding to this library.
    """

    def __init__(
        self,
        library: ScanTarget,
        sources: str | Path | Sequence[str | Path],
        *,
        retry: bool = False,
        anyway: bool = False,
        absent_ok: bool = False,
        n_workers: int | None = None,
    ) -> None:
        self.library = library
        listed = [sources] if isinstance(sources, str | Path) else list(sources)
        self.sources = [absolute(source) for source in listed]
        self._named = set(self.sources)
        self._settings = library.settings
        self._anyway = anyway
        self._pool = library.pool or LocalPool(n_workers or self._settings["n_workers"])
        found = find_audio(self.sources, absent_ok=absent_ok)
        with library.exclusive():
            known = library.files.known()
            self.report = AddReport(n_found=len(found.files), n_ignored=found.n_ignored, absent=list(found.absent))
            self._mark(found, known)
            self.todo = self._plan(found, known, retry)
        self.report.n_unchanged = len(found.files) - len(self.todo)
        self._n_total = len(self.todo)

    def _mark(self, found: Found, known: dict[Path, KnownFile]) -> None:
        """Note what has gone, what is back, and which folders cannot be read."""
        files = self.library.files
        here = {file.path for file in found.files}
        elsewhere = [self.library.folder / name for name in load_hooks("folder_of_remote_songs")]

        def gone(path: Path) -> bool:
            looked_for = path in self._named or not self._named.isdisjoint(path.parents)
            return (
                path not in here
                and looked_for
                and not found.unread(path)
                and not any(folder in path.parents for folder in elsewhere)
            )

        missing = [path for path, file in known.items() if not file.is_missing and gone(path)]
        back = [file.path for file in found.files if file.path in known and known[file.path].is_missing]
        self.report.n_missing, self.report.n_back = len(missing), len(back)
        files.mark(missing=missing, back=back, unfailed=[path for path in files.failed() if gone(path)])
        for path, reason in found.problems:
            _reject(self.library, self.report, Failure(path, reason), None)

    def _plan(self, found: Found, known: dict[Path, KnownFile], retry: bool) -> list[Task]:
        failed = self.library.files.failed()
        store = self.library.frame_files
        kept = store.kept() if self._settings["keep_frames"] else None
        if kept is not None and self._settings["aspects"]:
            kept &= store.kept_aspects()
        by_size: dict[int, set[str]] = {}
        for file in known.values():
            if self._is_current(file, kept):
                by_size.setdefault(file.size, set()).add(file.content_hash)
        hashes = {size: tuple(same) for size, same in by_size.items() if len(same) <= _MAX_SAME_SIZE}

        def is_done(file: FoundFile) -> bool:
            stat = (file.size, file.mtime_ns)
            if file.path in known:
                seen = known[file.path]
                return (seen.size, seen.mtime_ns) == stat and self._is_current(seen, kept)
            if file.path not in failed or retry:
                return False
            size, mtime_ns, kind, duration_s = failed[file.path]
            wanted = kind in SKIPPED and (self._anyway or file.path in self._named)
            long_enough = kind == SHORT and (duration_s or 0.0) >= self._settings["shortest_s"]
            return (size, mtime_ns) == stat and not wanted and not long_enough

        def task(file: FoundFile) -> Task:
            # a song of the library stays one, whatever the rule for new ones says by now
            is_wanted = self._anyway or file.path in known or file.path in self._named
            shortest_s = 0.0 if is_wanted else self._settings["shortest_s"]
            rules = (shortest_s, is_wanted, self._settings["aspects"])
            return Task(file.path, file.size, store.folder, hashes.get(file.size, ()), *rules)

        return [task(file) for file in found.files if not is_done(file)]

    @staticmethod
    def _is_current(file: KnownFile, kept: set[str] | None) -> bool:
        return file.feature_version == FEATURE_VERSION and (kept is None or file.content_hash in kept)

    def run(self, progress: Progress = no_progress, *, n_files: int | None = None) -> bool:
        """Analyse the next `n_files` files, or all that are left; False when it was stopped.

        `progress` is called after each file and at least twice a second, with the name of the file that was finished
        last. If it cancels the scan, what is done stays.

        Raises StorageError if the library's folder takes no more; what is done stays.
        """
        part, self.todo = self.todo[:n_files], self.todo[n_files:] if n_files is not None else []
        if part:
            with self.library.exclusive():
                forecast = Forecast((task.path, task.size) for task in [*part, *self.todo])
                left = len(part) + len(self.todo)
                before = self.report.n_unchanged + self._n_total - left
                counts = _Counts(before, self.report.n_unchanged + self._n_total, forecast, progress)
                try:
                    _analyse_all(self.library, part, self.report, counts, self._pool)
                except StorageError:
                    self._sweep()  # what the workers were writing takes room
                    raise
        return not self.report.cancelled

    def finish(self) -> None:
        """Forget old places of moved songs, songs whose files hold other music now, and frames of neither."""
        with self.library.exclusive():
            self.library.files.tidy()
            if self._n_total:
                self._sweep()

    def _sweep(self) -> None:
        self.library.frame_files.sweep(self.library.content_hashes())


@dataclass(slots=True)
class _Counts:
    """The progress of a scan."""

    done: int
    total: int
    forecast: Forecast
    progress: Progress
    current: str = ""

    def show(self, report: AddReport) -> bool:
        """Show the progress; return True if the scan was canceled."""
        started = time.monotonic()
        try:
            self.progress(
                self.current,
                self.done,
                self.total,
                failed=len(report.failures) - report.n_skipped,
                skipped=report.n_skipped,
                songs_per_second=self.forecast.songs_per_second,
                seconds_left=self.forecast.seconds_left,
            )
        except Canceled:
            return True
        self.forecast.rest(time.monotonic() - started)  # a progress that waits is a pause
        return False


def _analyse_all(library: ScanTarget, tasks: Iterable[Task], report: AddReport, counts: _Counts, pool: Pool) -> None:
    limits = library.file_limits
    started = time.monotonic()
    # the transform of fluctuation is loaded when it is used: 20 MB, which workers share
    preload = ("scipy.fft",)
    function = analyse if pool.shares_disk else analyse_apart
    with closing(pool.outcomes(function, tasks, limits=limits, preload=preload)) as items:
        for item in items:
            if item is not None:
                task, outcome = item
                _enter(library, task, outcome, report, limits)
                counts.done += 1
                counts.current = task.path.name
                counts.forecast.done(task.path, task.size, getattr(outcome, "busy_s", 0.0))
            if counts.show(report):
                report.cancelled = counts.done < counts.total
                break
    report.seconds += time.monotonic() - started


def _enter(library: ScanTarget, task: Task, outcome: Any, report: AddReport, limits: Limits) -> None:
    if isinstance(outcome, Parcel):
        outcome = outcome.unpack(library.frame_files)
    if isinstance(outcome, Analysis):
        is_new = enter_song(library, task.path, outcome)
        report.n_added += is_new
        report.n_known += not is_new
    elif isinstance(outcome, Same):
        report.n_known += enter_known(library, task.path, outcome)
    elif isinstance(outcome, StorageError):
        raise outcome
    elif isinstance(outcome, Skipped):
        report.n_skipped += 1
        failure = Failure(task.path, outcome.reason, outcome.kind)
        _reject(library, report, failure, (outcome.size, outcome.mtime_ns), outcome.duration_s)
    else:
        kind = NO_SOUND if isinstance(outcome, NoSoundError) else ERROR
        failure = Failure(task.path, failure_reason(task.path, outcome, limits), kind)
        is_final = outcome.is_crash if isinstance(outcome, WorkerDied) else not isinstance(outcome, OSError)
        stat = None
        if is_final:  # else another attempt may succeed
            with suppress(OSError):
                status = located(task.path).stat()
                stat = status.st_size, status.st_mtime_ns
        _reject(library, report, failure, stat)


def _reject(
    library: ScanTarget,
    report: AddReport,
    failure: Failure,
    stat: tuple[int, int] | None,
    duration_s: float | None = None,
) -> None:
    """List a file that was not added. It is opened again once its size or time differ; without `stat` by any scan."""
    report.failures.append(failure)
    size, mtime_ns = stat or (-1, -1)
    library.files.reject(failure, size=size, mtime_ns=mtime_ns, duration_s=duration_s)


def failure_reason(path: Path, error: BaseException, limits: Limits) -> str:
    """One sentence on why nothing came of a file."""
    if isinstance(error, MusicsimError):
        return str(error)
    if isinstance(error, WorkerDied):
        if error.is_crash:
            reason = f"the decoder crashed twice (exit code {error.exit_code}). Re-encode the file."
        else:
            reason = "not analysed this time: the system stopped it twice, as when memory runs out. Scan again."
    elif isinstance(error, OverTimeError):
        reason = f"reading took more than {limits.seconds:g} s and was stopped. Re-encode the file."
    elif isinstance(error, MemoryError):
        reason = f"reading took more than {limits.memory_mb} MB of memory and was stopped. Re-encode the file."
    elif isinstance(error, OSError):
        reason = f"cannot be read ({error.strerror or error}). Check that the file is there and may be read."
    else:
        _log.error("%s: unexpected error", path, exc_info=error)
        reason = f"{type(error).__name__}: {error}"
    return f"{path}: {reason}"


def add(
    library: ScanTarget,
    sources: str | Path | Sequence[str | Path],
    *,
    progress: Progress = no_progress,
    n_workers: int | None = None,
    retry: bool = False,
    anyway: bool = False,
    absent_ok: bool = False,
) -> AddReport:
    """Analyse the audio files below the sources and add them to a library; options as of :class:`Scan`.

    Sources are kept among the library's roots. `progress` is as of :meth:`Scan.run`.

    Raises LibraryError if a source does not exist; StoreLockedError if another process is adding to this library;
    StorageError if the library's folder takes no more, and what is done stays.
    """
    scan = Scan(library, sources, retry=retry, anyway=anyway, absent_ok=absent_ok, n_workers=n_workers)
    library.files.add_roots(scan.sources)
    if scan.run(progress):
        scan.finish()
    return scan.report


def add_stream(
    library: ScanTarget,
    paths: Iterable[Path],
    planned: Sequence[Path],
    report: AddReport,
    *,
    progress: Progress = no_progress,
) -> None:
    """Analyse and add files as an iterable brings them, counting into `report`; see :func:`add`.

    It is taken from only when a worker has room; `planned` is what will come, for the time left.
    """

    def tasks() -> Iterator[Task]:
        for path in paths:
            yield Task(path, 1, library.frame_files.folder, aspects=library.settings["aspects"])

    counts = _Counts(0, len(planned), Forecast((path, 1) for path in planned), progress)
    with library.exclusive():
        _analyse_all(library, tasks(), report, counts, LocalPool(1))
