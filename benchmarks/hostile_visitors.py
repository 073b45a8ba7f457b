"""Hostile visitors of a public demonstration, and the time that other visitors wait during an attack.

``musicsim app --public`` serves the demo collection. Every visitor has a separate address, sent in ``X-Forwarded-For``
as by a proxy.

- *reruns*: one visitor requests 3,000 and then 30,000 runs of the page's script at once.
- *sockets*: one address tries to open 400 pages, and each one that opens requests 200 runs.
- *idle sockets*: one address tries again and again to have 400 pages open that send nothing.
- *heavy reads*: one address generates playlists over 40 connections.
- *visitors*: 80 visitors from separate addresses arrive at once; each clicks every 3 to 5 s.
- *slow bodies*: 32 files are sent to ``POST /api/similar`` and 32 to the page's uploader, 5 bytes every 3 s. First
  they come from one address, then from 64.

During each attack another visitor repeatedly opens pages, clicks songs on *Listen*, and searches with a file, on the
page and over the API. A health check runs in parallel.
"""

import asyncio
import http.client
import itertools
import random
import shutil
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
from websockets.exceptions import InvalidStatus

from benchmarks.libraries import demo_library
from benchmarks.support.app import served
from benchmarks.support.listen_client import ListenClient
from benchmarks.support.report import Claim, Progress, Row, Settings, at_most, main
from benchmarks.support.streamlit_session import Session, open_socket, session, upload_request
from musicsim import demo
from musicsim.library import Library

_COMMAND = [sys.executable, "-m", "musicsim", "app", "--no-browser", "--public", "--port={port}"]
_HOSTILE, _OTHER = "198.51.100.1", "203.0.113.7"
_N_SLOW, _DRIP_EVERY_S = 64, 3.0
_N_SOCKETS, _N_EACH = 400, 200
_N_READS = 40
_N_VISITORS, _PAUSE_S = 80, (3.0, 5.0)
_SONGS = (5, 60, 120, 200)  # ids of songs that visitors click
_PATIENCE_S = 120.0
_LOOK_S = 12.0  # duration of the measurement per attack
_CHECKS = ThreadPoolExecutor(1)  # of its own, because the attacks keep the other threads busy
_MAX_HEALTH_S, _MAX_CLICK_S, _MAX_UPLOAD_S = 1.0, 3.0, 10.0


async def _timed(doing: Awaitable[object]) -> float:
    started = time.perf_counter()
    async with asyncio.timeout(_PATIENCE_S):
        await doing
    return time.perf_counter() - started


async def _health(address: str) -> None:
    def ask() -> None:
        connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=_PATIENCE_S)
        try:
            connection.request("GET", "/_stcore/health")
            connection.getresponse().read()
        finally:
            connection.close()

    await asyncio.get_running_loop().run_in_executor(_CHECKS, ask)


async def _post(address: str, data: bytes) -> None:
    """Search over the API; raise RuntimeError if the status is not 200."""

    def ask() -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=_PATIENCE_S)
        try:
            headers = {"Content-Type": "audio/flac", "X-Forwarded-For": _OTHER}
            connection.request("POST", "/api/similar", data, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    status, said = await asyncio.to_thread(ask)
    if status != 200:
        raise RuntimeError(f"the search was answered with {status}: {said[:200]!r}")


class _Watch:
    """The times of health checks, and of another visitor's steps."""

    def __init__(self, address: str) -> None:
        self._address = address
        self.seconds: dict[str, list[float]] = {"health": [], "click": []}
        self.failures: list[str] = []  # of visitors that are not hostile

    async def during(self, attack: Awaitable[object], uploads: tuple[str, bytes] | None = None) -> None:
        """Measure until the attack and the minimum duration are over."""
        attacking = asyncio.ensure_future(attack)
        await asyncio.sleep(0.1)  # its first messages are sent by then
        until = time.monotonic() + _LOOK_S
        tasks = [asyncio.create_task(self._check(until)), asyncio.create_task(self._visit(until, uploads))]
        try:
            await asyncio.gather(*tasks)
        finally:
            attacking.cancel()
            with suppress(asyncio.CancelledError, Exception):  # the server may have closed its connections
                await attacking

    async def _check(self, until: float) -> None:
        while time.monotonic() < until:
            self.seconds["health"].append(await _timed(_health(self._address)))
            await asyncio.sleep(0.1)

    async def _visit(self, until: float, uploads: tuple[str, bytes] | None) -> None:
        while time.monotonic() < until:
            async with session(self._address, X_Forwarded_For=_OTHER) as other:
                self.seconds["click"].append(await _timed(other.open()))
                for page in ("train", "listen"):
                    await asyncio.sleep(0.2)
                    self.seconds["click"].append(await _timed(other.switch("" if page == "listen" else page)))
                listen = ListenClient(self._address, X_Forwarded_For=_OTHER)
                for song in _SONGS:
                    self.seconds["click"].append(await _timed(listen.start(song=song)))
                if uploads is not None:
                    self._note("upload, page", await _timed(listen.send(*uploads)))
                    self._note("upload, interface", await _timed(_post(self._address, uploads[1])))
                if problems := other.problems():
                    raise RuntimeError(problems[0])

    def _note(self, what: str, seconds: float) -> None:
        self.seconds.setdefault(what, []).append(seconds)


@asynccontextmanager
async def _hostile(address: str, n: int = 1) -> AsyncIterator[list[Session]]:
    async with AsyncExitStack() as held:
        found = []
        for _ in range(n):
            with suppress(InvalidStatus):  # the address has enough pages
                found.append(await held.enter_async_context(session(address, X_Forwarded_For=_HOSTILE)))
                # silent pages are closed
                await (found[-1].flood(1) if len(found) > 1 else found[0].open())
        yield found


async def _reruns(address: str, n: int, watch: _Watch) -> None:
    async with _hostile(address) as (one,):
        await watch.during(one.flood(n))


async def _sockets(address: str, watch: _Watch) -> None:
    async with _hostile(address, _N_SOCKETS) as many:
        await watch.during(asyncio.gather(*(one.flood(_N_EACH) for one in many)))


async def _idle_sockets(address: str, watch: _Watch) -> None:
    async def hold() -> None:
        while True:
            with suppress(InvalidStatus):
                async with open_socket(address, {"X-Forwarded-For": _HOSTILE}) as socket:
                    await socket.wait_closed()
            await asyncio.sleep(_PAUSE_S[0])

    await watch.during(asyncio.gather(*(hold() for _ in range(_N_SOCKETS))))


async def _heavy_reads(address: str, watch: _Watch) -> None:
    place = urlsplit(address)
    ask = f"GET /api/playlist?length=100 HTTP/1.1\r\nHost: {place.netloc}\r\nX-Forwarded-For: {_HOSTILE}\r\n"

    async def read() -> None:
        while True:
            reader, writer = await asyncio.open_connection(place.hostname, place.port)
            writer.write(f"{ask}Connection: close\r\n\r\n".encode())
            is_answered = (await reader.read()).startswith(b"HTTP/1.1 200")
            writer.close()
            await asyncio.sleep(0.0 if is_answered else 1.0)

    await watch.during(asyncio.gather(*(read() for _ in range(_N_READS))))


async def _many_visitors(address: str, watch: _Watch, seed: int) -> None:
    rng = random.Random(seed)

    async def visit(i: int) -> None:
        try:
            async with session(address, X_Forwarded_For=f"192.0.2.{i}") as one:
                await one.open()
                listen = ListenClient(address, X_Forwarded_For=f"192.0.2.{i}")
                for song, page in itertools.cycle(zip(_SONGS, ("train", "", "playlist", ""), strict=True)):
                    watch.failures += one.problems()
                    await asyncio.sleep(rng.uniform(*_PAUSE_S))
                    await listen.start(song=song)
                    await asyncio.sleep(rng.uniform(*_PAUSE_S))
                    await one.switch(page)
        except Exception as error:
            watch.failures.append(f"{type(error).__name__}: {str(error)[:200]}")

    await watch.during(asyncio.gather(*(visit(i) for i in range(_N_VISITORS))))


async def _slow_bodies(address: str, watch: _Watch, recording: tuple[str, bytes], n_addresses: int) -> None:
    """Send files slowly, half of them to the API and half to the page."""
    place = urlsplit(address)

    async def drip(head: str) -> None:
        while True:
            reader, writer = await asyncio.open_connection(place.hostname, place.port)
            writer.write(head.encode())
            with suppress(OSError):  # the server has closed it
                while not reader.at_eof():
                    writer.write(b"12345")
                    await writer.drain()
                    await asyncio.sleep(_DRIP_EVERY_S)
            writer.close()

    async with _hostile(address) as (one,):
        heads = []
        for i in range(_N_SLOW):
            sender = f"198.51.100.{1 + i % n_addresses}"
            headers = {"Host": place.netloc, "Content-Length": "1000000", "X-Forwarded-For": sender}
            if i % 2:
                url = (await one.file_address(f"{i}.flac")).upload_url
                _, more = await asyncio.to_thread(upload_request, place.netloc, {}, "x.flac", b"")
                heads.append((f"PUT {url}", headers | more))
            else:
                heads.append(("POST /api/similar", headers | {"Content-Type": "audio/flac"}))
        texts = [
            f"{ask} HTTP/1.1\r\n" + "".join(f"{n}: {v}\r\n" for n, v in sent.items()) + "\r\n" for ask, sent in heads
        ]
        await watch.during(asyncio.gather(*map(drip, texts)), recording)


def run(settings: Settings, progress: Progress) -> tuple[list[Row], list[Claim]]:
    rows: list[Row] = []
    claims: list[Claim] = []
    limits = {"health": _MAX_HEALTH_S, "click": _MAX_CLICK_S}
    with tempfile.TemporaryDirectory(prefix="musicsim-hostile-") as scratch:
        folder = Path(scratch) / "library"
        with demo_library(settings.seed, progress) as original:
            settings.facts["songs"] = len(original)
            shutil.copytree(original.folder, folder, ignore=shutil.ignore_patterns("music", "scratch"))
        Library.open(folder).close()
        path = demo.write_song(demo.plan_collection(seed=settings.seed + 1)[0], Path(scratch))
        recording = path.name, path.read_bytes()
        attacks: dict[str, Callable[[str, _Watch], Awaitable[None]]] = {
            "3,000 reruns": lambda at, watch: _reruns(at, 3_000, watch),
            "30,000 reruns": lambda at, watch: _reruns(at, 30_000, watch),
            f"{_N_SOCKETS} sockets": _sockets,
            f"{_N_SOCKETS} idle sockets": _idle_sockets,
            f"{_N_READS} heavy reads": _heavy_reads,
            f"{_N_VISITORS} visitors": lambda at, watch: _many_visitors(at, watch, settings.seed),
            "slow bodies of one address": lambda at, watch: _slow_bodies(at, watch, recording, 1),
            f"slow bodies of {_N_SLOW} addresses": lambda at, watch: _slow_bodies(at, watch, recording, _N_SLOW),
        }
        for name, attack in attacks.items():
            progress(name)
            with served([*_COMMAND, f"--library={folder}"]) as (address, _):
                asyncio.run(_Watch(address).during(asyncio.sleep(0), recording))  # the first visitor waits longer
                watch = _Watch(address)
                try:
                    asyncio.run(attack(address, watch))
                except Exception as error:  # the other visitor failed
                    watch.failures.append(f"{type(error).__name__}: {str(error)[:200]}")
                for failure in watch.failures:
                    progress(failure)
            for what, seconds in watch.seconds.items():
                slowest = max(seconds, default=None)
                if seconds:
                    rows.append({
                        "attack": name, "what": what, "n": len(seconds), "median_s": float(np.median(seconds)),
                        "slowest_s": slowest,
                    })  # fmt: skip
                claims.append(at_most(f"{name}: {what}, s", slowest, limits.get(what, _MAX_UPLOAD_S)))
            claims.append(at_most(f"{name}: steps that failed", len(watch.failures), 0))
    return rows, claims


if __name__ == "__main__":
    main("hostile_visitors", __doc__.splitlines()[0], run, rivals=("streamlit", "websockets"))
