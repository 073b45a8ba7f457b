"""Checks of a library, and repairs that do not lose data.

The `words` of a finding never name songs, people or places. Its `names` may, so bug reports omit them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from musicsim import LIBRARY_FILE
from musicsim.errors import LibraryError
from musicsim.explorer.learning.task import Quiet
from musicsim.explorer.refresh.add_music import scan_and_refresh
from musicsim.explorer.refresh.fitting import REPRESENTATION_KIND
from musicsim.explorer.refresh.joined_model import JOINED_KIND
from musicsim.explorer.refresh.learned_model import LEARNED_KIND
from musicsim.explorer.refresh.model_catalogue import damage, refit_model, stale_reason
from musicsim.explorer.refresh.outdated import pending_upgrade
from musicsim.explorer.refresh.refresh import refresh
from musicsim.hooks import CheckConnections
from musicsim.library import BUILT_IN, Library, Song
from musicsim.library.db.cache import load_arrays
from musicsim.library.db.database import is_writable
from musicsim.library.db.integrity import faults, is_of_indexes, rebuild_indexes, stray_rows
from musicsim.library.disk.scratch import leftovers
from musicsim.library.media.sound import songs_elsewhere
from musicsim.progress import Progress
from musicsim.registry import load_hooks
from musicsim.wording import count, count_are

Level = Literal["ok", "note", "problem"]
OK: Final = "ok"
NOTE: Final = "note"
PROBLEM: Final = "problem"

_BACKUP = "Restore a backup."
_FIX = "`musicsim doctor --fix` {}."
_REFITTABLE = (*BUILT_IN, JOINED_KIND, LEARNED_KIND, REPRESENTATION_KIND)  # kinds of models that the library can refit
_ARTIFACTS = ("clusters.npz", "map.npz", "walk.npz")
_REPORT_EVERY = 100  # number of songs between progress reports


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check."""

    what: str
    level: Level
    words: str
    remedy: str = ""  # suggested action; empty if nothing has to be done
    names: tuple[str, ...] = ()  # private details: files, models, error messages
    fix: str = ""  # name of the repair in _REPAIRS; empty if it cannot be repaired without losing data


def examine(library: Library, progress: Progress) -> Iterator[Finding]:
    """Check a library, which may be read-only, without changing it; yield one finding at a time."""
    errors = faults(library.engine)
    yield _check_database(errors)
    if errors and not is_of_indexes(errors):
        return  # the tables may contain wrong values
    strays = stray_rows(library.engine)
    if strays:
        counts = ", ".join(f"{n:,} in {table}" for table, n in strays.items())
        words = f"rows that refer to missing rows: {counts}"
        yield Finding("database", PROBLEM, words, f"These rows are not used. {_BACKUP}")
    if not is_writable(library.folder / LIBRARY_FILE):
        yield Finding("library", NOTE, "readable but not writable", "Change its permissions to add music.")
    yield from _check_songs(library)
    yield from _check_features(library, progress)
    yield from _check_models(library)
    files = tuple(map(str, leftovers(library.folder)))
    if files:
        words = f"files left by processes that were killed: {len(files):,}"
        yield Finding("leftovers", NOTE, words, _FIX.format("deletes them"), files, "sweep")
    for check in load_hooks(CheckConnections):
        try:
            check(library)
        except LibraryError as error:
            words = "a file with connections to servers or players cannot be read"
            yield Finding("connections", PROBLEM, words, "Delete it, and set up the connections again.", (str(error),))
    yield from _check_jobs(library)


def repair(library: Library, findings: list[Finding], progress: Progress) -> list[str]:
    """Run the repairs of the findings, and return a sentence for each; raises StoreLockedError or StorageError."""
    wanted = {finding.fix for finding in findings}
    return [sentence for name, do in _REPAIRS.items() if name in wanted and (sentence := do(library, progress))]


# --- checks -----------------------------------------------------------------------------------------------------------


def _check_database(errors: list[str]) -> Finding:
    if not errors:
        return Finding("database", OK, "intact")
    if is_of_indexes(errors):
        words = "indexes are damaged: " + "; ".join(errors)
        return Finding("database", PROBLEM, words, _FIX.format("rebuilds them"), fix="index")
    return Finding("database", PROBLEM, "damaged: " + "; ".join(errors), _BACKUP)


def _check_songs(library: Library) -> Iterator[Finding]:
    songs, n_missing = library.songs(), len(library.missing_songs())
    absent = {song.id: str(song.path) for song in songs if not song.path.exists()}
    elsewhere = songs_elsewhere(library, absent)
    lost = tuple(path for song_id, path in absent.items() if song_id not in elsewhere)
    yield Finding("songs", OK, f"{count(len(songs), 'song')} with a file")
    if n_missing:
        remedy = "`musicsim missing` lists them. They return when their files are back."
        yield Finding("songs", NOTE, f"{count_are(n_missing, 'song')} missing", remedy)
    if lost:
        words = f"{count_are(len(lost), 'file')} not where the last scan found them"
        yield Finding("files", NOTE, words, "Plug in their drive, or run `musicsim scan`.", lost)
    n_failed = int(library.counts()["failed"])
    if n_failed:
        remedy = "`musicsim failed` lists them with their reasons."
        yield Finding("files", NOTE, f"{count(n_failed, 'file')} could not be added", remedy)
    upgrade = pending_upgrade(library)
    if upgrade is not None:
        yield Finding("version", NOTE, upgrade.words, "Open the app, or run `musicsim scan`.")


def _check_features(library: Library, progress: Progress) -> Iterator[Finding]:
    store, hashes = library.frame_files, library.content_hashes()
    orphans = tuple(map(str, store.orphans(hashes)))
    if orphans:
        words = f"files of audio features that do not belong to any song: {len(orphans):,}"
        yield Finding("features", NOTE, words, _FIX.format("deletes them"), orphans, "sweep")
    if not library.settings["keep_frames"]:
        return
    lacking, damaged = set(hashes) - store.list_stored(), _find_damaged_frames(library, progress)
    for affected, state in ((lacking, "are not stored"), (damaged, "are damaged")):
        paths = tuple(str(song.path) for song in _songs_with_file(library, affected))
        if paths:
            words = f"the audio features of {count(len(paths), 'song')} {state}"
            yield Finding("features", PROBLEM, words, _FIX.format("analyzes them again"), paths, "features")
        if len(affected) > len(paths):
            words = f"the audio features of {count(len(affected) - len(paths), 'song')} without a file {state}"
            yield Finding("features", NOTE, words, "They will be analyzed when their files are back.")
    if not lacking and not damaged:
        yield Finding("features", OK, f"stored for {count(len(set(hashes)), 'song')}, all readable")


def _find_damaged_frames(library: Library, progress: Progress) -> set[str]:
    damaged = set()
    stored = library.frame_files.list_stored() & set(library.content_hashes())
    for done, content_hash in enumerate(sorted(stored)):
        if done % _REPORT_EVERY == 0:
            progress("reading audio features", done, len(stored))
        if not library.frame_files.is_whole(content_hash):
            damaged.add(content_hash)
    return damaged


def _songs_with_file(library: Library, hashes: set[str]) -> list[Song]:
    return [song for song in library.songs() if song.content_hash in hashes and song.path.is_file()]


def _check_models(library: Library) -> Iterator[Finding]:
    n_whole = 0
    for record in library.models.all(retired=True):
        error = damage(library, record)
        reason = None if record.is_retired else stale_reason(library, record)
        if error is not None:
            fixable = record.is_retired or record.kind in _REFITTABLE
            remedy = _FIX.format("refits it") if fixable else "Delete it, and import its file again."
            names = (record.name, str(error))
            yield Finding("models", PROBLEM, f"{record.id} cannot be read", remedy, names, "models" if fixable else "")
        elif reason is not None:
            words = f"{record.id} is out of date: its songs or its base model have changed"
            yield Finding("models", NOTE, words, _FIX.format("refits it"), (record.name, reason), "models")
        else:
            n_whole += 1
        paths = map(library.models.path(record.id).joinpath, _ARTIFACTS)
        unreadable = [path.stem for path in paths if _is_damaged(path)]
        if unreadable:
            words = f"the {' and '.join(unreadable)} of {record.id} cannot be read"
            yield Finding("models", PROBLEM, words, _FIX.format("computes them again"), (record.name,), "models")
    if n_whole:
        yield Finding("models", OK, f"{count_are(n_whole, 'model')} intact")
    orphans = tuple(map(str, library.models.orphans()))
    if orphans:
        words = f"{count(len(orphans), 'folder')} of unfinished models"
        yield Finding("models", NOTE, words, _FIX.format("deletes them"), orphans, "sweep")
    if len(library) and not library.is_refreshed:
        words = "the map, the models and the playlist walk are out of date: songs or playlists have changed"
        yield Finding("models", NOTE, words, _FIX.format("brings them up to date"), fix="models")


def _is_damaged(arrays: Path) -> bool:
    """Return whether a file of arrays exists but cannot be read."""
    try:
        load_arrays(arrays)
    except Exception:  # zipfile and numpy raise many kinds of errors for a damaged file
        return True
    return False


def _check_jobs(library: Library) -> Iterator[Finding]:
    last = next(iter(library.jobs.recent(1)), None)
    if last is not None and last.is_active:
        words = f"job {last.id} ({last.kind}) is running: its unfinished work may appear above"
        yield Finding("jobs", NOTE, words, "Run the check again when the job has ended.")
    elif last is not None and last.state in ("failed", "interrupted"):
        words = f"the last job, {last.id} ({last.kind}), did not finish: {last.state}"
        yield Finding("jobs", NOTE, words, "Start it again; it resumes where it stopped.", (last.message,))


# --- repairs ----------------------------------------------------------------------------------------------------------


def _rebuild_indexes(library: Library, _progress: Progress) -> str:
    return "the database indexes were rebuilt" if rebuild_indexes(library.write) else ""


def _sweep(library: Library, _progress: Progress) -> str:
    with library.exclusive("repairing files"):  # also deletes leftovers of killed processes
        library.frame_files.sweep(library.content_hashes())
        library.models.discard_unfinished()
    return "files left by killed processes were deleted"


def _analyze_again(library: Library, progress: Progress) -> str:
    lacking = set(library.content_hashes()) - library.frame_files.list_stored()
    songs = _songs_with_file(library, lacking | _find_damaged_frames(library, progress))
    with library.exclusive("repairing files"):
        for song in songs:
            library.frame_files.drop(song.content_hash)
    report = scan_and_refresh(library, [song.path for song in songs], progress, absent_ok=True)
    were = "was" if len(songs) == 1 else "were"
    return f"{count(len(songs), 'song')} {were} analyzed again; {len(report.failures):,} failed"


def _refit(library: Library, progress: Progress) -> str:
    refresh(library, progress=progress)  # fits built-in and stale models
    damaged = [record for record in library.models.all() if damage(library, record) is not None]
    with library.exclusive("repairing files"):
        n_fitted = sum(
            refit_model(library, record, Quiet(progress)) for record in damaged if record.kind in _REFITTABLE
        )
    if n_fitted:
        refresh(library, progress=progress)
    refitted = f"; damaged models refitted: {n_fitted:,}" if n_fitted else ""
    return f"the models, the map and the playlist walk were brought up to date{refitted}"


# in order of execution, because each repair uses the results of the earlier ones
_REPAIRS: dict[str, Callable[[Library, Progress], str]] = {
    "index": _rebuild_indexes,
    "sweep": _sweep,
    "features": _analyze_again,
    "models": _refit,
}
