"""Fifty visitors of a public demonstration: their waiting times, the isolation of their data, the load of the server.

Fifty sessions of a client that speaks Streamlit's WebSocket and the HTTP interface run together with eight contexts of
one Chromium. They are in another process on the same machine as ``musicsim app --public``. Each opens *Listen*, sends
its own song, and clicks twenty times: thumbs, *Why?*, other pages and back, *Similar songs*.

- *lecture*: they arrive within 30 s, and pause for 3 to 5 s after each step.
- *all at once*: the fifty clients arrive at the same moment, and do not pause.

A search is timed from sending the file to the results, and a click until its effect. The effect is the answer in the
client, and the visible change in Chromium. Chromium also fetches the map, covers and scripts, and draws without a
graphics card. Every list of results is compared with the library's nearest songs for the same file, song and thumbs in
this process. Every message is searched for names of other visitors' files.

The server's memory includes its workers. The measurement begins after one visitor of each kind has come and gone,
because a tab fetches covers and sound, which the client does not. It ends after one more visitor: only then Streamlit
forgets the others.

Every client has a separate address, sent in ``X-Forwarded-For`` as by a proxy. Tabs of Chromium have the machine's own.

Every wait ends after two minutes: that visitor has failed, and the others continue. ``--library FOLDER`` selects a
library that is copied, without its sound; the default is the demo collection.

``--processes N``: that number of processes serve a snapshot file of the library behind nginx, with the configuration of
docs/host/proxy.md. ``--library FILE`` selects such a file. Memory is then that of all processes together, with shared
pages counted once.
"""

import asyncio
import os
import re
import shutil
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

import numpy as np
import psutil
from playwright.async_api import Browser, Locator, Page, async_playwright

from benchmarks.libraries import demo_library, read_only
from benchmarks.support.app import FLAGS, PAGES, chromium, served
from benchmarks.support.listen_client import ListenClient
from benchmarks.support.memory import family_memory
from benchmarks.support.proxy import balanced
from benchmarks.support.report import Claim, Progress, Row, Settings, at_most, main
from benchmarks.support.streamlit_session import Session, session
from musicsim import demo
from musicsim.explorer.playlists.queue import ALIKE, N_ALIKE
from musicsim.explorer.requests.search import SearchRequest
from musicsim.explorer.search.feedback import Thumbs
from musicsim.explorer.search.query import Example, make_example
from musicsim.explorer.search.requested import find_requested
from musicsim.explorer.search.uploads import decode_upload
from musicsim.explorer.snapshot.snapshot import Snapshot, take_snapshot
from musicsim.extensions.bundles.bundle import ENDING, open_bundle, write_bundle
from musicsim.library import Library
from musicsim.library.processes.decoding import decoder
from musicsim.library.scan.files import content_hash
from musicsim.progress import no_progress

N_CLIENTS, N_TABS = 50, 8
CLICKS = (
    *("like", "unlike", "playlist", "listen", "like", "why", "research", "listen", "like", "unlike"),
    *("similar", "like", "unlike", "train", "listen", "similar", "why", "library", "listen", "similar"),
)
_TITLES = PAGES | {"train": "Compare"}  # visitors see only the comparisons
_PATIENCE_S = 120
_LOOK_EVERY_S = 3.0  # between samples of the server's memory
_LEFT_S = 40  # Streamlit forgets sessions that ended 30 s ago when another one ends
_LEAVING_S = 60
_MAX_GROWTH = 1.1
_FIRST_A_PROCESS = 3
_MAX_MB = 1200.0  # per process
_COMMAND = [sys.executable, "-m", "musicsim", "app", "--no-browser", "--port={port}"]
_LOG, _LOG_SHOWN = ("servers.log", 5_000)  # log of the servers, and the length of its end that is shown after a failure
_NAME = re.compile(rb"recording\d{3}\.(?:flac|ogg)")
_IDLE = "[data-testid=stApp][data-test-script-state=notRunning]"
_THUMBS = {"like": 1, "unlike": -1}


@dataclass(frozen=True, slots=True)
class Recording:
    """The recording that a visitor searches with."""

    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Pace:
    """The arrival times and pauses of visitors."""

    name: str
    arrive_s: float  # all arrive within this time
    look_s: tuple[float, float]  # pause after a step, min and max


@dataclass(frozen=True, slots=True)
class _Served:
    """The library, its address, and the processes that serve it."""

    folder: Path
    address: str
    servers: Sequence[psutil.Process]


LECTURE, AT_ONCE = Pace("lecture", 30.0, (3.0, 5.0)), Pace("all at once", 0.0, (0.0, 0.0))


@dataclass(frozen=True, slots=True)
class Seen:
    """A list of results: the query (None: the visitor's own file), the thumbs, ids of the songs."""

    searched: int | None
    said: tuple[tuple[int, int], ...]
    ids: list[int]


@dataclass(slots=True)
class Visit:
    """The record of a visit."""

    recording: Recording
    kind: str
    steps: list[tuple[str, float]] = field(default_factory=list)  # name and seconds
    seen: list[Seen] = field(default_factory=list)
    names: set[str] = field(default_factory=set)  # of the files shown
    failure: str = ""

    def is_own(self, answers: Callable[[Recording, Seen], dict[int, float]]) -> bool:
        """Return whether the visitor saw its own file and its own results, and nobody else's.

        `answers` returns the similarity of each song that may be shown.
        """
        return self.names <= {self.recording.name} and all(
            _is_ranked(seen.ids, answers(self.recording, seen)) for seen in self.seen
        )


def _is_ranked(ids: Sequence[int], similarity: dict[int, float]) -> bool:
    """Return whether these are nearest songs in order; near-equal songs may change places."""
    return (
        bool(ids)
        and set(ids) <= similarity.keys()
        and all(similarity[one] > similarity[later] - ALIKE for one, later in combinations(ids, 2))
    )


class _Screen(ABC):
    """The view of a visitor; every method returns once its effect is there."""

    @abstractmethod
    async def open(self) -> None: ...

    @abstractmethod
    async def switch(self, name: str) -> None: ...

    @abstractmethod
    async def search(self, recording: Recording) -> None: ...

    @abstractmethod
    async def click(self, what: str, index: int, song_id: int) -> None:
        """Click a button of a result."""

    @abstractmethod
    async def answers(self) -> list[int]:
        """Return the ids of the results."""

    @abstractmethod
    async def names(self) -> set[str]:
        """Return the names of the files shown."""


class _Client(_Screen):
    def __init__(self, of: Session, listen: ListenClient) -> None:
        self._session, self._listen, self._own = of, listen, b""

    async def open(self) -> None:
        await self._session.open()
        self._check()

    async def switch(self, name: str) -> None:
        await self._session.switch("" if name == "listen" else name)
        self._check()

    async def search(self, recording: Recording) -> None:
        await self._listen.send(recording.name, recording.data)
        self._own = recording.name.encode()

    async def click(self, what: str, index: int, song_id: int) -> None:
        if what in _THUMBS:
            await self._listen.press_thumb(song_id, _THUMBS[what])
        elif what == "why":
            await self._listen.explain(song_id)
        else:
            await self._listen.start(song=song_id)

    async def answers(self) -> list[int]:
        return [item["song"]["id"] for item in self._listen.items if item["similarity"] is not None]

    async def names(self) -> set[str]:
        return _names(self._session.said + self._listen.said + self._own)

    def _check(self) -> None:
        problems = self._session.problems()
        if problems:
            raise RuntimeError(problems[0])


class _Tab(_Screen):
    def __init__(self, page: Page, address: str) -> None:
        self._page, self._address = page, address

    async def open(self) -> None:
        await self._page.goto(self._address, wait_until="commit")
        await self._heading("listen").wait_for()
        await self._page.wait_for_selector(_IDLE)

    async def switch(self, name: str) -> None:
        await self._page.get_by_test_id("stSidebarNavLink").filter(has_text=_TITLES[name]).click()
        await self._heading(name).wait_for()
        await self._page.wait_for_selector(_IDLE)

    async def search(self, recording: Recording) -> None:
        file = {"name": recording.name, "mimeType": "audio/flac", "buffer": recording.data}
        await self._page.get_by_role("button", name="Add sound").click()
        await self._page.get_by_label("A file, which you can also drop").set_input_files(file)
        await self._page.get_by_role("heading", name=recording.name).wait_for()
        await self._rows.first.wait_for()

    async def click(self, what: str, index: int, song_id: int) -> None:
        row = self._page.locator(f"[data-testid=song-row][data-song-id='{song_id}']")
        name = {"why": "^Why", "similar": "^Similar songs", "like": " fits$", "unlike": " does not fit$"}[what]
        button = row.get_by_role("button", name=re.compile(name))
        if not await button.is_visible():
            await row.locator(".opener").click()
        await button.click()
        if what == "like":
            await row.locator("[data-icon=like][aria-pressed=true]").wait_for(state="attached")
        elif what == "why":
            await self._page.get_by_role("dialog").wait_for()
            await self._page.keyboard.press("Escape")
        else:
            await row.wait_for(state="detached")
        await self._page.locator("[data-testid=listen]:not([data-busy])").wait_for()

    async def answers(self) -> list[int]:
        nearest = "rows => rows.filter(row => row.querySelector('.bar')).map(row => row.dataset.songId)"
        return [int(i) for i in await self._rows.evaluate_all(nearest)]

    async def names(self) -> set[str]:
        shown = [self._page.locator("body"), self._page.get_by_test_id("listen")]  # Listen is in a shadow tree
        return _names("\n".join([text for one in shown for text in await one.all_inner_texts()]).encode())

    @property
    def _rows(self) -> Locator:
        return self._page.get_by_test_id("song-row")

    def _heading(self, name: str) -> Locator:
        return self._page.get_by_role("heading", name=_TITLES[name], exact=True)


def _names(said: bytes) -> set[str]:
    return {name.decode() for name in _NAME.findall(said)}


async def _go_through(screen: _Screen, visit: Visit, pace: Pace, rng: np.random.Generator) -> None:
    """Open, search, and click; record in `visit` everything that is shown."""

    async def step(name: str, doing: Awaitable[None]) -> None:
        started = time.perf_counter()
        async with asyncio.timeout(_PATIENCE_S):
            await doing
        visit.steps.append((name, time.perf_counter() - started))
        visit.names |= await screen.names()

    async def look() -> None:
        await asyncio.sleep(rng.uniform(*pace.look_s))

    await step("open", screen.open())
    await look()
    await step("page", screen.switch("listen"))
    await look()
    await step("search", screen.search(visit.recording))
    if visit.names != {visit.recording.name}:
        raise RuntimeError(f"{visit.recording.name} is not shown, but {visit.names or 'no file'}")
    searched: int | None = None
    said: tuple[tuple[int, int], ...] = ()  # thumbs of this queue; a new one begins without
    ids = await screen.answers()
    visit.seen.append(Seen(searched, (), ids))
    for what in CLICKS:
        await look()
        if what in PAGES:
            await step("page", screen.switch(what))
            if what != "listen":
                continue
        else:
            judged = dict(said)
            index = int(rng.choice([i for i, song_id in enumerate(ids) if song_id not in judged]))
            await step("thumb" if what in _THUMBS else what, screen.click(what, index, ids[index]))
            if what in _THUMBS:
                said = (*said, (ids[index], _THUMBS[what]))
            elif what == "similar":
                searched, said = ids[index], ()
        ids = await screen.answers()
        visit.seen.append(Seen(searched, said, ids))


async def _visit(visit: Visit, address: str, browser: Browser | None, pace: Pace, seed: int, number: int) -> None:
    """Run the visit of this number from arrival to departure; record an error as its failure."""
    rng = np.random.default_rng((seed, number))
    await asyncio.sleep(rng.uniform(0.0, pace.arrive_s))
    try:
        if browser is None:
            headers = {"X_Forwarded_For": f"192.0.2.{1 + number}"}
            async with session(address, **headers) as of:
                await _go_through(_Client(of, ListenClient(address, **headers)), visit, pace, rng)
            return
        context = await browser.new_context(viewport={"width": 1280, "height": 900}, ignore_https_errors=True)
        context.set_default_timeout(1000 * _PATIENCE_S)
        try:
            await _go_through(_Tab(await context.new_page(), address), visit, pace, rng)
        finally:
            await context.close()
    except Exception as error:  # any error: this visitor was not served
        visit.failure = f"step {len(visit.steps) + 1}: {type(error).__name__}: {str(error)[:300]}"


class _Memory:
    """The memory of the servers together, in MB, and its peak."""

    def __init__(self, servers: Sequence[psutil.Process]) -> None:
        self._servers, self.most = servers, 0.0

    async def now(self) -> float:
        found = [await asyncio.to_thread(family_memory, server) for server in self._servers]
        mb = sum(of["pss"] for of in found) / 1e6
        self.most = max(self.most, mb)
        return mb

    async def watch(self) -> None:
        while True:
            await self.now()
            await asyncio.sleep(_LOOK_EVERY_S)

    async def after(self, start: float) -> float:
        """Return the memory once the visitors' data is forgotten, or after a minute."""
        until = time.monotonic() + _LEAVING_S
        while (mb := await self.now()) > _MAX_GROWTH * start and time.monotonic() < until:
            await asyncio.sleep(_LOOK_EVERY_S)
        return mb


async def _round(
    address: str, servers: Sequence[psutil.Process], pace: Pace, visits: Sequence[Visit], seed: int, progress: Progress
) -> Row:
    """Run all visits of a round; return the CPU use of the servers."""
    progress(f"{pace.name}: {len(visits)} visitors")
    before, started = _cpu_s(servers), time.perf_counter()
    async with async_playwright() as playwright:
        browser = None
        if any(visit.kind == "Chromium" for visit in visits):
            browser = await playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        await asyncio.gather(
            *(
                _visit(visit, address, browser if visit.kind == "Chromium" else None, pace, seed, number)
                for number, visit in enumerate(visits)
            )
        )
        if browser is not None:
            await browser.close()
    for visit in visits:
        if visit.failure:
            progress(f"  {visit.kind} with {visit.recording.name}: {visit.failure}")
    spent, n_steps = _cpu_s(servers) - before, sum(len(visit.steps) for visit in visits)
    progress(f"{pace.name}: {n_steps} steps in {time.perf_counter() - started:.0f} s, server {spent:.0f} s CPU")
    return {"pace": pace.name, "what": "server, CPU a step", "n": n_steps, "mean_s": spent / max(1, n_steps)}


def _cpu_s(servers: Sequence[psutil.Process]) -> float:
    times = [server.cpu_times() for server in servers]
    return float(sum(of.user + of.system for of in times))


def _rows(pace: Pace, visits: Sequence[Visit]) -> list[Row]:
    rows: list[Row] = []
    for kind in dict.fromkeys(visit.kind for visit in visits):
        steps = [step for visit in visits if visit.kind == kind for step in visit.steps]
        by_name = {name: [s for n, s in steps if n == name] for name in dict.fromkeys(n for n, _ in steps)}
        by_name["click"] = [s for n, s in steps if n not in ("open", "search")]
        for name, seconds in by_name.items():
            if seconds:
                p50, p95 = np.percentile(seconds, (50, 95))
                of = {"pace": pace.name, "visitors": kind, "what": name, "n": len(seconds)}
                rows.append(of | {"median_s": p50, "p95_s": p95, "slowest_s": max(seconds)})
    return rows


class _Answers:
    """Results of the library, computed in this process."""

    def __init__(self, now: Snapshot) -> None:
        self._now = now
        self._examples: dict[str, Example] = {}

    def __call__(self, recording: Recording, seen: Seen) -> dict[int, float]:
        query = self._example(recording) if seen.searched is None else seen.searched
        request = SearchRequest(k=SearchRequest().k + N_ALIKE)
        hits = find_requested(self._now, query, request, Thumbs(seen.said))
        return {hit.song.id: hit.similarity or 0.0 for hit in hits}

    def _example(self, recording: Recording) -> Example:
        if recording.name not in self._examples:
            decoding = decode_upload(self._now, recording.data, recording.name)
            while not decoding.wait(1.0):
                pass
            self._examples[recording.name] = make_example(
                self._now, decoding.future.result(), content_hash(recording.data), recording.name
            )
        return self._examples[recording.name]


def _recordings(folder: Path, n: int, seed: int) -> list[Recording]:
    """Return songs of another demo collection than the library's."""
    plans = demo.plan_collection(seed=seed + 1)
    paths = [demo.write_song(plans[i], folder) for i in np.linspace(0, len(plans) - 1, n).astype(int)]
    return [Recording(f"recording{i:03d}{path.suffix}", path.read_bytes()) for i, path in enumerate(paths)]


async def _measured(
    address: str, servers: Sequence[psutil.Process], recordings: Sequence[Recording], seed: int, progress: Progress
) -> tuple[list[Row], dict[Pace, list[Visit]], dict[str, float]]:
    first, *others = recordings
    memory = _Memory(servers)
    # uploads of all visitors may be in transit at once
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(2 * N_CLIENTS))
    # the proxy chooses the process of a visitor: this many likely reach every process
    n_first = 1 if len(servers) == 1 else _FIRST_A_PROCESS * len(servers)
    before = [Visit(first, kind) for kind in ("WebSocket", "Chromium") for _ in range(n_first)]
    await _round(address, servers, AT_ONCE, before, seed, progress)
    await asyncio.sleep(_LOOK_EVERY_S)
    mb = {"when the first had been there": await memory.now()}
    (start,) = mb.values()
    watching = asyncio.create_task(memory.watch())
    visits = {
        LECTURE: [Visit(r, "WebSocket" if i < N_CLIENTS else "Chromium") for i, r in enumerate(others)],
        AT_ONCE: [Visit(r, "WebSocket") for r in others[:N_CLIENTS]],
    }
    rows: list[Row] = []
    for pace, of in visits.items():
        cpu = await _round(address, servers, pace, of, seed, progress)
        rows += [*_rows(pace, of), cpu]
    watching.cancel()
    await asyncio.sleep(_LEFT_S)
    await _round(address, servers, AT_ONCE, [Visit(first, "WebSocket")], seed, progress)
    mb |= {"at most": memory.most, "after they have left": await memory.after(start)}
    for when, value in mb.items():
        rows.append({"what": f"server memory {when}", "mb": value})
        progress(f"server memory {when}: {value:.0f} MB")
    return rows, visits, mb


@contextmanager
def _one_process(settings: Settings, scratch: Path, progress: Progress) -> Iterator[_Served]:
    """Serve a copy of the library with one process."""
    folder, named = scratch / "library", settings.library
    with Library.open(named, create=False) if named else demo_library(settings.seed, progress) as original:
        settings.facts["songs"] = len(original)
        shutil.copytree(original.folder, folder, ignore=shutil.ignore_patterns("music", "scratch"))
    command = [*_COMMAND, "--public", f"--library={folder}"]
    with (scratch / _LOG).open("ab") as log, served(command, log=log) as (address, server):
        yield _Served(folder, address, [server])


@contextmanager
def _several_processes(settings: Settings, scratch: Path, progress: Progress) -> Iterator[_Served]:
    """Serve a snapshot file with several processes behind nginx."""
    file = settings.library
    if file is None or not file.is_file():
        with read_only(file) if file else demo_library(settings.seed, progress) as original:
            file = scratch / f"music{ENDING}"
            write_bundle(original, file, no_progress)
    os.environ["XDG_CACHE_HOME"] = str(scratch / "caches")
    progress("unpacking")
    with open_bundle(file, no_progress) as folder:
        with read_only(folder) as library:
            settings.facts.update(songs=len(library), processes=settings.processes)
        command = [*_COMMAND, f"--snapshot={file}"]
        with (scratch / _LOG).open("ab") as log, balanced(command, settings.processes, log) as (address, servers):
            yield _Served(folder, address, servers)


def run(settings: Settings, progress: Progress) -> tuple[list[Row], list[Claim]]:
    serving = _several_processes if settings.processes else _one_process
    with tempfile.TemporaryDirectory(prefix="musicsim-visitors-") as scratch:
        progress("composing what visitors search with")
        recordings = _recordings(Path(scratch) / "recordings", 1 + N_CLIENTS + N_TABS, settings.seed)
        with serving(settings, Path(scratch), progress) as here:
            rows, visits, mb = asyncio.run(_measured(here.address, here.servers, recordings, settings.seed, progress))
            everybody = [visit for of in visits.values() for visit in of]
            if any(visit.failure for visit in everybody):
                progress((Path(scratch) / _LOG).read_text(encoding="utf-8", errors="replace")[-_LOG_SHOWN:])
            with read_only(here.folder) as library, closing(decoder()):
                answers = _Answers(take_snapshot(library))
                foreign = [visit for visit in everybody if not visit.is_own(answers)]
    start, most, after = mb.values()
    kinds = dict.fromkeys(visit.kind for visit in everybody)

    def p95(visitors: str, what: str) -> float | None:
        wanted = {"pace": LECTURE.name, "visitors": visitors, "what": what}
        return next((float(row["p95_s"]) for row in rows if wanted.items() <= row.items()), None)

    claims = [
        at_most(f"visitors of {len(everybody)} that failed", sum(bool(v.failure) for v in everybody), 0),
        at_most(f"visitors of {len(everybody)} with another's file or answers", len(foreign), 0),
        *(at_most(f"a click, p95 s, lecture, {who}", p95(who, "click"), 2.0) for who in kinds),
        *(at_most(f"a search, p95 s, lecture, {who}", p95(who, "search"), 6.0) for who in kinds),
        at_most("server memory at most, MB", most, _MAX_MB * max(1, settings.processes)),
        at_most("server memory after they have left, of its start", after / start, _MAX_GROWTH),
    ]
    return rows, claims


if __name__ == "__main__":
    main(
        "visitors",
        __doc__.splitlines()[0],
        run,
        rivals=("streamlit", "playwright", "websockets"),
        takes_library=True,
        takes_processes=True,
    )
