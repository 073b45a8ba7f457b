"""What is wrong with a library, what to do about it, and doing what loses nothing.

Findings are sentences without names of songs, people and places. Those stand apart: what is for others leaves them out.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, Literal

from musicsim import LIBRARY_FILE
from musicsim.errors import LibraryError
from musicsim.explorer.learning.task import Quiet
from musicsim.explorer.progress import Tell, teller
from musicsim.explorer.refresh.add_music import Report, scan_and_refresh
from musicsim.explorer.refresh.fitting import REPRESENTATION_KIND
from musicsim.explorer.refresh.learned_model import LEARNED_KIND
from musicsim.explorer.refresh.model_catalogue import damage, make_again, stale_reason
from musicsim.explorer.refresh.outdated import pending_upgrade
from musicsim.explorer.refresh.refresh import refresh
from musicsim.extensions.music_servers.connections import Connections
from musicsim.extensions.music_servers.server_songs import ServerSongs
from musicsim.extensions.player_engine.access import player_access
from musicsim.library import Library, Song
from musicsim.library.db.cache import load_arrays
from musicsim.library.db.database import is_writable
from musicsim.library.db.integrity import faults, is_of_indexes, rebuild_indexes, stray_rows
from musicsim.library.disk.leftovers import leftovers
from musicsim.library.stores.models import BUILT_IN

Level = Literal["ok", "note", "problem"]
OK: Final = "ok"
NOTE: Final = "note"
PROBLEM: Final = "problem"

_BACKUP = "Restore a backup."
_FIX = "`musicsim doctor --fix` {}."
_MADE_HERE = (*BUILT_IN, LEARNED_KIND, REPRESENTATION_KIND)  # the library has what these are made of
_BESIDE = ("clusters.npz", "map.npz", "walk.npz")
_AT_ONCE = 100  # songs between two words on how far it is


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    what: str
    level: Level
    words: str
    remedy: str = ""  # what to do; empty where nothing is
    # what it is about: files, models, what an error says; not for the eyes of others
    names: tuple[str, ...] = ()
    fix: str = ""  # which of the repairs mends it; empty: none does without losing something


def examine(library: Library, tell: Tell) -> Iterator[Finding]:
    """Look at a library; each finding as it comes. Nothing is changed, and nothing need be writable."""
    found = faults(library.engine)
    yield _of_database(found)
    if found and not is_of_indexes(found):
        return  # whatever the tables say of the rest may be wrong
    strays = stray_rows(library.engine)
    if strays:
        counted = ", ".join(f"{n:,} in {table}" for table, n in strays.items())
        yield Finding("database", PROBLEM, f"rows that belong to nothing: {counted}", f"They are not used. {_BACKUP}")
    if not is_writable(library.folder / LIBRARY_FILE):
        yield Finding("library", NOTE, "can be read, not written to", "Change its permissions to add to it.")
    yield from _of_songs(library)
    yield from _of_features(library, tell)
    yield from _of_models(library)
    left = leftovers(library.folder)
    if left:
        yield Finding(
            "leftovers",
            NOTE,
            f"left by processes that were ended: {len(left):,}",
            _FIX.format("deletes them"),
            tuple(map(str, left)),
            "sweep",
        )
    yield from _of_connections(library)
    yield from _of_jobs(library)


def repair(library: Library, findings: list[Finding], report: Report) -> list[str]:
    """Do what mends findings without losing anything; what was done, a sentence each.

    Raises StoreLockedError if another process is at work on this library; StorageError if it cannot be written to.
    """
    wanted = {finding.fix for finding in findings}
    return [sentence for name, do in _REPAIRS.items() if name in wanted and (sentence := do(library, report))]


# --- looking ----------------------------------------------------------------------------------------------------------


def _of_database(found: list[str]) -> Finding:
    if not found:
        return Finding("database", OK, "whole")
    if is_of_indexes(found):
        return Finding(
            "database", PROBLEM, "indexes are damaged: " + "; ".join(found), _FIX.format("rebuilds them"), fix="index"
        )
    return Finding("database", PROBLEM, "damaged: " + "; ".join(found), _BACKUP)


def _of_songs(library: Library) -> Iterator[Finding]:
    songs, n_missing = library.songs(), len(library.missing_songs())
    absent = {song.id: str(song.path) for song in songs if not song.path.exists()}
    on_server = ServerSongs(library).ids_of(absent) if absent else {}
    gone = [path for song_id, path in absent.items() if song_id not in on_server]
    yield Finding("songs", OK, f"{len(songs):,} songs with a file")
    if n_missing:
        yield Finding(
            "songs",
            NOTE,
            f"{n_missing:,} songs are missing",
            "`musicsim missing` lists them; they return with their files.",
        )
    if gone:
        yield Finding(
            "files",
            NOTE,
            f"{len(gone):,} files are not where the last scan saw them",
            "Plug in their drive, or run `musicsim scan`.",
            tuple(gone),
        )
    n_failed = library.counts()["failed"]
    if n_failed:
        yield Finding(
            "files",
            NOTE,
            f"{n_failed:,.0f} files could not be added",
            "`musicsim failed` lists them with their reasons.",
        )
    upgrade = pending_upgrade(library)
    if upgrade is not None:
        yield Finding("version", NOTE, upgrade.words, "Open the app, which does it.")


def _of_features(library: Library, tell: Tell) -> Iterator[Finding]:
    """Audio features against songs."""
    store, hashes = library.frame_files, library.content_hashes()
    orphans = tuple(map(str, store.orphans(hashes)))
    if orphans:
        yield Finding(
            "features",
            NOTE,
            f"{len(orphans):,} files of audio features belong to no song",
            _FIX.format("deletes them"),
            orphans,
            "sweep",
        )
    if not library.settings["keep_frames"]:
        return
    kept, wanted = store.kept(), set(hashes)
    lacking, damaged = wanted - kept, _damaged(library, tell)
    for which, words in ((lacking, "are not stored"), (damaged, "are damaged")):
        if not which:
            continue
        again = _to_analyse(library, which)
        if again:
            yield Finding(
                "features",
                PROBLEM,
                f"the audio features of {len(again):,} songs {words}",
                _FIX.format("analyses them again"),
                tuple(str(song.path) for song in again),
                "features",
            )
        if len(which) > len(again):
            yield Finding(
                "features",
                NOTE,
                f"the audio features of {len(which) - len(again):,} songs without a file {words}",
                "They are analysed when their files are back.",
            )
    if not lacking and not damaged:
        yield Finding("features", OK, f"of {len(wanted):,} songs, all readable")


def _damaged(library: Library, tell: Tell) -> set[str]:
    damaged = set()
    kept = library.frame_files.kept() & set(library.content_hashes())
    for done, content_hash in enumerate(sorted(kept)):
        if done % _AT_ONCE == 0:
            tell("reading audio features", done, len(kept))
        if not library.frame_files.is_whole(content_hash):
            damaged.add(content_hash)
    return damaged


def _to_analyse(library: Library, hashes: set[str]) -> list[Song]:
    """Songs of these hashes whose files are here."""
    return [song for song in library.songs() if song.content_hash in hashes and song.path.is_file()]


def _of_models(library: Library) -> Iterator[Finding]:
    records = library.models.all(retired=True)
    n_whole = 0
    for record in records:
        error = damage(library, record)
        reason = None if record.is_retired else stale_reason(library, record)
        if error is not None:
            fixable = record.is_retired or record.kind in _MADE_HERE
            remedy = _FIX.format("fits it again") if fixable else "Delete it, and import its file again."
            names = (record.name, str(error))
            yield Finding("models", PROBLEM, f"{record.id} cannot be read", remedy, names, "models" if fixable else "")
        elif reason is not None:
            words = f"{record.id} is older than what it was made of"
            yield Finding("models", NOTE, words, _FIX.format("fits it again"), (record.name, reason), "models")
        else:
            n_whole += 1
        beside = [path for path in map(library.models.path(record.id).joinpath, _BESIDE) if not _is_readable(path)]
        if beside:
            words = f"the {' and '.join(path.stem for path in beside)} of {record.id} cannot be read"
            yield Finding("models", PROBLEM, words, _FIX.format("makes them again"), (record.name,), "models")
    if n_whole:
        yield Finding("models", OK, f"{n_whole} models are whole")
    orphans = tuple(map(str, library.models.orphans()))
    if orphans:
        words = f"{len(orphans)} folders of models that were not finished"
        yield Finding("models", NOTE, words, _FIX.format("deletes them"), orphans, "sweep")
    if len(library) and not library.is_refreshed:
        words = "map, models and playlist walk are older than the songs or playlists"
        yield Finding("models", NOTE, words, _FIX.format("brings them up to date"), fix="models")


def _is_readable(arrays: Path) -> bool:
    """Whether a file of arrays can be read, or is not there."""
    try:
        load_arrays(arrays)
    except Exception:  # zipfile and numpy raise nearly anything at a damaged file
        return False
    return True


def _of_connections(library: Library) -> Iterator[Finding]:
    """The files that hold passwords and tokens."""
    for read in (Connections(library).all, partial(player_access, library)):
        try:
            read()
        except LibraryError as error:
            words = "what music servers or players are let in by cannot be read"
            yield Finding("connections", PROBLEM, words, "Delete the file, and connect them again.", (str(error),))


def _of_jobs(library: Library) -> Iterator[Finding]:
    last = next(iter(library.jobs.recent(1)), None)
    if last is not None and last.is_active:
        words = f"job {last.id} ({last.kind}) is at work: what it has not entered yet may be counted above"
        yield Finding("jobs", NOTE, words, "Look again when it has ended.")
    elif last is not None and last.state in ("failed", "interrupted"):
        words = f"the last job, {last.id} ({last.kind}), ended as {last.state}"
        yield Finding("jobs", NOTE, words, "Start it again; it goes on where it was.", (last.message,))


# --- mending ----------------------------------------------------------------------------------------------------------


def _rebuild_indexes(library: Library, _report: Report) -> str:
    return "the indexes of the database were rebuilt" if rebuild_indexes(library.write) else ""


def _sweep(library: Library, _report: Report) -> str:
    with library.exclusive("repairing files"):  # which sweeps what processes have left
        library.frame_files.sweep(library.content_hashes())
        library.models.discard_unfinished()
    return "what killed processes had left was deleted"


def _analyse_again(library: Library, report: Report) -> str:
    kept, hashes = library.frame_files.kept(), set(library.content_hashes())
    damaged = _damaged(library, teller(report))
    songs = _to_analyse(library, (hashes - kept) | damaged)
    with library.exclusive("repairing files"):
        for song in songs:
            library.frame_files.drop(song.content_hash)
    done = scan_and_refresh(library, [song.path for song in songs], report, absent_ok=True)
    return f"{len(songs):,} songs were analysed again, {len(done.failures):,} of them in vain"


def _refit(library: Library, report: Report) -> str:
    tell = teller(report)
    refresh(library, tell=tell)  # fits what is built in, and what is older than what it was made of
    damaged = [record for record in library.models.all() if damage(library, record) is not None]
    again = [record for record in damaged if record.kind in _MADE_HERE]
    with library.exclusive("repairing files"):
        n_made = sum(make_again(library, record, Quiet(tell)) for record in again)
    if n_made:
        refresh(library, tell=tell)
    return "models, map and playlist walk were brought up to date" + (f", {n_made} fitted again" if n_made else "")


_REPAIRS: dict[str, Callable[[Library, Report], str]] = {
    "index": _rebuild_indexes,
    "sweep": _sweep,
    "features": _analyse_again,
    "models": _refit,
}
"""In the order in which they are done: each finds what the one before has left."""
