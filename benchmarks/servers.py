"""Response times for a music server that requests similar songs, the time of a sync, and the memory of the process.

Requests go through the app's routes as OpenSubsonic's ``getSonicSimilarTracks`` and a plugin's ``/api/similar_tracks``,
without the network. Songs have the ids of a connected server. ``--library FOLDER`` measures a copy of an existing
library, without changing it. By default, a library of 100,000 songs is drawn, with ``--full`` one of a million.
"""

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from unittest import mock
from urllib.parse import quote

import numpy as np

from benchmarks.large_library import write_library
from benchmarks.support.report import Claim, Progress, Row, Settings, at_most, main
from benchmarks.support.song_pages import serving
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.extensions.music_servers.connections import Connection, Connections
from musicsim.extensions.music_servers.server_songs import ServerSong, ServerSongs
from musicsim.extensions.music_servers.sync import remove, sync
from musicsim.extensions.player_engine.access import PlayerRules, answer_players
from musicsim.extensions.player_engine.jellyfin import JellyfinIds
from musicsim.library import Library
from musicsim.progress import no_progress

__all__ = ["run"]

_SONGS, _SONGS_FULL = 100_000, 1_000_000
_REQUESTS, _PATHS = 200, 20
_GOAL_MS = 100.0
_SYNCED, _GOAL_SYNC_S = 50_000, 60.0
_SYNCED_SERVER = "synced"
_SERVER = "benchmark"


def run(settings: Settings, progress: Progress) -> tuple[Sequence[Row], Sequence[Claim]]:
    """Time requests one after another, each with another song."""
    import psutil

    with _library(settings, progress) as library, mock.patch.dict(os.environ, MUSICSIM_LIBRARY=str(library.folder)):
        now = take_snapshot(library)
        ids = now.row_ids[np.random.default_rng(settings.seed).permutation(now.n_indexed)[: _REQUESTS + 1]].tolist()
        settings.facts["songs"] = now.n_indexed
        left_out = now.songs_by_id(ids[-1:])[0].folder
        del now
        rows: list[Row] = []

        def measure(what: str, ask: Callable[[int], None], asked: Sequence[int]) -> float:
            started = time.perf_counter()
            ask(ids[-1])  # the first one opens the library
            first = time.perf_counter() - started
            seconds = []
            for song_id in asked:
                started = time.perf_counter()
                ask(song_id)
                seconds.append(time.perf_counter() - started)
            p50, p95 = 1e3 * np.percentile(seconds, [50, 95])
            memory = psutil.Process().memory_info().rss / 1e6
            rows.append({"what": what, "first s": first, "p50 ms": p50, "p95 ms": p95, "MB": memory})
            progress(f"{what}: p95 {p95:.0f} ms")
            return float(p95)

        token = answer_players(library, PlayerRules()).token
        get = _client(token)
        n = settings.facts["songs"]

        def similar(song_id: int) -> None:
            get(f"/rest/getSonicSimilarTracks?id={song_id}&count=50&f=json&apiKey={token}")

        def similar_there(song_id: int) -> None:
            get(f"/rest/getSonicSimilarTracks?id=so-{song_id}&count=50&f=json&apiKey={token}")

        def plugin(song_id: int) -> None:
            get(f"/api/similar_tracks?item_id={song_id}&n=50&eliminate_duplicates=true")

        def for_jellyfin(song_id: int) -> None:
            get(f"/api/similar_tracks?item_id={guids[song_id]}&n=50")

        measure("similar songs, ids of the library", similar, ids[:-1])
        guids = JellyfinIds(library, "").ids_of(ids)
        in_jellyfin = measure("for a plugin, ids of Jellyfin", for_jellyfin, ids[:-1])
        syncs = _syncs(library, progress)
        rows += syncs
        started = time.perf_counter()
        there = [ServerSong(f"so-{i}", song_id=i) for i in library.table().ids.tolist()]
        ServerSongs(library).write(_SERVER, there)
        progress(f"ids of a server: {time.perf_counter() - started:.0f} s")
        p95 = {
            "similar songs": measure("similar songs, ids of a server", similar_there, ids[:-1]),
            "similar songs for a plugin": measure("the same for a plugin", plugin, ids[:-1]),
            "similar songs for Jellyfin": in_jellyfin,
        }
        answer_players(library, PlayerRules(no_folders=frozenset({left_out}), duration_s=(60.0, 900.0)))
        p95["filtered similar songs"] = measure("under a folder left out and lengths", plugin, ids[:-1])
        answer_players(library, PlayerRules())
        artists = {i: name for i in ids if (name := library.song(i).artist)}
        measure(
            "similar artists",
            lambda i: get(f"/api/similar_artists?artist={quote(artists.get(i) or next(iter(artists.values())))}"),
            [i for i in ids if i in artists][:_PATHS],
        )
        measure("a path of 12", lambda i: get(f"/api/find_path?start_song_id={i}&end_song_id={ids[0]}&max_steps=12"),
                ids[1:_PATHS])  # fmt: skip
    claims = [at_most(f"{what} of {n:,}, p95 in ms", value, _GOAL_MS) for what, value in p95.items()]
    claims.append(at_most(f"sync of {min(n, _SYNCED):,} songs, s", float(syncs[0]["s"]), _GOAL_SYNC_S))
    return rows, claims


def _syncs(library: Library, progress: Progress) -> list[Row]:
    """Return the seconds and requests of syncs with a server that lists songs of the library."""
    songs = library.songs(library.table().ids[:_SYNCED].tolist())
    rows: list[Row] = []
    with serving(songs) as server:
        Connections(library).put(Connection(_SYNCED_SERVER, server.address, "me", "secret"))
        for what in ("all songs", "nothing has changed", "ten songs have gone"):
            if what == "ten songs have gone":
                server.drop(10)
            server.n_asked, started = 0, time.perf_counter()
            report = sync(library, Connections(library).get(_SYNCED_SERVER), no_progress)
            seconds = time.perf_counter() - started
            rows.append({"what": f"sync of {len(songs):,}: {what}", "s": seconds, "requests": server.n_asked})
            progress(f"{what}: {report.summary}: {seconds:.1f} s, {server.n_asked} requests")
    remove(library, _SYNCED_SERVER)
    return rows


@contextmanager
def _library(settings: Settings, progress: Progress) -> Iterator[Library]:
    """Yield a library that may be changed."""
    with tempfile.TemporaryDirectory(prefix="musicsim-servers-") as scratch:
        folder = Path(scratch) / "library"
        if settings.library is not None:
            shutil.copytree(settings.library, folder)
        else:
            n = _SONGS_FULL if settings.full else _SONGS
            progress(f"drawing a library of {n:,} songs")
            write_library(folder, n).close()
        with Library.open(folder) as library:
            yield library


def _client(token: str) -> Callable[[str], None]:
    from starlette.applications import Starlette
    from starlette.testclient import TestClient

    from musicsim.api import routes

    client = TestClient(Starlette(routes=routes()), headers={"Authorization": f"Bearer {token}"})

    def get(path: str) -> None:
        answer = client.get(path)
        if answer.status_code != 200 or '"failed"' in answer.text[:200]:
            raise RuntimeError(f"{path.partition('&apiKey')[0]}: {answer.text[:200]}")

    return get


if __name__ == "__main__":
    main(
        "servers",
        "similar songs for players of music servers",
        run,
        rivals=("starlette", "sqlalchemy"),
        takes_library=True,
        short="100,000 of 1,000,000 songs",
    )
