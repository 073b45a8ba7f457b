"""Filling a library: add folders and bring the model up to them; compose and add the demo collection.

Both draw a first map early and again whenever a new library has doubled, so that there is something to
explore while the rest comes.
"""

import os
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

from musicsim import demo
from musicsim.addresses import located
from musicsim.explorer.refresh.refresh import refresh
from musicsim.library import AddReport, Library
from musicsim.library.disk.arrays import atomic_path
from musicsim.library.importing import import_files
from musicsim.library.processes.workers import worker_context
from musicsim.library.scan.files import content_hash
from musicsim.library.scan.ingest import Scan, add_stream
from musicsim.progress import Progress

_FIRST_MAP = 60
_DEMO_WORKERS = 2
_UPLOADS = "uploads"
_MAX_LEFTOVER_BYTES = 2 << 30


def bring_model_up(library: Library, progress: Progress, done: int = 0, total: int = 0) -> bool:
    """Fit or extend the model, unless it is up to the songs; return False if it was canceled.

    `progress` keeps showing that `done` of `total` files are added.
    """
    if library.is_refreshed:
        return True

    def report(message: str, n_done: int = 0, n_total: int = 0, /, **_: Any) -> None:
        count = f" ({n_done} of {n_total})" if n_total else ""
        progress(f"{message}{count}", done, total, seconds_left=None)

    return refresh(library, progress=report)


def _shifted(progress: Progress, total: int, *, before: int = 0) -> Progress:
    """Return the progress of a part; `before` files of `total` were done earlier."""

    def report(message: str, done: int = 0, _total: int = 0, /, **facts: Any) -> None:
        progress(message, before + done, total, **facts)

    return report


def add_and_refresh(
    library: Library,
    sources: Sequence[str | Path],
    *,
    retry: bool = False,
    anyway: bool = False,
    n_workers: int | None = None,
    progress: Progress,
) -> AddReport:
    """Add folders and files, then fit or extend the model.

    `retry` opens files again that failed before, `anyway` takes short and silent ones, too.

    Raises LibraryError if a source does not exist, or another process is adding to this library.
    """
    # a file that is tried again may have gone meanwhile
    options = {"retry": retry, "anyway": anyway, "absent_ok": retry or anyway, "n_workers": n_workers}
    return scan_and_refresh(library, sources, progress, **options)


def scan_again(
    library: Library, folders: Sequence[str | Path] = (), *, n_workers: int | None = None, progress: Progress
) -> AddReport:
    """Look through the library's folders again, or some of them: new, changed, moved and missing files.

    A folder that is not there (a drive that is not plugged in) makes its songs missing until it is back. The other
    arguments are those of :func:`add_and_refresh`.
    """
    sources = list(folders) or library.files.roots()
    return scan_and_refresh(library, sources, progress, absent_ok=True, n_workers=n_workers)


def scan_and_refresh(library: Library, sources: Sequence[str | Path], progress: Progress, **options: Any) -> AddReport:
    """Look through the sources, with the options of :class:`Scan`, and bring the model up to what was found."""
    progress("looking for music")
    # A model fits all songs or none: what an older version has described is analysed, too, after what is new.
    outdated = {path for path, _ in library.files.outdated() if located(path).exists()}
    scan = Scan(library, [*sources, *sorted(outdated)], **options)
    scan.todo.sort(key=lambda task: task.path in outdated)
    n_new = sum(task.path not in outdated for task in scan.todo)
    library.files.add_roots(sources)
    total = scan.report.n_unchanged + len(scan.todo)
    ends = _first_maps(n_new) if library.models.active() is None else []
    for start, end in pairwise([0, *ends, n_new, len(scan.todo)]):
        if not scan.run(progress, n_files=end - start) or not bring_model_up(
            library, progress, scan.report.n_unchanged + end, total
        ):
            scan.report.cancelled = True
            return scan.report
    scan.finish()
    forget_leftovers(library)
    return scan.report


def _first_maps(n_songs: int) -> list[int]:
    """After how many songs of a new library a map is drawn before the last: 60, 120, 240 and so on."""
    ends = []
    end = _FIRST_MAP
    while 2 * end <= n_songs:
        ends.append(end)
        end *= 2
    return ends


def keep_upload(library: Library, name: str, data: bytes) -> Path:
    """Write an uploaded file into the library's folder and return where; another file of the name is kept.

    Raises StorageError if the library's folder cannot be written to.
    """
    plain = re.sub(r"[^\w .()&'+-]", "_", Path(name).name).lstrip(". ")[-120:] or "upload"
    folder = library.folder / _UPLOADS
    digest = content_hash(data)
    for target in (folder / plain, folder / f"{Path(plain).stem} {digest[:8]}{Path(plain).suffix}"):
        if target.exists() and content_hash(target) == digest:
            os.utime(target)
            return target
        if not target.exists():
            break
    with atomic_path(target) as temporary:
        temporary.write_bytes(data)
    return target


def forget_leftovers(library: Library, max_bytes: int = _MAX_LEFTOVER_BYTES) -> None:
    """Remove uploaded files that became no song, those sent longest ago first, where all of them take too much room.

    To be called when no uploaded file waits to be added.
    """
    folder = library.folder / _UPLOADS
    if not folder.is_dir():
        return
    songs, roots = library.files.songs_below(folder), set(library.files.roots())
    leftovers = sorted(
        ((path.stat(), path) for path in folder.iterdir() if path.is_file() and path not in songs),
        key=lambda leftover: leftover[0].st_mtime_ns,
    )
    n_bytes = sum(stat.st_size for stat, _ in leftovers)
    for stat, path in leftovers:
        if n_bytes <= max_bytes:
            return
        path.unlink(missing_ok=True)
        n_bytes -= stat.st_size
        library.files.mark(missing=(), back=(), unfailed=[path])
        if path in roots:
            library.files.forget_root(path)


def _compose(plans: Sequence[Any], folder: Path) -> Iterator[Path]:
    """Write songs in worker processes; yield each file as it is finished, in order."""

    context = worker_context("musicsim.demo.synthesis")
    pool = ProcessPoolExecutor(_DEMO_WORKERS, mp_context=context)
    try:
        yield from pool.map(demo.write_song, plans, [folder] * len(plans), chunksize=1)
    finally:
        pool.shutdown(cancel_futures=True)


def demo_folder(library: Library) -> Path:
    """Where the demo collection of a library is composed; among its roots once there is one."""
    return library.folder / "music"


def build_demo(library: Library, *, seed: int = 0, progress: Progress) -> bool:
    """Compose the demo collection into the library's folder, add it, and import its listeners.

    Other seeds make other music. False when it was cancelled; what was written stays, and a second call goes on
    from there. `progress` is as of :func:`add_and_refresh`.
    """

    progress("composing the first songs")
    plans = demo.plan_collection(seed=seed)
    folder = demo_folder(library)
    known = {song.path for song in library.songs()}
    plans_left = [plan for plan in plans if folder / plan.relative_path not in known]
    done = len(plans) - len(plans_left)
    ends = [*(_first_maps(len(plans_left)) if not known else ()), len(plans_left)]
    for start, end in pairwise([0, *ends]):
        counts = AddReport()
        part_progress = _shifted(progress, len(plans), before=done + start)
        part = plans_left[start:end]
        planned = [folder / plan.relative_path for plan in part]
        add_stream(library, _compose(part, folder), planned, counts, progress=part_progress)
        if counts.cancelled or not bring_model_up(library, progress, done + end, len(plans)):
            return False
    library.files.add_roots([folder])
    progress("simulating two thousand listeners")
    listening = library.folder / "listening"
    demo.write_listening(plans, listening, seed=seed)
    for name in ("plays.csv", "tags.csv", "playlists.csv"):
        import_files(library, listening / name)
    return bring_model_up(library, progress)
