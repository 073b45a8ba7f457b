"""Waiting time for pages in a real browser, from 360 songs to a million.

Chromium opens each page of the app in a new context (*first load*) and from another page (*switch*). It clicks a result
of *Search*, types into the song finder, generates a playlist and drags the map. A page is at rest when its script has
ended, no progress bar is shown and its map is drawn. Nothing may have changed on it for a quarter of a second, which is
not counted. Streamlit's own hello page in the same run is the minimum cost of a page. Libraries are generated
(:mod:`benchmarks.large_library`), and their songs are silent. WebGL runs in software.

Every wait ends after two minutes. A page that is not at rest by then does not get a value, and the run continues.
"""

import io
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from statistics import median

import numpy as np
import soundfile
from playwright.sync_api import Browser, Error, Page, sync_playwright

from benchmarks.large_library import write_library
from benchmarks.support.app import FLAGS, PAGES, chromium, serve_app
from benchmarks.support.memory import family_memory
from benchmarks.support.report import Claim, Progress, Row, Settings, at_most, main
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.library import Library

SIZES = (360, 5_000)
FULL_SIZES = (360, 5_000, 100_000, 1_000_000)
_REPEATS = 3
_PATIENCE_S = 120
_STILL_MS = 250
_MOVES = 120  # of the map, one per frame
_APP = Path(__file__).parents[1] / "app.py"
_HELLO = "from pathlib import Path; import streamlit.hello as h; print(Path(h.__file__).with_name('streamlit_app.py'))"

# Resolves with the time of the last change, once the script has ended and nothing has changed for a while; with None on
# timeout.
_RESTS = """([still, patience]) => new Promise((resolve) => {
    const busy = "[data-testid=stSkeleton], [data-stale=true], .st-key-at_work, "
        + "[data-testid=map]:not([data-state])";
    const begun = performance.now();
    let last = begun;
    const ends = () => document.querySelector("[data-testid=stApp]")?.dataset.testScriptState === "notRunning"
        && !document.querySelector(busy);
    let ended = ends();
    const watch = new MutationObserver(() => { last = performance.now(); });
    watch.observe(document.body, { subtree: true, childList: true, characterData: true, attributes: true });
    const finish = (at) => { clearInterval(look); watch.disconnect(); resolve(at); };
    const look = setInterval(() => {
        const now = performance.now();
        if (now - begun > patience) { finish(null); return; }
        if (ends() !== ended) { ended = !ended; last = now; }
        if (ended && now - last >= still) finish(performance.timeOrigin + last);
    }, 20);
})"""


@cache
def _silence() -> bytes:
    """Return four minutes of silence as a WAV file."""
    file = io.BytesIO()
    soundfile.write(file, np.zeros(240 * 8000), 8000, format="WAV", subtype="PCM_U8")
    return file.getvalue()


@contextmanager
def hold_page(browser: Browser) -> Iterator[Page]:
    """Open a page in a new context, with an empty cache."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(1000 * _PATIENCE_S)
    # without sound, the player would look for the next song after each click
    context.route(
        re.compile("/songs/[0-9]+/audio"), lambda route: route.fulfill(body=_silence(), content_type="audio/wav")
    )
    try:
        yield context.new_page()
    finally:
        context.close()


def _rest(page: Page) -> float | None:
    """Return the time when the page came to rest, in seconds since 1970; None on timeout."""
    at = page.evaluate(_RESTS, [_STILL_MS, 1000 * _PATIENCE_S])
    return None if at is None else float(at) / 1000


def _seconds(page: Page, act: Callable[[], object], shown: Callable[[], object]) -> float | None:
    """Return the seconds from an action until its result is shown and the page is at rest; None on timeout."""
    started = time.time()
    try:
        act()
        shown()
    except Error:  # timeout
        return None
    rested = _rest(page)
    return None if rested is None else rested - started


def _until(page: Page, act: Callable[[], object], shown: str, of: object) -> float | None:
    """Return the seconds from an action until a JavaScript condition on `of` is true at a frame; None on timeout."""
    started = time.time()
    try:
        act()
        page.wait_for_function(shown, arg=of)
    except Error:
        return None
    taken = time.time() - started
    _rest(page)
    return taken


def _is_shown(page: Page, name: str) -> Callable[[], object]:
    return page.get_by_role("heading", name=PAGES[name], exact=True).wait_for


def _first_load(browser: Browser, address: str, name: str) -> float | None:
    with hold_page(browser) as page:
        path = "" if name == "listen" else name
        go = partial(page.goto, f"{address}/{path}", wait_until="commit")
        return _seconds(page, go, _is_shown(page, name))


def _switches(browser: Browser, address: str, names: list[str], progress: Progress) -> dict[str, list[float | None]]:
    """Switch to every page from the one before it, some times; omit the first round, which fills caches."""
    seconds: dict[str, list[float | None]] = {name: [] for name in names}
    with hold_page(browser) as page:
        page.goto(address)
        _is_shown(page, "listen")()
        _rest(page)
        for turn in range(_REPEATS + 1):
            for name in [*names[1:], names[0]]:
                link = page.get_by_test_id("stSidebarNavLink").filter(has_text=PAGES[name])
                taken = _seconds(page, link.click, _is_shown(page, name))
                progress(f"  switch to {name}: {_said(taken)}")
                if turn:
                    seconds[name].append(taken)
    return seconds


def _click_an_answer(browser: Browser, address: str) -> list[float | None]:
    """Click *Similar* on a result, each time on the next one, and wait for the list of the other song."""
    seconds = []
    with hold_page(browser) as page:
        page.goto(f"{address}/?song=1")
        rows = page.get_by_test_id("song-row")
        rows.first.wait_for()
        _rest(page)
        for n in range(_REPEATS + 1):
            shown = page.evaluate(_SONGS)
            row = rows.nth(n)
            menu = row.get_by_role("button", name=re.compile("^Actions for"))
            if menu.is_visible():
                menu.click()
            more = row.get_by_role("button", name=re.compile("^Similar songs"))
            seconds.append(_until(page, more.click, _ARE_OTHER_SONGS, shown))
    return seconds[1:]


def _type_a_letter(browser: Browser, address: str) -> list[float | None]:
    """Type a letter into the song finder, and wait for its matches."""
    seconds = []
    with hold_page(browser) as page:
        page.goto(address)
        box = page.get_by_role("combobox", name="Search")
        box.wait_for()
        _rest(page)
        for letter in "aeiost"[: _REPEATS + 1]:
            seconds.append(_until(page, partial(box.press_sequentially, letter), _HAS_MATCHES, None))
            box.fill("")
            _rest(page)
    return seconds[1:]


def _draw_a_playlist(browser: Browser, address: str) -> list[float | None]:
    """Click *Generate*, and wait for its rows; then generate others."""
    seconds = []
    with hold_page(browser) as page:
        page.goto(f"{address}/playlist")
        button = page.get_by_role("button", name="Generate")
        button.wait_for()
        _rest(page)
        for _ in range(_REPEATS + 1):
            seconds.append(_until(page, button.click, _ARE_OTHER_SONGS, page.evaluate(_SONGS)))
    return seconds[1:]


def _move_the_map(browser: Browser, address: str) -> tuple[list[float | None], float | None, str]:
    """Drag the map; return the seconds between frames, those of one drawing, and the renderer."""
    with hold_page(browser) as page:
        drawn = page.locator("[data-testid=map][data-state=drawn]").first
        try:
            page.goto(address)
            drawn.wait_for()
            _rest(page)
            moved = drawn.evaluate(_MOVED, _MOVES)
        except Error:  # timeout
            return [None], None, "nothing"
        return [ms / 1000 for ms in moved["frames"]], moved["redraw"] / 1000, moved["renderer"]


# Points stay in place when the graphics card draws them; the plain canvas is painted again once the map is at rest.
_MOVED = """(root, n) => new Promise((resolve) => {
    const { map } = root;
    const frames = [];
    let before = null;
    const step = (now) => {
        if (before !== null) frames.push(now - before);
        before = now;
        if (frames.length === n)
            resolve({ frames, redraw: map.points.frameMs, renderer: root.dataset.renderer });
        else { map.pan(frames.length < n / 2 ? 4 : -4, 2); requestAnimationFrame(step); }
    };
    requestAnimationFrame(step);
})"""

# Lists are in shadow trees.
_SONGS = """() => {
    const wanted = "[data-testid=song-row]";
    const found = [...document.querySelectorAll(wanted)];
    for (const host of document.querySelectorAll("*"))
        if (host.shadowRoot) found.push(...host.shadowRoot.querySelectorAll(wanted));
    return found.map((row) => row.dataset.songId).join(" ");
}"""
_ARE_OTHER_SONGS = f"""(shown) => {{ const songs = ({_SONGS})(); return songs !== "" && songs !== shown; }}"""
_HAS_MATCHES = """() => [...document.querySelectorAll("[role=option]")].some((line) => line.checkVisibility())"""


def _hello(browser: Browser) -> float | None:
    script = subprocess.run([sys.executable, "-c", _HELLO], capture_output=True, text=True, check=True).stdout.strip()
    with serve_app(script) as (address, _):

        def load() -> float | None:
            with hold_page(browser) as page:
                shown = page.get_by_test_id("stMain").get_by_role("heading").first
                return _seconds(page, partial(page.goto, address, wait_until="commit"), shown.wait_for)

        return _median([load() for _ in range(_REPEATS + 1)][1:])


def _said(seconds: float | None) -> str:
    return "no rest" if seconds is None else f"{seconds:.2f} s"


def _median(seconds: list[float | None]) -> float | None:
    """Return the median; None if one value is missing."""
    known = [s for s in seconds if s is not None]
    return median(known) if len(known) == len(seconds) else None


def _slowest(seconds: list[float | None]) -> float | None:
    known = [s for s in seconds if s is not None]
    return max(known) if len(known) == len(seconds) else None


def _measured(browser: Browser, folder: Path, n_songs: int, progress: Progress) -> list[Row]:
    """Measure one library."""
    rows: list[Row] = []
    names = list(PAGES)

    def enter(page: str, what: str, seconds: list[float | None]) -> None:
        row = {"songs": n_songs, "page": page, "what": what, "seconds": _median(seconds)}
        rows.append(row | ({"slowest_s": _slowest(seconds)} if len(seconds) > 1 else {}))
        progress(f"{n_songs:,} songs, {page}: {what} {_said(row['seconds'])}")

    def enter_memory(when: str) -> None:
        mb = family_memory(server)["pss"] / 1e6
        rows.append({"songs": n_songs, "page": "all", "what": f"server memory {when}", "mb": mb})
        progress(f"{n_songs:,} songs: server memory {when} {mb:.0f} MB")

    with serve_app(_APP, folder) as (address, server):
        for name in names:
            enter(name, "first load, server cold", [_first_load(browser, address, name)])
        enter_memory("when every page was seen once")
        for name in names:
            enter(name, "first load", [_first_load(browser, address, name) for _ in range(_REPEATS)])
        for name, seconds in _switches(browser, address, names, progress).items():
            enter(name, "switch", seconds)
        enter("listen", "click to answer", _click_an_answer(browser, address))
        enter("listen", "letter to matches", _type_a_letter(browser, address))
        enter("playlist", "draw", _draw_a_playlist(browser, address))
        frames, redraw, renderer = _move_the_map(browser, address)
        enter("listen", f"frame while the map moves ({renderer})", frames)
        enter("listen", f"drawing the map once ({renderer})", [redraw])
        enter_memory("at the end")
    return rows


def run(settings: Settings, progress: Progress) -> tuple[list[Row], list[Claim]]:
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        progress("Streamlit's hello page")
        hello = _hello(browser)
        progress(f"Streamlit's hello page: first load {_said(hello)}")
        rows: list[Row] = [{"songs": 0, "page": "Streamlit's hello", "what": "first load", "seconds": hello}]
        for library in _libraries(settings, Path(folder), progress):
            with library:
                n_songs = take_snapshot(library).columns.year.size  # the app reads its cached data of a library once
            rows += _measured(browser, library.folder, n_songs, progress)
        browser.close()
    largest = [row for row in rows if row["songs"] == rows[-1]["songs"]]

    def worst(what: str) -> float | None:
        return _slowest([row["seconds"] for row in largest if row["what"] == what])

    of = f", {rows[-1]['songs']:,} songs"
    load = worst("first load")
    above = None if load is None or hello is None else load - hello
    claims = [
        at_most(f"switch to the slowest page, seconds{of}", worst("switch"), 0.8),
        at_most(f"first load of the slowest page above Streamlit's hello, seconds{of}", above, 1.0),
        at_most(f"click to answer, seconds{of}", worst("click to answer"), 0.3),
        at_most(f"letter to matches, seconds{of}", worst("letter to matches"), 0.15),
        at_most(f"server memory, MB{of}", max(float(row["mb"]) for row in largest if "mb" in row), 1500.0),
    ]
    return rows, claims


def _libraries(settings: Settings, folder: Path, progress: Progress) -> Iterator[Library]:
    """Yield the library of the settings, or libraries of all sizes, each written just in time."""
    if settings.library is not None:
        yield Library.open(settings.library, create=False)
        return
    for n_songs in FULL_SIZES if settings.full else SIZES:
        progress(f"writing {n_songs:,} songs")
        yield write_library(folder / f"library {n_songs}", n_songs)


if __name__ == "__main__":
    main(
        "pages", __doc__.splitlines()[0], run, rivals=("streamlit", "playwright"), takes_library=True,
        short="360 and 5,000 songs, without 100,000 and 1,000,000",
    )  # fmt: skip
