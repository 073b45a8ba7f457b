"""Analyze a server's songs without local files: download each, analyze it, and delete the copy."""

import logging
import os
import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from musicsim.errors import MusicsimError, ServerError, StorageError
from musicsim.explorer import bring_model_up, part_of
from musicsim.extensions.music_servers.client import Subsonic
from musicsim.extensions.music_servers.connections import FETCHED, Connection, Connections, place_of
from musicsim.extensions.music_servers.server_songs import ServerSong, ServerSongs
from musicsim.extensions.music_servers.sync import SyncReport, sync
from musicsim.library import (
    Analysis,
    AnalysisTask,
    Library,
    LocalPool,
    Same,
    SkippedFile,
    analyze,
    enter_song,
    scratch_of,
)
from musicsim.progress import Canceled, Progress

_log = logging.getLogger(__name__)
_MAX_FAILED = 20  # number of consecutive failures after which the server is assumed to be down
_LENGTH_S, _LENGTH_SHARE = 5.0, 0.05
_PARTS = (0.0, 0.1, 0.8, 1.0)  # shares of the bar after the sync, the songs and the models
_ENDING = re.compile(r"\.[A-Za-z0-9]{1,5}$")


@dataclass(slots=True)
class FetchReport:
    n_wanted: int = 0
    n_added: int = 0  # number of new songs in the library
    n_known: int = 0  # number of songs that the library already had under different names
    failures: list[str] = field(default_factory=list)  # one sentence for each song that was not added
    is_canceled: bool = False


def fetch_missing(library: Library, connection: Connection, progress: Progress) -> FetchReport:
    """Analyze a server's songs that are not in the library; if a song fails, the songs before it are kept."""
    songs = ServerSongs(library).read_songs(connection.name).values()
    wanted = [song for song in songs if song.song_id is None and song.candidates is None and not song.how]
    report = FetchReport(len(wanted))
    if wanted:
        with library.exclusive("fetching songs from a server"), scratch_of(library.folder).folder() as scratch:
            _fetch_all(library, connection, wanted, scratch, report, progress)
    return report


def _fetch_all(
    library: Library, connection: Connection, wanted: list[ServerSong], scratch: Path, report: FetchReport,
    progress: Progress,
) -> None:  # fmt: skip
    settings = library.settings
    songs: dict[Path, ServerSong] = {}
    client = Subsonic(connection)

    def tasks() -> Iterator[AnalysisTask]:
        n_failed = 0
        for number, song in enumerate(wanted):
            ending = _ENDING.search(song.path)
            target = scratch / f"{number}{ending[0].lower() if ending else ''}"
            try:
                client.download(song.id, target)
            except ServerError as error:
                target.unlink(missing_ok=True)
                report.failures.append(f"{song.label}: {error}")
                n_failed += 1
                if n_failed >= _MAX_FAILED:
                    report.failures.append(f"{_MAX_FAILED} songs in a row failed. Fetch the remaining songs later.")
                    return
                continue
            n_failed = 0
            songs[target] = song
            size = target.stat().st_size
            yield AnalysisTask(
                target, size, library.frame_files.folder, shortest_s=settings["shortest_s"], take_silent=False,
                aspects=settings["aspects"],
            )  # fmt: skip

    with closing(LocalPool(1).outcomes(analyze, tasks(), limits=library.file_limits, preload=("scipy.fft",))) as items:
        for item in items:
            if item is not None:
                task, outcome = item
                _enter(library, connection, songs.pop(task.path), outcome, report)
                task.path.unlink(missing_ok=True)
            n_failed = len(report.failures)
            n_done = report.n_added + report.n_known + n_failed
            try:
                progress(f"{connection.name}: songs without a local file", n_done, len(wanted), failed=n_failed)
            except Canceled:
                report.is_canceled = True
                return


def _enter(library: Library, connection: Connection, song: ServerSong, outcome: Any, report: FetchReport) -> None:
    if isinstance(outcome, StorageError):
        raise outcome
    if problem := _find_problem(outcome, song):
        # save the reason, so that the song is not fetched again until its entry on the server changes
        report.failures.append(f"{song.label}: {problem}")
        ServerSongs(library).write(connection.name, [replace(song, how=problem)])
        return
    song_id = library.song_with_sound(outcome.content_hash, outcome.sound.sound_hash)
    if song_id is None or library.song(song_id).is_missing:
        place = _free_place(library, connection, song, song_id)
        enter_song(library, place, replace(outcome, tags=_complete_tags(outcome, song)))
        song_id = library.song_with_sound(outcome.content_hash, outcome.sound.sound_hash)
        report.n_added += 1
    else:
        report.n_known += 1
    ServerSongs(library).write(connection.name, [replace(song, song_id=song_id, how=FETCHED)])


def _find_problem(outcome: Any, song: ServerSong) -> str | None:
    if isinstance(outcome, SkippedFile | Same):
        return "the file is too short or too quiet to be a song."
    if isinstance(outcome, MusicsimError):
        # hide the name of the temporary copy, which means nothing to users
        return re.sub(r"\S*" + re.escape(os.sep) + r"scratch" + re.escape(os.sep) + r"\S+", "the file", str(outcome))
    if not isinstance(outcome, Analysis):
        return f"the file could not be analyzed ({type(outcome).__name__})."
    seconds = outcome.sound.duration_s
    if song.duration_s is not None and abs(seconds - song.duration_s) > max(_LENGTH_S, _LENGTH_SHARE * seconds):
        return f"the server sent {seconds:.0f} s of audio but lists {song.duration_s:.0f} s: this is the wrong file."
    return None


def _free_place(library: Library, connection: Connection, song: ServerSong, song_id: int | None) -> Path:
    place = place_of(library, connection.name, song.id, song.path)
    if library.files.song_at(place, missing=True) in (None, song_id):
        return place
    return place.with_name(f"{place.stem} {re.sub('[^A-Za-z0-9-]', '', song.id)}{place.suffix}")


def _complete_tags(analysis: Analysis, song: ServerSong) -> Any:
    """Return the file's tags, completed from the server's entry, because a streamed file may have no tags."""
    tags = analysis.tags
    return replace(
        tags,
        title=song.title if song.title and not tags.artist else tags.title,
        artist=tags.artist or song.artist or None,
        album=tags.album or song.album or None,
        mb_recording_id=tags.mb_recording_id or song.mbid or None,
    )


def sync_and_fetch(
    library: Library, connection: Connection, *, everything: bool = False, fetch: bool = False, progress: Progress
) -> tuple[SyncReport, FetchReport | None]:
    """Sync a server; with `fetch`, also analyze the songs that are not in the library, and update the model."""
    parts = [part_of(progress, *bounds) for bounds in pairwise(_PARTS if fetch else (0.0, 1.0))]
    report = sync(library, connection, parts[0], everything=everything)
    if not fetch or not report.n_unmatched:
        return report, None
    fetched = fetch_missing(library, connection, parts[1])
    if fetched.n_added and not fetched.is_canceled:
        fetched.is_canceled = not bring_model_up(library, parts[2])
    return report, fetched


def run(library: Library, *, name: str, fetch: bool = False, progress: Any) -> bool:
    report, fetched = sync_and_fetch(library, Connections(library).get(name), fetch=fetch, progress=progress)
    progress.outcome = report.summary
    if fetched is None:
        return True
    progress.outcome += f" · {fetched.n_added:,} added · {len(fetched.failures):,} failed"
    for failure in fetched.failures:
        _log.warning("%s", failure)
    return not fetched.is_canceled
