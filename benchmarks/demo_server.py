"""The demo library on a real Supysonic: matched songs by kind of match, and the traffic.

Its songs are served under their own paths and under others, and without some of their tags, each time by a separate
Supysonic on the loopback. A match is wrong if the server's path belongs to another file than the song's. ``--library
FOLDER`` selects another library, such as one of real recordings; it is not changed. Needs the test extra.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import mutagen

from benchmarks.libraries import demo_library
from benchmarks.support.report import Claim, Progress, Row, Settings, at_least, at_most, main
from musicsim import demo
from musicsim.extensions.music_servers.client import Subsonic
from musicsim.extensions.music_servers.connections import Connections
from musicsim.extensions.music_servers.fetch import fetch_missing
from musicsim.extensions.music_servers.lists import save_list
from musicsim.extensions.music_servers.server_songs import ServerSongs
from musicsim.extensions.music_servers.sync import sync
from musicsim.library import Library
from musicsim.progress import no_progress
from tests.extensions.music_servers.serving import Supysonic, supysonic

__all__ = ["run"]

_STAR_EVERY, _LIST = 30, 25

_PLACES: dict[str, Callable[[int, Path], Path]] = {
    "as here": lambda _, path: path,
    "folders renamed": lambda _, path: Path(f"Folder of {path.parts[0]}", *path.parts[1:]),
    "files renamed": lambda number, path: path.with_name(f"{number:03d}{path.suffix}"),
    "folders and files renamed": lambda number, path: Path(f"CD {number % 7}", f"{number:03d}{path.suffix}"),
}
_NAMES = ("title", "artist", "albumartist")
_FIELDS = {"albumartist": "album_artist"}
_REMOVED = {"title": _NAMES[:1], "artist": _NAMES[1:], "title and artist": _NAMES, "all tags": None}


def run(settings: Settings, progress: Progress) -> tuple[Sequence[Row], Sequence[Claim]]:
    """Sync with each kind of path; then test stars, a playlist and a song that is missing here."""
    rows: list[Row] = []
    claims: list[Claim] = []
    with tempfile.TemporaryDirectory(prefix="musicsim-demo-server-") as name, _library(settings, progress) as original:
        for case in _cases():
            folder, music = Path(name, "library"), Path(name, "music")
            shutil.copytree(original.folder, folder, ignore=shutil.ignore_patterns("music", "scratch"))
            with Library.open(folder) as library:
                places = _served(library, music, case.place)
                if case.removed:
                    _remove_tags(library, music, _REMOVED[case.removed], is_here=case.is_here)
                with supysonic(Path(name, "server"), music) as server:
                    rows.append({"case": case.name} | _synced(library, server, places))
                    progress(", ".join(f"{key} {value}" for key, value in rows[-1].items()))
                    if case.name == "as here":
                        claims += _to_and_fro(library, server, settings.seed + 1)
            for used in (folder, music, Path(name, "server")):
                shutil.rmtree(used)
    for row in rows:
        n_songs, by_path, matched = row["songs"], row["by path"], row["matched"]
        if row["case"] == "as here" or "removed" in row["case"]:
            claims.append(at_least(f"share matched by path, {row['case']}", by_path / n_songs, 1.0))
        else:
            claims.append(at_least(f"share matched, {row['case']}", matched / n_songs, 0.98))
        claims.append(at_most(f"wrong matches, {row['case']}", row["wrong"], 0))
    return rows, claims


@dataclass(frozen=True, slots=True)
class _Case:
    name: str
    place: Callable[[int, Path], Path]
    removed: str = ""  # key of `_REMOVED`
    is_here: bool = False  # whether the library's files lack the tags, too


def _cases() -> Iterator[_Case]:
    for name, place in _PLACES.items():
        yield _Case(name, place)
    for removed in _REMOVED:
        for is_here in (False, True):
            where = "everywhere" if is_here else "on the server"
            yield _Case(f"{removed} removed {where}", _PLACES["as here"], removed, is_here)


def _remove_tags(library: Library, music: Path, names: Sequence[str] | None, *, is_here: bool) -> None:
    """Remove tags, or all, from the files of a server, and give the library's songs the names that they get then."""
    for path in filter(Path.is_file, music.rglob("*")):
        tagged = mutagen.File(path, easy=True)
        if tagged is None or tagged.tags is None:
            continue
        if names is None:
            tagged.delete()
            continue
        for name in set(names) & set(tagged.tags.keys()):
            del tagged.tags[name]
        tagged.save()
    if is_here:
        fields = ("title", "artist", "album_artist", "album") if names is None else [_FIELDS.get(n, n) for n in names]
        for song in library.songs():
            library.edits.edit([song.id], {name: song.path.stem if name == "title" else "" for name in fields})


@contextmanager
def _library(settings: Settings, progress: Progress) -> Iterator[Library]:
    named = settings.library
    with Library.open(named) if named is not None else demo_library(settings.seed, progress) as library:
        yield library


def _served(library: Library, music: Path, place: Callable[[int, Path], Path]) -> dict[str, int]:
    """Copy the songs' files to other paths; return the songs by these paths."""
    (root,) = library.files.roots()
    places = {}
    for number, song in enumerate(library.songs()):
        there = place(number, song.path.relative_to(root))
        (music / there).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(song.path, music / there)
        places[there.as_posix()] = song.id
    return places


def _synced(library: Library, server: Supysonic, places: Mapping[str, int]) -> dict[str, float]:
    connection = server.connection()
    Connections(library).put(connection)
    report = sync(library, connection, no_progress)
    known = ServerSongs(library).read_songs(connection.name).values()
    return {
        "songs": report.n_songs,
        "matched": report.n_matched,
        "by path": report.matched_by.get("path", 0),
        "by tags": report.matched_by.get("tags", 0),
        "to choose": report.n_ambiguous,
        "wrong": sum(song.song_id not in (None, places[song.path]) for song in known),
        "sync s": report.seconds,
    }


def _to_and_fro(library: Library, server: Supysonic, guest_seed: int) -> list[Claim]:
    connection = Connections(library).get("home")
    client, ids = Subsonic(connection), [song.id for song in library.songs()]
    there, before = ServerSongs(library).ids_of(ids), _loved(library)
    starred = {song_id for song_id in ids if song_id not in before and song_id % _STAR_EVERY == 0}
    for song_id in starred:
        client.ask("star", id=there[song_id])
    sync(library, connection, no_progress)
    came = _loved(library) - before == starred
    claims = [Claim(f"{len(starred)} stars came in, and no others", str(came), "True", came)]

    wanted = ids[::-7][:_LIST]
    saved = save_list(library, connection, "Evening", wanted, "because")
    entries = client.ask("getPlaylist", id=saved.id)["playlist"]["entry"]
    read = [ServerSongs(library).find_song(entry["id"])[1] for entry in entries]
    claims.append(Claim(f"a playlist of {_LIST} read back", str(read == wanted), "True", read == wanted))

    guest = demo.write_song(demo.plan_collection(seed=guest_seed)[0], server.music)
    server.scan()
    sync(library, Connections(library).get("home"), no_progress)
    done = fetch_missing(library, connection, no_progress)
    claims.append(at_least("songs without a file here that were analyzed", done.n_added, 1))
    (fetched,) = (song for song in library.songs() if song.id not in set(ids))
    is_whole = _heard(library, fetched.id) == guest.read_bytes() and not fetched.path.exists()
    claims.append(Claim("its sound through the proxy, by ranges", str(is_whole), "True", is_whole))
    return claims


def _loved(library: Library) -> set[int]:
    return {song_id for song_id, tags in library.tags().items() if any(tag == "loved" for tag, _ in tags)}


def _heard(library: Library, song_id: int) -> bytes:
    """Return the bytes of a song as a player gets them, one megabyte per request."""
    from starlette.applications import Starlette
    from starlette.testclient import TestClient

    from musicsim.api import routes

    heard = b""
    with mock.patch.dict(os.environ, MUSICSIM_LIBRARY=str(library.folder)):
        client = TestClient(Starlette(routes=routes()))
        while True:
            asked = {"Range": f"bytes={len(heard)}-{len(heard) + (1 << 20) - 1}"}
            answer = client.get(f"/songs/{song_id}/audio", headers=asked)
            if answer.status_code != 206:
                raise RuntimeError(f"{answer.status_code}: {answer.text[:200]}")
            heard += answer.content
            if len(heard) >= int(answer.headers["content-range"].partition("/")[2]):
                return heard


if __name__ == "__main__":
    main("demo_server", "the demo library on a real Supysonic", run, rivals=("supysonic",), takes_library=True)
