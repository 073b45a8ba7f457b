"""Add music to a library, update its models, bring old songs up to date, and compose the demo collection.

While music is added to a new library, a map is drawn after 12 songs, after 60 songs, and whenever they have doubled.
Later folders appear on the map in similar steps.
"""

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

from musicsim import demo
from musicsim.addresses import resolve_address
from musicsim.audio import Descriptors, describe
from musicsim.errors import FeatureVersionError
from musicsim.explorer.libraries import demo_folder
from musicsim.explorer.refresh.outdated import native_is_outdated
from musicsim.explorer.refresh.refresh import refresh
from musicsim.explorer.refresh.stages import Stages, part_of
from musicsim.library import AddReport, Library, atomic_path, content_hash
from musicsim.library.importing import import_files
from musicsim.library.processes.workers import worker_context
from musicsim.library.scan.ingest import Scan, add_stream
from musicsim.progress import Canceled, Progress

FIRST_MAP, SECOND_MAP = 12, 60  # numbers of songs
_DEMO_WORKERS = 2
_UPLOADS = "uploads"
_MAX_LEFTOVER_BYTES = 2 << 30
_DESCRIPTORS = 0.1  # share of an upgrade's bar
_BATCH = 200  # songs per transaction that updates descriptors


def bring_model_up(library: Library, progress: Progress) -> bool:
    """Update the models if needed; returns False if canceled."""
    return library.is_refreshed or refresh(library, progress=progress)


def add_and_refresh(
    library: Library,
    sources: Sequence[str | Path],
    *,
    retry: bool = False,
    anyway: bool = False,
    n_workers: int | None = None,
    progress: Progress,
) -> AddReport:
    """Add folders and files, then update the models. `retry` adds failed files, `anyway` adds short or silent ones."""
    # files that are retried may have been deleted
    options = {"retry": retry, "anyway": anyway, "absent_ok": retry or anyway, "n_workers": n_workers}
    return scan_and_refresh(library, sources, progress, **options)


def scan_again(
    library: Library, folders: Sequence[str | Path] = (), *, n_workers: int | None = None, progress: Progress
) -> AddReport:
    """Scan the given folders again, by default all folders; songs on an unplugged drive become missing.

    Descriptors from an older version are computed first, from stored features.
    """
    if library.descriptors.n_outdated():
        try:
            _update_descriptors(library, part_of(progress, 0.0, _DESCRIPTORS))
        except Canceled:
            return AddReport(canceled=True)
    sources = list(folders) or library.files.roots()
    return scan_and_refresh(library, sources, progress, absent_ok=True, n_workers=n_workers)


def scan_and_refresh(library: Library, sources: Sequence[str | Path], progress: Progress, **options: Any) -> AddReport:
    """Scan the sources, with the options of :class:`Scan`, and update the models."""
    progress("looking for music")
    # all songs of a model need the same feature version, so outdated songs are analyzed after the new ones
    outdated = {path for path, _ in library.files.find_outdated() if resolve_address(path).exists()}
    scan = Scan(library, [*sources, *sorted(outdated)], **options)
    scan.todo.sort(key=lambda task: task.path in outdated)
    n_new = sum(task.path not in outdated for task in scan.todo)
    library.files.add_roots(sources)
    ends = [*_maps(library, n_new), len(scan.todo)]
    stages = Stages(progress, ends, n_songs=len(library), n_done=scan.report.n_unchanged)
    for at, (start, end) in enumerate(pairwise([0, *ends])):
        if not scan.run(stages.analyzing(at), n_files=end - start) or not bring_model_up(library, stages.updating(at)):
            scan.report.canceled = True
            return scan.report
    scan.finish()
    delete_leftovers(library)
    return scan.report


def _maps(library: Library, n_new: int) -> list[int]:
    """Return the numbers of new songs after which models are updated: all, and in a new library 12, 60, 120, ...

    A library with a model starts at 60 songs or a tenth of its songs, because an update takes longer with more songs.
    """
    size = FIRST_MAP if library.models.active() is None else max(SECOND_MAP, len(library) // 10)
    ends = []
    while 2 * size <= n_new:
        ends.append(size)
        size = max(SECOND_MAP, 2 * size)
    return [*ends, n_new]


def keep_upload(library: Library, name: str, data: bytes | Path) -> Path:
    """Write an uploaded file into the library's folder without overwriting other files, and return its path.

    `data` are its bytes, or the path of a file to copy.
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
        if isinstance(data, Path):
            shutil.copyfile(data, temporary)
        else:
            temporary.write_bytes(data)
    return target


def delete_leftovers(library: Library, max_bytes: int = _MAX_LEFTOVER_BYTES) -> None:
    """Delete uploads that are not songs, oldest first, until `max_bytes` remain. Process all uploads first."""
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
    """Write songs, and yield their files: those with packaged sound at once, then the others from worker processes."""
    for plan in filter(demo.is_packaged, plans):
        yield demo.write_song(plan, folder)
    plans = [plan for plan in plans if not demo.is_packaged(plan)]
    if not plans:  # workers take seconds to start
        return
    pool = ProcessPoolExecutor(_DEMO_WORKERS, mp_context=worker_context("musicsim.demo.synthesis"))
    try:
        yield from pool.map(demo.write_song, plans, [folder] * len(plans), chunksize=1)
    finally:
        pool.shutdown(cancel_futures=True)


def build_demo(library: Library, *, seed: int = 0, progress: Progress) -> bool:
    """Compose and add the demo collection with its listeners; returns False if canceled. Another call resumes."""
    progress("adding the first songs")
    plans = demo.plan_collection(seed=seed)
    folder = demo_folder(library.folder)
    folder.mkdir(parents=True, exist_ok=True)
    library.files.add_roots([folder])  # add it first, because it shows the pages that this is a demo library
    known = {song.path for song in library.songs()}
    missing = [plan for plan in plans if folder / plan.relative_path not in known]
    n_done = len(plans) - len(missing)
    ends = _maps(library, len(missing))
    stages = Stages(progress, ends, n_songs=n_done, n_done=n_done)
    for at, (start, end) in enumerate(pairwise([0, *ends])):
        show = stages.analyzing(at)

        def report(
            message: str, done: int = 0, _total: int = 0, /, show: Progress = show, start: int = start, **facts: Any
        ) -> None:
            show(message, n_done + start + done, len(plans), **facts)

        counts = AddReport()
        planned = [folder / plan.relative_path for plan in missing[start:]]
        add_stream(library, _compose(missing[start:end], folder), planned, counts, progress=report)
        if counts.canceled or not bring_model_up(library, stages.updating(at)):
            return False
    progress("simulating two thousand listeners")
    listening = library.folder / "listening"
    demo.write_listening(plans, listening, seed=seed)
    for name in ("plays.csv", "tags.csv", "playlists.csv"):
        import_files(library, listening / name)
    return bring_model_up(library, progress)


def bring_up_to_date(library: Library, *, progress: Progress) -> bool:
    """Update descriptors, re-analyze outdated songs, then refit; returns False and keeps the old model if canceled."""
    try:
        _update_descriptors(library, part_of(progress, 0.0, _DESCRIPTORS))
    except Canceled:
        return False
    paths = [path for path, _ in library.files.find_outdated()]
    if not paths and not native_is_outdated(library):
        return True
    return not scan_and_refresh(library, paths, progress, absent_ok=True).canceled


def _update_descriptors(library: Library, progress: Progress) -> None:
    with library.exclusive("updating songs"), library.stay_refreshed():  # models do not depend on descriptors
        songs = list(library.descriptors.find_outdated().items())
        with_aspects = library.frame_files.list_stored_aspects() if songs else set()
        for start in range(0, len(songs), _BATCH):
            progress("tempo, key and loudness", start, len(songs), seconds_left=None)
            batch = songs[start : start + _BATCH]
            library.descriptors.save({i: _descriptors(library, digest, digest in with_aspects) for i, digest in batch})
        progress("tempo, key and loudness", len(songs), len(songs), seconds_left=None)


def _descriptors(library: Library, content_hash: str, has_aspects: bool) -> Descriptors:
    frames = library.frame_files
    try:
        mfcc = frames.frames(content_hash).mfcc
    except FeatureVersionError:
        return Descriptors()
    if not has_aspects:
        return describe(mfcc)
    aspects = frames.aspects([content_hash])
    return describe(mfcc, aspects.harmony[0], aspects.rhythm[0])
