"""Songs of a server that have no file here: fetched one at a time, analysed, and the copy deleted."""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from musicsim.errors import MusicsimError, ServerError, StorageError
from musicsim.extensions.music_servers.client import Subsonic
from musicsim.extensions.music_servers.connections import FETCHED, Connection, place_of
from musicsim.extensions.music_servers.server_songs import ServerSong, ServerSongs
from musicsim.library import Library
from musicsim.library.disk.scratch import scratch_of
from musicsim.library.processes.workers import outcomes
from musicsim.library.scan.analysis import Analysis, Same, Skipped, Task, analyse
from musicsim.library.scan.catalogue import enter_song

_MAX_FAILED = 20  # in a row: the server has gone
_LENGTH_S, _LENGTH_SHARE = 5.0, 0.05
_ENDING = re.compile(r"\.[A-Za-z0-9]{1,5}$")

Report = Callable[..., bool | None]


@dataclass(slots=True)
class FetchReport:
    """What came of fetching songs."""

    n_wanted: int = 0
    n_added: int = 0  # songs that are new here
    n_known: int = 0  # songs that are here under other names
    failures: list[str] = field(default_factory=list)  # a sentence for each song that was not added
    is_cancelled: bool = False


def fetch_missing(library: Library, connection: Connection, report: Report) -> FetchReport:
    """Analyse the songs of a server that are not here; what is done stays, whatever happens.

    `report` takes message, done, total and failed by name; True stops.

    Raises StoreLockedError if another process is adding to this library; StorageError if there is no room.
    """
    wanted = [
        song
        for song in ServerSongs(library).of(connection.name).values()
        if song.song_id is None and song.candidates is None and not song.how
    ]
    done = FetchReport(len(wanted))
    if wanted:
        with library.exclusive("fetching songs of a server"), scratch_of(library.folder).folder() as scratch:
            _fetch_all(library, connection, wanted, scratch, done, report)
    return done


def _fetch_all(
    library: Library, connection: Connection, wanted: list[ServerSong], scratch: Path, done: FetchReport, report: Report
) -> None:
    settings = library.settings
    songs: dict[Path, ServerSong] = {}
    client = Subsonic(connection)

    def tasks() -> Iterator[Task]:
        n_failed = 0
        for number, song in enumerate(wanted):
            ending = _ENDING.search(song.path)
            target = scratch / f"{number}{ending[0].lower() if ending else ''}"
            try:
                client.download(song.id, target)
            except ServerError as error:
                target.unlink(missing_ok=True)
                done.failures.append(f"{_name(song)}: {error}")
                n_failed += 1
                if n_failed >= _MAX_FAILED:
                    done.failures.append(f"{_MAX_FAILED} songs in a row failed: the others are left for another time.")
                    return
                continue
            n_failed = 0
            songs[target] = song
            size = target.stat().st_size
            yield Task(
                target, size, library.frame_files.folder, shortest_s=settings["shortest_s"], take_silent=False,
                aspects=settings["aspects"],
            )  # fmt: skip

    with closing(outcomes(analyse, tasks(), n_workers=1, limits=library.file_limits, preload=("scipy.fft",))) as found:
        for item in found:
            if item is not None:
                task, outcome = item
                song = songs.pop(task.path)
                _enter(library, connection, song, outcome, done)
                task.path.unlink(missing_ok=True)
            n_done = done.n_added + done.n_known + len(done.failures)
            if report(
                message=f"{connection.name}: songs without a file here", done=n_done, total=len(wanted),
                failed=len(done.failures),
            ):  # fmt: skip
                done.is_cancelled = True
                return


def _enter(library: Library, connection: Connection, song: ServerSong, outcome: Any, done: FetchReport) -> None:
    if isinstance(outcome, StorageError):
        raise outcome
    if not isinstance(outcome, Analysis):
        _leave(library, connection, song, _reason(outcome), done)
        return
    seconds = outcome.sound.duration_s
    if song.duration_s is not None and abs(seconds - song.duration_s) > max(_LENGTH_S, _LENGTH_SHARE * seconds):
        reason = (
            f"the server sent {seconds:.0f} s of sound where it lists {song.duration_s:.0f} s: it is another song's "
            f"file, or a part of it."
        )
        _leave(library, connection, song, reason, done)
        return
    known = library.song_with_sound(outcome.content_hash, outcome.sound.sound_hash)
    if known is None or library.song(known).is_missing:
        place = _free_place(library, connection, song, known)
        enter_song(library, place, replace(outcome, tags=_tags(outcome, song)))
        known = library.song_with_sound(outcome.content_hash, outcome.sound.sound_hash)
        done.n_added += 1
    else:
        done.n_known += 1
    ServerSongs(library).write(connection.name, [replace(song, song_id=known, how=FETCHED)])


def _leave(library: Library, connection: Connection, song: ServerSong, reason: str, done: FetchReport) -> None:
    """Note why a song is not taken: it is fetched again when the server lists it otherwise."""
    done.failures.append(f"{_name(song)}: {reason}")
    ServerSongs(library).write(connection.name, [replace(song, how=reason)])


def _free_place(library: Library, connection: Connection, song: ServerSong, song_id: int | None) -> Path:
    """Where a song is listed; two songs of one path on the server have two places."""
    place = place_of(library, connection.name, song.id, song.path)
    if library.files.song_at(place, missing=True) in (None, song_id):
        return place
    return place.with_name(f"{place.stem} {re.sub('[^A-Za-z0-9-]', '', song.id)}{place.suffix}")


def _tags(analysis: Analysis, song: ServerSong) -> Any:
    """The file's tags; what it does not say, as where it was streamed, is said by the server."""
    tags = analysis.tags
    return replace(
        tags,
        title=song.title if song.title and not tags.artist else tags.title,
        artist=tags.artist or song.artist or None,
        album=tags.album or song.album or None,
        mb_recording_id=tags.mb_recording_id or song.mbid or None,
    )


def _name(song: ServerSong) -> str:
    return " — ".join(filter(None, (song.title, song.artist))) or song.id


def _reason(outcome: Any) -> str:
    if isinstance(outcome, Skipped | Same):
        return "it is too short or silent to be a song."
    if isinstance(outcome, MusicsimError):
        # the copy has a name that says nothing
        return re.sub(r"\S*" + re.escape(os.sep) + r"scratch" + re.escape(os.sep) + r"\S+", "the file", str(outcome))
    return f"its file could not be analysed ({type(outcome).__name__})."
