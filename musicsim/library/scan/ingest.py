"""Scans: find files, analyze new and changed ones in worker processes, and add each song once it is ready.

A bad file is listed with the reason (:meth:`FileStore.failures`), and the scan continues. Unchanged files are not
opened again if they were added, or if they failed because of their content. Files that no longer exist are marked as
missing, except in the folders of songs on servers.
"""

import time
from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from musicsim.addresses import resolve_address
from musicsim.audio import FEATURE_VERSION
from musicsim.errors import NoSoundError, StorageError
from musicsim.hooks import LibraryNetworks
from musicsim.library.processes.pools import LocalPool, WorkerPool
from musicsim.library.processes.workers import Limits, WorkerDied
from musicsim.library.scan.analysis import Analysis, AnalysisTask, Parcel, Same, SkippedFile, analyze, analyze_apart
from musicsim.library.scan.catalogue import ScanTarget, enter_known, enter_song
from musicsim.library.scan.failures import failure_reason
from musicsim.library.scan.files import FoundFile, FoundFiles, find_audio, remote_folders
from musicsim.library.scan.forecast import Forecast
from musicsim.library.scan.networks import load_networks
from musicsim.library.stores.files import ERROR, NO_SOUND, SHORT, SKIPPED, Failure, KnownFile, absolute
from musicsim.progress import Canceled, Progress, no_progress
from musicsim.wording import count

# Clips of the same length have the same size; sending all their hashes with every file would cost more than decoding.
_MAX_SAME_SIZE = 1_000


@dataclass(slots=True)
class AddReport:
    n_found: int = 0  # files
    n_added: int = 0  # new songs
    n_unchanged: int = 0  # number of files that were not opened
    n_known: int = 0  # number of files of known songs: moved, copied or with changed tags
    n_skipped: int = 0  # number of short and silent files
    n_ignored: int = 0  # number of audio files and whole folders that a `.musicsimignore` excludes
    n_missing: int = 0  # number of files that disappeared since the last scan
    n_back: int = 0  # number of missing files that exist again
    absent: list[Path] = field(default_factory=list)  # sources that do not exist, such as an unplugged drive
    canceled: bool = False
    seconds: float = 0.0  # duration of the analysis
    failures: list[Failure] = field(default_factory=list)  # files that failed or were skipped this time

    @property
    def words(self) -> str:
        """A summary that counts each file once."""
        counts = (
            (self.n_added, "song", "added"),
            (self.n_known, "file", "already in the library (copied, moved or with changed tags)"),
            (self.n_unchanged, "file", "unchanged"),
            (self.n_skipped, "file", "skipped"),
            (len(self.failures) - self.n_skipped, "file", "failed"),
            (self.n_missing, "file", "missing"),
        )
        return ", ".join(f"{count(n, noun)} {what}" for n, noun, what in counts if n)


class Scan:
    """One scan of folders and files. The constructor lists them; :meth:`run` analyzes them, in parts if needed.

    `retry` reopens unchanged files that failed before. `anyway` adds short and silent files; files listed in `sources`
    are never skipped. `absent_ok` accepts a source that does not exist; its songs become missing. `todo` lists the
    remaining files; `report` counts the finished ones. Raises LibraryError if a source does not exist, and
    StoreLockedError if another process is adding to this library.
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
        self.sources = [absolute(s) for s in ([sources] if isinstance(sources, str | Path) else sources)]
        self._source_set = set(self.sources)
        self._settings = library.settings
        self._anyway = anyway
        self._pool = library.pool or LocalPool(n_workers or self._settings["n_workers"])
        # workers on other machines do not have the networks' files; songs without vectors get them after the scan
        self._networks = load_networks(library.folder) if self._pool.shares_disk else []
        found = find_audio(self.sources, absent_ok=absent_ok)
        with library.exclusive():
            known = library.files.list_known()
            self.report = AddReport(n_found=len(found.files), n_ignored=found.n_ignored, absent=list(found.absent))
            self._mark(found, known)
            self.todo = self._plan(found, known, retry)
        self.report.n_unchanged = len(found.files) - len(self.todo)
        self._n_total = len(self.todo)

    def _mark(self, found: FoundFiles, known: dict[Path, KnownFile]) -> None:
        """Mark missing files and files that exist again, and list unreadable folders."""
        files = self.library.files
        existing = {file.path for file in found.files}
        remote = remote_folders(self.library.folder)

        def is_gone(path: Path) -> bool:
            was_scanned = path in self._source_set or not self._source_set.isdisjoint(path.parents)
            return (
                path not in existing
                and was_scanned
                and not found.unread(path)
                and not any(folder in path.parents for folder in remote)
            )

        missing = [path for path, file in known.items() if not file.is_missing and is_gone(path)]
        back = [file.path for file in found.files if file.path in known and known[file.path].is_missing]
        self.report.n_missing, self.report.n_back = len(missing), len(back)
        files.mark(missing=missing, back=back, unfailed=[path for path in files.list_failed() if is_gone(path)])
        for path, reason in found.problems:
            _reject(self.library, self.report, Failure(path, reason), None)

    def _plan(self, found: FoundFiles, known: dict[Path, KnownFile], retry: bool) -> list[AnalysisTask]:
        failed = self.library.files.list_failed()
        store = self.library.frame_files
        stored = store.list_stored() if self._settings["keep_frames"] else None
        if stored is not None and self._settings["aspects"]:
            stored &= store.list_stored_aspects()

        networks = tuple(network for some in self._networks for network in some.networks)

        def is_current(file: KnownFile) -> bool:
            return file.feature_version == FEATURE_VERSION and (stored is None or file.content_hash in stored)

        by_size: dict[int, set[str]] = {}
        for known_file in known.values():
            if is_current(known_file):
                by_size.setdefault(known_file.size, set()).add(known_file.content_hash)
        hashes = {size: tuple(same) for size, same in by_size.items() if len(same) <= _MAX_SAME_SIZE}

        def is_done(file: FoundFile) -> bool:
            stat = (file.size, file.mtime_ns)
            if file.path in known:
                seen = known[file.path]
                return (seen.size, seen.mtime_ns) == stat and is_current(seen)
            if file.path not in failed or retry:
                return False
            size, mtime_ns, kind, duration_s = failed[file.path]
            is_wanted = kind in SKIPPED and (self._anyway or file.path in self._source_set)
            is_long_enough = kind == SHORT and (duration_s or 0.0) >= self._settings["shortest_s"]
            return (size, mtime_ns) == stat and not is_wanted and not is_long_enough

        def task(file: FoundFile) -> AnalysisTask:
            # a song in the library stays, even if the current rules would exclude it
            is_wanted = self._anyway or file.path in known or file.path in self._source_set
            shortest_s = 0.0 if is_wanted else self._settings["shortest_s"]
            rules = (shortest_s, is_wanted, self._settings["aspects"], networks)
            return AnalysisTask(file.path, file.size, store.folder, hashes.get(file.size, ()), *rules)

        return [task(file) for file in found.files if not is_done(file)]

    def run(self, progress: Progress = no_progress, *, n_files: int | None = None) -> bool:
        """Analyze the next `n_files` files, or all remaining ones; return False if the scan was canceled.

        `progress` is called after each file and at least twice a second, with the name of the last finished file.
        """
        part, self.todo = self.todo[:n_files], self.todo[n_files:] if n_files is not None else []
        if part:
            with self.library.exclusive():
                forecast = Forecast((task.path, task.size) for task in [*part, *self.todo])
                total = self.report.n_unchanged + self._n_total
                counts = _Counts(total - len(part) - len(self.todo), total, forecast, progress)
                try:
                    _analyze_all(self.library, part, self.report, counts, self._pool, self._networks)
                except StorageError:
                    self._sweep()  # free the space of unfinished frames
                    raise
        return not self.report.canceled

    def finish(self) -> None:
        """Delete old paths of moved songs, songs whose files now contain different music, and unused frames."""
        with self.library.exclusive():
            self.library.files.tidy()
            if self._n_total:
                self._sweep()

    def _sweep(self) -> None:
        self.library.frame_files.sweep(self.library.content_hashes())


@dataclass(slots=True)
class _Counts:
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
        self.forecast.rest(time.monotonic() - started)  # a callback that blocks counts as a pause
        return False


def _analyze_all(
    library: ScanTarget,
    tasks: Iterable[AnalysisTask],
    report: AddReport,
    counts: _Counts,
    pool: WorkerPool,
    networks: Sequence[LibraryNetworks] = (),
) -> None:
    limits = library.file_limits
    started = time.monotonic()
    function = analyze if pool.shares_disk else analyze_apart
    # all workers need this 20 MB module for the fluctuation, and share it if it is preloaded
    with closing(pool.outcomes(function, tasks, limits=limits, preload=("scipy.fft",))) as items:
        for item in items:
            if item is not None:
                task, outcome = item
                if isinstance(outcome, Analysis) and outcome.sound.network_vectors:
                    for some in networks:
                        some.keep(outcome.content_hash, outcome.sound.network_vectors)
                _enter(library, task, outcome, report, limits)
                counts.done += 1
                counts.current = task.path.name
                counts.forecast.done(task.path, task.size, getattr(outcome, "busy_s", 0.0))
            if counts.show(report):
                report.canceled = counts.done < counts.total
                break
    report.seconds += time.monotonic() - started


def _enter(library: ScanTarget, task: AnalysisTask, outcome: Any, report: AddReport, limits: Limits) -> None:
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
    elif isinstance(outcome, SkippedFile):
        report.n_skipped += 1
        failure = Failure(task.path, outcome.reason, outcome.kind)
        _reject(library, report, failure, (outcome.size, outcome.mtime_ns), outcome.duration_s)
    else:
        kind = NO_SOUND if isinstance(outcome, NoSoundError) else ERROR
        failure = Failure(task.path, failure_reason(task.path, outcome, limits), kind)
        is_final = outcome.is_crash if isinstance(outcome, WorkerDied) else not isinstance(outcome, OSError)
        stat = None
        if is_final:  # if not final, another attempt may succeed
            with suppress(OSError):
                status = resolve_address(task.path).stat()
                stat = status.st_size, status.st_mtime_ns
        _reject(library, report, failure, stat)


def _reject(
    library: ScanTarget,
    report: AddReport,
    failure: Failure,
    stat: tuple[int, int] | None,
    length_s: float | None = None,
) -> None:
    """List a file that was not added. Scans reopen it if its size or time changes, and always if `stat` is None."""
    report.failures.append(failure)
    size, mtime_ns = stat or (-1, -1)
    library.files.reject(failure, size=size, mtime_ns=mtime_ns, duration_s=length_s)


def add_stream(
    library: ScanTarget, paths: Iterable[Path], planned: Sequence[Path], report: AddReport, progress: Progress
) -> None:
    """Analyze and add files, and count them in `report`; the iterable is advanced only when a worker is free.

    `planned` lists these files and all that follow in further calls, to estimate the time left.
    """
    folder = library.frame_files.folder
    tasks = (AnalysisTask(path, 1, folder, aspects=library.settings["aspects"]) for path in paths)
    counts = _Counts(0, len(planned), Forecast((path, 1) for path in planned), progress)
    with library.exclusive():
        _analyze_all(library, tasks, report, counts, LocalPool(1))
