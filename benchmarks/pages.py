"""How long people wait for a page, in a real browser, from 360 songs to a million.

Chromium opens each page of the app in a context of its own (*first load*), comes to it from another page (*switch*),
clicks an answer of *Search* and types into the song finder. A page rests when its script has ended and nothing has
changed on it for a quarter of a second; that quarter is not counted. Streamlit's own hello page in the same run is
what a page costs before it does anything. Libraries are generated (:mod:`benchmarks.large_library`). WebGL runs in
software.
"""

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import psutil
from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks._memory import family_memory
from benchmarks._report import Claim, Progress, Row, Settings, at_most, main
from benchmarks.large_library import write_library
from musicsim.explorer.snapshot.snapshot import take_snapshot

SIZES = (360, 5_000)
FULL_SIZES = (360, 5_000, 100_000, 1_000_000)
PAGES = {
    "explore": "Explore", "search": "Search by example", "playlist": "Playlist", "train": "Train",
    "compare": "Compare", "evaluate": "Evaluate", "library": "Library",
}  # fmt: skip
_REPEATS = 3
_PATIENCE_S = 120
_STILL_MS = 250
_FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
_APP = Path(__file__).parents[1] / "app.py"
_HELLO = "from pathlib import Path; import streamlit.hello as h; print(Path(h.__file__).with_name('streamlit_app.py'))"

# Resolves with the moment of the last change, once the script has ended and nothing has changed for a while.
_RESTS = """(still) => new Promise((resolve) => {
    let last = performance.now();
    const ends = () => document.querySelector("[data-testid=stApp]")?.dataset.testScriptState === "notRunning"
        && !document.querySelector("[data-testid=stSkeleton], [data-stale=true]");
    let ended = ends();
    const watch = new MutationObserver(() => { last = performance.now(); });
    watch.observe(document.body, { subtree: true, childList: true, characterData: true, attributes: true });
    const look = setInterval(() => {
        if (!ends()) { ended = false; last = performance.now(); return; }
        if (!ended) { ended = true; last = performance.now(); }
        if (performance.now() - last < still) return;
        clearInterval(look);
        watch.disconnect();
        resolve(performance.timeOrigin + last);
    }, 20);
})"""


@contextmanager
def _served(script: str, library: Path | None = None) -> Iterator[tuple[str, psutil.Process]]:
    """A Streamlit app: its address and its process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-m", "streamlit", "run", script, f"--server.port={port}", "--server.headless=true",
         "--browser.gatherUsageStats=false", "--browser.serverAddress=localhost"],
        env=os.environ | ({"MUSICSIM_LIBRARY": str(library)} if library else {}),
        cwd=Path(script).parent, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    address = f"http://127.0.0.1:{port}"
    try:
        until = time.monotonic() + _PATIENCE_S
        while True:
            try:
                urllib.request.urlopen(f"{address}/_stcore/health", timeout=2).close()
                break
            except OSError:
                if time.monotonic() > until or server.poll() is not None:
                    raise RuntimeError(f"{script} did not come up") from None
                time.sleep(0.1)
        yield address, psutil.Process(server.pid)
    finally:
        server.terminate()
        try:
            server.wait(timeout=20)
        except subprocess.TimeoutExpired:
            server.kill()


@contextmanager
def _page(browser: Browser) -> Iterator[Page]:
    """A page of a context of its own: nothing is in its cache."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(1000 * _PATIENCE_S)
    try:
        yield context.new_page()
    finally:
        context.close()


def _seconds(page: Page, act: Callable[[], object], shown: Callable[[], object]) -> float:
    """From an act until what it leads to is shown and the page rests."""
    started = time.time()
    act()
    shown()
    return float(page.evaluate(_RESTS, _STILL_MS)) / 1000 - started


def _is_shown(page: Page, name: str) -> Callable[[], object]:
    return lambda: page.get_by_role("heading", name=PAGES[name], exact=True).wait_for()


def _first_load(browser: Browser, address: str, name: str) -> float:
    with _page(browser) as page:
        path = "" if name == "explore" else name
        return _seconds(
            page, lambda: page.goto(f"{address}/{path}", wait_until="commit"), _is_shown(page, name)
        )


def _switches(browser: Browser, address: str, names: list[str]) -> dict[str, list[float]]:
    """Every page from the one before it, some times; the first round, which fills caches, is left out."""
    seconds: dict[str, list[float]] = {name: [] for name in names}
    with _page(browser) as page:
        page.goto(address)
        _is_shown(page, "explore")()
        page.evaluate(_RESTS, _STILL_MS)
        for turn in range(_REPEATS + 1):
            for name in [*names[1:], names[0]]:
                link = page.get_by_test_id("stSidebarNavLink").filter(has_text=PAGES[name])
                taken = _seconds(page, link.click, _is_shown(page, name))
                if turn:
                    seconds[name].append(taken)
    return seconds


def _click_an_answer(browser: Browser, address: str) -> list[float]:
    """*More like this* on the first answer, until the list is that of the other song."""
    seconds = []
    with _page(browser) as page:
        page.goto(f"{address}/search?song=1")
        rows = page.get_by_test_id("song-row")
        rows.first.wait_for()
        page.evaluate(_RESTS, _STILL_MS)
        for _ in range(_REPEATS + 1):
            song = rows.first.get_attribute("data-song-id")
            more = rows.first.get_by_role("button", name=re.compile("^More like"))
            started = time.time()
            more.click()
            while rows.first.get_attribute("data-song-id") == song:
                page.wait_for_timeout(5)
            seconds.append(time.time() - started)
            page.evaluate(_RESTS, _STILL_MS)
    return seconds[1:]


def _type_a_letter(browser: Browser, address: str) -> list[float]:
    """A letter into the song finder, until its matches are shown."""
    seconds = []
    with _page(browser) as page:
        page.goto(f"{address}/search")
        box = page.get_by_role("combobox", name=re.compile("song", re.IGNORECASE)).first
        box.wait_for()
        page.evaluate(_RESTS, _STILL_MS)
        options = page.get_by_role("option")
        for letter in "aeiost"[: _REPEATS + 1]:
            started = time.time()
            box.fill(letter)
            options.first.wait_for()
            seconds.append(time.time() - started)
            box.fill("")
            options.first.wait_for(state="hidden")
            page.evaluate(_RESTS, _STILL_MS)
    return seconds[1:]


def _hello(browser: Browser) -> float:
    script = subprocess.run(
        [sys.executable, "-c", _HELLO], capture_output=True, text=True, check=True
    ).stdout.strip()
    with _served(script) as (address, _):

        def load() -> float:
            with _page(browser) as page:
                shown = page.get_by_test_id("stMain").get_by_role("heading").first
                return _seconds(page, lambda: page.goto(address, wait_until="commit"), shown.wait_for)

        return median([load() for _ in range(_REPEATS + 1)][1:])


def _measured(browser: Browser, n_songs: int, folder: Path, progress: Progress) -> list[Row]:
    """All measures of one size."""
    progress(f"writing {n_songs:,} songs")
    with write_library(folder, n_songs) as library:
        take_snapshot(library).columns  # noqa: B018  # what the app keeps of a library it reads once
    rows: list[Row] = []
    names = list(PAGES)
    with _served(str(_APP), folder) as (address, server):
        progress(f"{n_songs:,} songs: first loads")
        for name in names:
            cold = _first_load(browser, address, name)
            warm = median(_first_load(browser, address, name) for _ in range(_REPEATS))
            rows.append({"songs": n_songs, "page": name, "what": "first load, server cold", "seconds": cold})
            rows.append({"songs": n_songs, "page": name, "what": "first load", "seconds": warm})
        progress(f"{n_songs:,} songs: switches, clicks, letters")
        for name, seconds in _switches(browser, address, names).items():
            rows.append(
                {
                    "songs": n_songs,
                    "page": name,
                    "what": "switch",
                    "seconds": median(seconds),
                    "slowest_s": max(seconds),
                }
            )
        clicks = _click_an_answer(browser, address)
        rows.append(
            {
                "songs": n_songs,
                "page": "search",
                "what": "click to answer",
                "seconds": median(clicks),
                "slowest_s": max(clicks),
            }
        )
        letters = _type_a_letter(browser, address)
        rows.append(
            {
                "songs": n_songs,
                "page": "search",
                "what": "letter to matches",
                "seconds": median(letters),
                "slowest_s": max(letters),
            }
        )
        rows.append(
            {
                "songs": n_songs,
                "page": "all",
                "what": "server memory",
                "mb": family_memory(server)["pss"] / 1e6,
            }
        )
    return rows


def run(settings: Settings, progress: Progress) -> tuple[list[Row], list[Claim]]:
    sizes = FULL_SIZES if settings.full else SIZES
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=_chromium(), args=_FLAGS)
        progress("Streamlit's hello page")
        hello = _hello(browser)
        rows: list[Row] = [{"songs": 0, "page": "Streamlit's hello", "what": "first load", "seconds": hello}]
        for n_songs in sizes:
            rows += _measured(browser, n_songs, Path(folder) / f"library {n_songs}", progress)
        browser.close()
    largest = [row for row in rows if row["songs"] == sizes[-1]]

    def worst(what: str) -> float:
        return max(float(row["seconds"]) for row in largest if row["what"] == what)

    of = f", {sizes[-1]:,} songs"
    claims = [
        at_most(f"switch to the slowest page, seconds{of}", worst("switch"), 0.8),
        at_most(
            f"first load of the slowest page above Streamlit's hello, seconds{of}",
            worst("first load") - hello,
            1.0,
        ),
        at_most(f"click to answer, seconds{of}", worst("click to answer"), 0.3),
        at_most(f"letter to matches, seconds{of}", worst("letter to matches"), 0.15),
        at_most(f"server memory, MB{of}", max(float(row["mb"]) for row in largest if "mb" in row), 1500.0),
    ]
    return rows, claims


def _chromium() -> str | None:
    """The one that is named, Debian's, or None for playwright's own."""
    if named := os.environ.get("MUSICSIM_CHROMIUM"):
        return named
    return shutil.which("chromium") or shutil.which("chromium-browser")


if __name__ == "__main__":
    main("pages", __doc__.splitlines()[0], run, rivals=("streamlit", "playwright"))
