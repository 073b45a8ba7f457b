"""From files to songs: find them, analyse them in worker processes, commit each as it comes.

A bad file costs that file: its reason is listed (:meth:`Store.failures`) and the scan goes on. A
file that stands unchanged since it was added, or since it failed, is not opened again.
"""

import logging
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import TimeoutError as FutureTimeoutError
from concurrent.futures import wait
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import sqlalchemy as sa

from musicsim.audio import (
    DELTA_WIDTH,
    FEATURE_VERSION,
    HOP,
    SAMPLE_RATE,
    decode,
    mfcc,
    peaks,
)
from musicsim.errors import AudioError, AudioTooShortError, LibraryError
from musicsim.library import schema
from musicsim.library.files import absolute, audio_files, content_hash
from musicsim.library.store import Failure, Store
from musicsim.library.tags import FileTags, read_tags
from musicsim.library.workers import worker_context

__all__ = [
    "AddReport",
    "Analysis",
    "Progress",
    "ProgressCallback",
    "add",
    "add_stream",
    "analyse",
]

_log = logging.getLogger(__name__)
_TIMEOUT_S = 600.0  # a file that takes longer has hung the decoder
_IN_FLIGHT = 4  # files a worker may have waiting: enough to keep it busy, few enough to cancel soon


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a scan is.

    Attributes
    ----------
    done, total, failed : int
        Files; `done` counts failed and unchanged ones too.
    songs_per_second : float or None
    seconds_left : float or None
        From the speed of the last half minute; None until there is a speed.
    current : str
        Name of the file that was finished last.
    """

    done: int
    total: int
    failed: int
    songs_per_second: float | None
    seconds_left: float | None
    current: str


ProgressCallback = Callable[[Progress], bool | None]


@dataclass(slots=True)
class AddReport:
    """What came of a scan."""

    n_found: int = 0
    n_added: int = 0
    n_unchanged: int = 0
    cancelled: bool = False
    seconds: float = 0.0
    failures: list[Failure] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Analysis:
    """All that is taken from one file."""

    content_hash: str
    tags: FileTags
    duration_s: float
    notes: tuple[str, ...]
    mfcc: npt.NDArray[np.float16]
    outline: bytes
    size: int
    mtime_ns: int


def analyse(path: Path) -> Analysis:
    """Decode a file and take its features, tags and name; runs in a worker process.

    Raises
    ------
    AudioError
        If the file gives no features; the message names it.
    OSError
        If it cannot be read.
    """
    before = path.stat()
    decoded = decode(path, sr=SAMPLE_RATE)
    frames = mfcc(decoded.samples, decoded.sr)
    if len(frames) < DELTA_WIDTH:
        raise AudioTooShortError(
            f"{path}: {decoded.duration_s:.2f} s of sound are too short to be described; "
            f"{DELTA_WIDTH * HOP / SAMPLE_RATE:.2f} s are needed. Leave the file out."
        )
    return Analysis(
        content_hash(path),
        read_tags(path),
        decoded.duration_s,
        decoded.notes,
        frames.astype(np.float16),
        np.round(255 * peaks(decoded.samples)).astype(np.uint8).tobytes(),
        before.st_size,
        before.st_mtime_ns,
    )


class _Clock:
    """Speed and time left from what was finished in the last half minute."""

    def __init__(self, total: int) -> None:
        self.total, self.done = total, 0
        self._marks: deque[tuple[float, int]] = deque([(time.monotonic(), 0)])

    def tick(self) -> tuple[float | None, float | None]:
        now = time.monotonic()
        self.done += 1
        self._marks.append((now, self.done))
        while len(self._marks) > 2 and now - self._marks[0][0] > 30:
            self._marks.popleft()
        start, first = self._marks[0]
        if now - start < 0.5:
            return None, None
        speed = (self.done - first) / (now - start)
        return speed, (self.total - self.done) / speed


def _unchanged(library: Store, paths: Sequence[Path], retry: bool) -> set[Path]:
    """Files whose size and time are those of their last, finished visit, and whose frames are as wished."""
    f, s, bad = schema.files.c, schema.songs.c, schema.failures.c
    keep_frames = library.settings["keep_frames"]
    with library.engine.connect() as connection:
        known = {
            row.path: (row.size, row.mtime_ns)
            for row in connection.execute(
                sa.select(f.path, f.size, f.mtime_ns, s.content_hash)
                .join(schema.songs, s.id == f.song_id)
                .where(s.feature_version == FEATURE_VERSION)
            )
            if not keep_frames or library.has_frames(row.content_hash)
        }
        if not retry:
            query = sa.select(bad.path, bad.size, bad.mtime_ns)
            known |= {row.path: (row.size, row.mtime_ns) for row in connection.execute(query)}
    same = set()
    for path in paths:
        if path in known:
            try:
                stat = path.stat()
            except OSError:  # gone or unreadable since it was listed: the worker will say which
                continue
            if (stat.st_size, stat.st_mtime_ns) == known[path]:
                same.add(path)
    return same


def _commit(library: Store, path: Path, analysis: Analysis) -> bool:
    """Enter one song and its file; returns whether the song is new to the library."""
    library.save_frames(analysis.content_hash, analysis.mfcc)
    values = asdict(analysis.tags) | {
        "content_hash": analysis.content_hash,
        "duration_s": analysis.duration_s,
        "notes": "; ".join(analysis.notes),
        "outline": analysis.outline,
        "feature_version": FEATURE_VERSION,
    }
    s = schema.songs.c
    with library.write() as connection:
        song_id = connection.scalar(sa.select(s.id).where(s.content_hash == analysis.content_hash))
        is_new = song_id is None
        if is_new:
            result = connection.execute(schema.songs.insert().values(**values, added_at=time.time()))
            song_id = result.inserted_primary_key[0]  # type: ignore[index]
        else:
            connection.execute(schema.songs.update().where(s.id == song_id).values(**values))
        replaced = connection.scalar(sa.select(schema.files.c.song_id).where(schema.files.c.path == path))
        row = {
            "path": path,
            "song_id": song_id,
            "folder": path.parent,
            "size": analysis.size,
            "mtime_ns": analysis.mtime_ns,
        }
        connection.execute(schema.files.insert().prefix_with("OR REPLACE").values(**row))
        connection.execute(schema.failures.delete().where(schema.failures.c.path == path))
        if replaced not in (None, song_id):
            _forget_without_file(connection, replaced)
    return is_new


def _forget_without_file(connection: sa.Connection, song_id: int) -> None:
    """Delete a song whose last file now holds other bytes."""
    files = sa.select(sa.func.count()).where(schema.files.c.song_id == song_id)
    if not connection.scalar(files):
        connection.execute(schema.songs.delete().where(schema.songs.c.id == song_id))


def _reject(library: Store, path: Path, reason: str) -> None:
    try:
        stat = path.stat()
        size, mtime_ns = stat.st_size, stat.st_mtime_ns
    except OSError:
        size, mtime_ns = -1, -1
    row = {"path": path, "reason": reason, "size": size, "mtime_ns": mtime_ns, "failed_at": time.time()}
    with library.write() as connection:
        connection.execute(schema.failures.insert().prefix_with("OR REPLACE").values(**row))


def _reason(path: Path, error: BaseException) -> str:
    """One sentence on why a file was not added."""
    from pebble import ProcessExpired

    if isinstance(error, AudioError):
        return str(error)
    if isinstance(error, FutureTimeoutError):
        return f"{path}: reading took more than {_TIMEOUT_S:.0f} s and was stopped. Re-encode the file."
    if isinstance(error, ProcessExpired):
        return f"{path}: the decoder crashed (exit code {error.exitcode}). Re-encode the file."
    if isinstance(error, OSError):
        return f"{path}: cannot be read ({error.strerror or error}). Check that the file is there and may be read."
    if isinstance(error, MemoryError):
        return f"{path}: too large for this machine's memory. Split the file."
    _log.error("%s: unexpected error", path, exc_info=error)
    return f"{path}: {type(error).__name__}: {error}"


def _results(paths: Iterable[Path], n_workers: int) -> Iterator[tuple[Path, Any]]:
    """Analyse files in worker processes; yield each with its Analysis or its exception, in order."""
    from pebble import ProcessPool

    waiting = iter(paths)
    flying: deque[tuple[Path, Any]] = deque()
    pool = ProcessPool(max_workers=n_workers, context=worker_context(__name__, "librosa.filters"))
    try:
        while True:
            while len(flying) < _IN_FLIGHT * n_workers and (path := next(waiting, None)) is not None:
                flying.append((path, pool.schedule(analyse, args=(path,), timeout=_TIMEOUT_S)))
            if not flying:
                return
            path, future = flying.popleft()
            while not wait([future], timeout=1.0).done:
                if not pool.active:  # it would never be done
                    raise LibraryError(f"{path}: the worker processes have ended. Start the scan again.")
            error = future.exception()
            yield path, error if error is not None else future.result()
    finally:
        pool.stop()
        pool.join()


def add(
    library: Store,
    sources: str | Path | Sequence[str | Path],
    *,
    progress: ProgressCallback | None = None,
    n_workers: int | None = None,
    retry: bool = False,
    remember: bool = True,
) -> AddReport:
    """Analyse the audio files below the sources and add them to a library.

    Parameters
    ----------
    library : Store
    sources : path or sequence of paths
        Folders (with all below them) and files.
    progress : callable, optional
        Called with a :class:`Progress` after each file; True stops the scan, what is done stays.
    n_workers : int, optional
        Worker processes; by default one a core.
    retry : bool
        Open files again that failed before and have not changed.
    remember : bool
        Keep the sources among the library's roots.

    Raises
    ------
    LibraryError
        If a source does not exist.
    StoreLockedError
        If another process is adding to this library.
    """

    listed = [sources] if isinstance(sources, str | Path) else list(sources)
    paths = audio_files([absolute(source) for source in listed])
    if remember:
        library.remember(listed)
    same = _unchanged(library, paths, retry)
    todo = [path for path in paths if path not in same]
    report = AddReport(n_found=len(paths), n_unchanged=len(same))
    if todo:
        workers = min(n_workers or os.cpu_count() or 1, len(todo))
        add_stream(library, todo, len(todo), report, progress=progress, n_workers=workers)
    return report


def add_stream(
    library: Store,
    paths: Iterable[Path],
    n_paths: int,
    report: AddReport,
    *,
    progress: ProgressCallback | None = None,
    n_workers: int = 1,
) -> None:
    """Analyse and add files as an iterable brings them, counting into `report`; see :func:`add`."""
    clock = _Clock(n_paths)
    started = time.monotonic()
    with library.exclusive():
        for path, outcome in _results(paths, n_workers):
            if isinstance(outcome, Analysis):
                report.n_added += _commit(library, path, outcome)
            else:
                reason = _reason(path, outcome)
                _reject(library, path, reason)
                report.failures.append(Failure(path, reason))
            speed, left = clock.tick()
            done, total = report.n_unchanged + clock.done, report.n_unchanged + n_paths
            step = Progress(done, total, len(report.failures), speed, left, path.name)
            if progress is not None and progress(step):
                report.cancelled = clock.done < n_paths
                break
    report.seconds += time.monotonic() - started
