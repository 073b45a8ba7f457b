"""The cost of a click on Listen in a real browser: runs of the script, messages, requests, bytes and time.

Chromium clicks songs on the map, rows of the queue, and chips. *To sound* is the time until the song plays, and *to
list* the time until the new queue is shown. Runs and messages are those of Streamlit's WebSocket.
The pages of Streamlit in the same session are the rival: a click on a section of *Library* shows what a script run
costs. Libraries are generated (:mod:`benchmarks.large_library`); their songs are silent.
"""

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from playwright.sync_api import Page, Request, sync_playwright
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from benchmarks.large_library import write_library
from benchmarks.pages import hold_page
from benchmarks.support.app import FLAGS, chromium, serve_app
from benchmarks.support.report import Claim, Progress, Row, Settings, at_most, main

SIZES, FULL_SIZES = (5_000,), (5_000, 1_000_000)
_CLICKS = 20
_APP = Path(__file__).parents[1] / "app.py"
_CLIENT = "window[Symbol.for('musicsim.client')]"
_FIND = """(id) => {
  const box = document.querySelector('.musicsim-listen').shadowRoot.querySelector('[data-testid=map]');
  const { map } = box;
  const at = map.stage.getBoundingClientRect();
  const [x, y] = map.pixelsOf(map.rowOf(id));
  return [at.x + x, at.y + y];
}"""


@dataclass
class _Traffic:
    """The messages and requests between a page and the server."""

    messages: int = 0
    runs: int = 0
    n_bytes: int = 0
    requests: list[str] = field(default_factory=list)

    def follow(self, page: Page) -> None:
        page.on(
            "websocket", lambda socket: (socket.on("framereceived", self._receive), socket.on("framesent", self._add))
        )
        page.on("requestfinished", self._note)

    def _add(self, frame: bytes | str) -> None:
        self.messages += 1
        self.n_bytes += len(frame)

    def _receive(self, frame: bytes | str) -> None:
        self._add(frame)
        if isinstance(frame, bytes) and ForwardMsg.FromString(frame).WhichOneof("type") == "new_session":
            self.runs += 1

    def _note(self, request: Request) -> None:
        path = request.url.split("?")[0]
        if "/api/" in path:
            sizes = request.sizes()
            self.n_bytes += sizes["requestBodySize"] + sizes["responseBodySize"]
            self.requests.append(path.rsplit("/api/", 1)[1])

    def clear(self) -> None:
        self.messages = self.runs = self.n_bytes = 0
        self.requests.clear()


def _time_click(page: Page, act: Callable[[], object], is_new: str, plays: bool) -> tuple[float | None, float]:
    """Return the seconds from a click to sound, if it plays, and to the new list."""
    page.evaluate(f"""(isNew) => {{
      const {{ listen, player }} = {_CLIENT};
      const seen = window.seen = {{ begun: null, sound: null, list: null, answer: listen.answer }};
      const begin = () => {{ seen.begun ??= performance.now(); }};
      document.addEventListener("pointerdown", begin, {{ once: true, capture: true }});
      const look = () => {{
        if (seen.begun === null) {{ requestAnimationFrame(look); return; }}
        if (seen.sound === null && !player.audio.paused && player.audio.readyState > 2) seen.sound = performance.now();
        const isThere = !listen.doing && listen.answer && listen.answer !== seen.answer;
        if (seen.list === null && (isThere || !isNew)) seen.list = performance.now();
        if (seen.list === null || seen.sound === null) requestAnimationFrame(look);
      }};
      look();
    }}""", is_new)  # fmt: skip
    act()
    page.wait_for_function(
        f"() => window.seen.list !== null && (window.seen.sound !== null || {str(not plays).lower()})"
    )
    begun, sound, shown = page.evaluate("() => [window.seen.begun, window.seen.sound, window.seen.list]")
    return ((sound - begun) / 1000 if plays else None), (shown - begun) / 1000


def _measure(page: Page, traffic: _Traffic, n_songs: int, progress: Progress) -> list[Row]:
    def enter(what: str, acts: list[Callable[[], object]], *, is_new: bool, plays: bool) -> Row:
        seen: list[tuple[float | None, float, int, int, int, int]] = []
        for act in acts:
            time.sleep(0.3)  # covers and waveforms of the last click are not part of this one
            traffic.clear()
            sound, shown = _time_click(page, act, "new" if is_new else "", plays)
            n_queues = traffic.requests.count("queue")
            seen.append((sound, shown, traffic.messages, traffic.runs, n_queues, traffic.n_bytes))
        sounds = [one[0] for one in seen if one[0] is not None]
        row = {
            "songs": n_songs, "click": what, "sound_s": median(sounds) if sounds else None,
            "list_s": median(one[1] for one in seen), "messages": max(one[2] for one in seen),
            "runs": max(one[3] for one in seen), "queue_requests": median(one[4] for one in seen),
            "kb": max(one[5] for one in seen) / 1000,
        }  # fmt: skip
        progress(f"{n_songs:,} songs, click on {what}: {row}")
        return row

    ids = page.evaluate("() => [...document.querySelector('.musicsim-listen').shadowRoot"
                        ".querySelector('[data-testid=map]').map.places.ids].slice(0, 4000)")  # fmt: skip
    step = max(1, len(ids) // (_CLICKS + 1))

    def click_map(song: int) -> None:
        x, y = page.evaluate(_FIND, song)
        page.mouse.click(x, y)

    rows = [
        enter(
            "the map",
            [lambda song=song: click_map(song) for song in ids[: _CLICKS * step : step]],
            is_new=True,
            plays=True,
        )
    ]  # type: ignore[misc]
    songs = page.get_by_test_id("song-row")
    rows.append(
        enter("a row", [lambda n=n: songs.nth(n % 6).click() for n in range(_CLICKS)], is_new=False, plays=True)
    )  # type: ignore[misc]
    chips = [page.get_by_role("button", name=name, exact=True) for name in ("Calmer", "Livelier")]
    rows.append(enter("a chip", [chips[n // 2 % 2].click for n in range(_CLICKS)], is_new=True, plays=False))
    return rows


def run(settings: Settings, progress: Progress) -> tuple[list[Row], list[Claim]]:
    rows: list[Row] = []
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(
            executable_path=chromium(), args=[*FLAGS, "--autoplay-policy=no-user-gesture-required"]
        )
        for n_songs in FULL_SIZES if settings.full else SIZES:
            progress(f"writing {n_songs:,} songs")
            with (
                write_library(Path(folder) / f"library {n_songs}", n_songs) as library,
                serve_app(_APP, library.folder) as (address, _),
                hold_page(browser) as page,
            ):
                traffic = _Traffic()
                traffic.follow(page)
                page.goto(address)
                page.locator("[data-testid=map][data-state=drawn]").first.wait_for()
                page.get_by_role("button", name="Something else today").click()
                page.get_by_test_id("song-row").first.wait_for()
                rows += _measure(page, traffic, n_songs, progress)
        browser.close()
    claims = []
    for row in rows:
        about, limit = f"a click on {row['click']}, {row['songs']:,} songs", 0.15 if row["songs"] < 1_000_000 else 0.3
        claims += [
            at_most(f"script runs, {about}", row["runs"], 0),
            at_most(f"requests for the queue, {about}", row["queue_requests"], 1),
        ]
        claims += [at_most(f"kB, {about}", row["kb"], 20.0)]
        if row["sound_s"] is not None:
            claims.append(at_most(f"seconds to sound, {about}", row["sound_s"], limit))
        if row["click"] != "a row":
            claims.append(at_most(f"seconds to the new list, {about}", row["list_s"], limit))
    return rows, claims


if __name__ == "__main__":
    main(
        "clicks",
        __doc__.splitlines()[0],
        run,
        rivals=("streamlit", "playwright"),
        short="5,000 songs, without a million",
    )
