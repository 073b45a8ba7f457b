"""Places for open pages: one address cannot take them all, and visitors without a place can read why."""

import asyncio
import json
from collections import Counter
from types import SimpleNamespace

from starlette.responses import PlainTextResponse

from musicsim.api import Visitors
from musicsim.api.streams import MessageDialect
from musicsim.ui.base.page_messages import is_reconnection
from tests.waiting import Clock, settled

FULL = "The demonstration is full at the moment."
PING, HEALTH = "/_stcore/host-config", "/_stcore/health"


class Visit:
    """A page's WebSocket; `status` is that of the handshake, and `code` that of the end."""

    def __init__(self, app, address: str, protocols) -> None:
        self.status = self.code = None
        self.headers: dict[str, str] = {}
        self._coming = asyncio.Queue()
        self._coming.put_nowait({"type": "websocket.connect"})
        scope = {"type": "websocket", "path": "/_stcore/stream", "headers": [], "client": (address, 1)}
        self._task = asyncio.create_task(app({**scope, "subprotocols": protocols}, self._coming.get, self._note))

    async def _note(self, message) -> None:
        if message["type"] == "websocket.accept":
            self.status = 101
        elif message["type"] == "websocket.http.response.start":
            self.status = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        elif message["type"] == "websocket.close":
            self.code = message["code"]

    async def say(self) -> None:
        self._coming.put_nowait({"type": "websocket.receive", "bytes": b"hello"})
        await settled()

    async def leave(self) -> None:
        self._coming.put_nowait({"type": "websocket.disconnect", "code": 1001})
        await self._task


class Demonstration:
    """The limits in front of an app with a page."""

    def __init__(self) -> None:
        dialect = MessageDialect(lambda _: True, is_reconnection=is_reconnection)
        self._app = Visitors(self._serve, dialect, lambda _: (0, 0), page_paths={"/"})

    async def _serve(self, scope, receive, send) -> None:
        if scope["type"] == "http":
            return await PlainTextResponse("yes")(scope, receive, send)
        await receive()
        await send({"type": "websocket.accept"})
        while (await receive())["type"] != "websocket.disconnect":
            pass

    async def open(self, address: str, n: int = 1, protocols=("streamlit", "token")) -> list[Visit]:
        visits = [Visit(self._app, address, protocols) for _ in range(n)]
        await settled()
        return visits

    async def get(self, path: str, address: str) -> tuple[int, str, dict[str, str]]:
        answer = []

        async def send(message):
            answer.append(message)

        scope = {"type": "http", "method": "GET", "path": path, "headers": [], "client": (address, 1)}
        await self._app(scope, None, send)
        headers = {name.decode(): value.decode() for name, value in answer[0]["headers"]}
        return answer[0]["status"], b"".join(m.get("body", b"") for m in answer).decode(), headers


def visit(story, monkeypatch) -> None:
    """Let visitors come to a demonstration: `story` takes the demonstration and a clock."""
    clock = Clock()
    monkeypatch.setattr("musicsim.api.streams.time", SimpleNamespace(monotonic=clock.time))
    monkeypatch.setattr("musicsim.api.pages.time", SimpleNamespace(monotonic=clock.time), raising=False)
    with asyncio.Runner(loop_factory=lambda: clock) as runner:
        runner.run(story(Demonstration(), clock))


def statuses(visits) -> Counter[int]:
    return Counter(visit.status for visit in visits)


def test_one_address_gets_an_eighth_of_all_pages(monkeypatch):
    async def story(demo, clock):
        many = await demo.open("198.51.100.1", 400)
        assert statuses(many) == {101: 25, 503: 375}
        assert int(many[-1].headers["retry-after"]) >= 1
        assert statuses(await demo.open("203.0.113.7")) == {101: 1}
        status, html, headers = await demo.get("/", "198.51.100.1")
        assert (status, headers["retry-after"], headers["content-type"]) == (503, "60", "text/html; charset=utf-8")
        assert FULL in html
        assert 'http-equiv="refresh"' in html
        status, said, _ = await demo.get(PING, "198.51.100.1")
        assert (status, json.loads(said)) == (503, f"{FULL}\nTry again in a minute.")
        for path, address in (("/", "203.0.113.7"), (PING, "203.0.113.7"), (HEALTH, "198.51.100.1")):
            assert (await demo.get(path, address))[0] == 200
        await many[0].leave()
        assert statuses(await demo.open("198.51.100.1")) == {101: 1}

    visit(story, monkeypatch)


def test_lecture_hall_gets_more_pages_by_setting(monkeypatch):
    monkeypatch.setenv("MUSICSIM_PAGES_PER_ADDRESS", "60")

    async def story(demo, clock):
        assert statuses(await demo.open("192.0.2.1", 61)) == {101: 60, 503: 1}

    visit(story, monkeypatch)


def test_page_without_first_message_is_closed(monkeypatch):
    async def story(demo, clock):
        silent, spoken = await demo.open("192.0.2.1", 2)
        (again,) = await demo.open("192.0.2.1", protocols=("streamlit", "token", "session"))
        await clock.advance(9.0)
        await spoken.say()
        assert silent.code is None
        await clock.advance(2.0)
        assert silent.code == 1013
        await clock.advance(1000.0)
        assert [spoken.code, again.code] == [None, None]

    visit(story, monkeypatch)


def test_idlest_page_of_fullest_address_makes_room(monkeypatch):
    async def story(demo, clock):
        pages = [page for i in range(8) for page in await demo.open(f"198.51.100.{i}", 25)]
        for page in pages:
            await page.say()
        for page in (*pages[:60], *pages[61:]):
            clock.now += 0.01
            await page.say()
        (other,) = await demo.open("203.0.113.7")
        assert other.status == 101
        assert [page.code for page in pages].index(1013) == 60
        assert sum(page.code is not None for page in pages) == 1
        assert (await demo.get("/", "203.0.113.7"))[0] == 200
        # the page that left tries to return, but its address has a fair share
        assert statuses(await demo.open("198.51.100.2")) == {503: 1}

    visit(story, monkeypatch)


def test_page_leaves_for_equal_address_only_if_it_is_idle(monkeypatch):
    async def story(demo, clock):
        pages = [page for i in range(200) for page in await demo.open(f"198.51.100.{i}")]
        for page in pages:
            await page.say()
        await clock.advance(200.0)
        await pages[0].say()
        assert statuses(await demo.open("203.0.113.7")) == {503: 1}
        assert (await demo.get("/", "203.0.113.7"))[0] == 503
        await clock.advance(150.0)
        assert (await demo.get("/", "203.0.113.7"))[0] == 200
        assert statuses(await demo.open("203.0.113.7")) == {101: 1}
        assert [pages[0].code, pages[1].code, pages[2].code] == [None, 1013, None]

    visit(story, monkeypatch)


def test_networks_of_one_site_count_together_if_half_of_pages_are_open(monkeypatch):
    async def story(demo, clock):
        site = [page for i in range(100) for page in await demo.open(f"2001:db8:0:{i:x}::1")]
        assert statuses(site) == {101: 100}
        assert statuses(await demo.open("2001:db8:0:ffff::1")) == {503: 1}
        assert statuses(await demo.open("2001:db8:1::1")) == {101: 1}

    visit(story, monkeypatch)
