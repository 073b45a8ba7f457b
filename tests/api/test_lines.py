"""Requests that compute: one address gets few places, and other visitors do not wait for its line."""

import asyncio
from collections import Counter

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient

from musicsim.api import Visitors
from musicsim.api.streams import MessageDialect
from tests.waiting import settled

PLAYLIST, QUEUE, RADIO, COVER = "/api/playlist", "/api/queue", "/radio", "/songs/1/cover"


class Server:
    """The limits in front of an app whose answers wait for `may_end`; `at_work` are the addresses that it serves."""

    def __init__(self) -> None:
        self.at_work: list[str] = []
        self.ended: list[str] = []
        self.may_end = asyncio.Semaphore(0)
        self._app = Visitors(self._answer, MessageDialect(lambda _: True), lambda _: (0, 0))

    async def _answer(self, scope, receive, send) -> None:
        request = Request(scope, receive)
        assert await request.body() == b""
        if request.url.path != COVER:
            self.at_work.append(request.client.host)
            await self.may_end.acquire()
            self.at_work.remove(request.client.host)
            self.ended.append(request.client.host)
        await PlainTextResponse("yes")(scope, receive, send)

    def get(self, path: str, address: str, *, is_reading=True, method="GET") -> "Asked":
        return Asked(self._app, path, address, is_reading, method)

    async def end(self, n: int = 1) -> None:
        for _ in range(n):
            self.may_end.release()
        await settled()


class Asked:
    """A request of a client that may leave, or not read the response."""

    def __init__(self, app, path: str, address: str, is_reading: bool, method: str = "GET") -> None:
        self.status, self._is_reading, self._n_received = None, is_reading, 0
        self._has_left = asyncio.Event()
        scope = {
            "type": "http", "method": method, "scheme": "http", "server": ("127.0.0.1", 2), "path": path,
            "query_string": b"", "headers": [], "client": (address, 1),
        }  # fmt: skip
        self.task = asyncio.create_task(app(scope, self._receive, self._send))

    async def _receive(self):
        self._n_received += 1
        if self._n_received > 1:
            await self._has_left.wait()
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": b"", "more_body": False}

    async def _send(self, message) -> None:
        self.status = message.get("status", self.status)
        if not self._is_reading:
            await asyncio.Event().wait()

    def leave(self) -> None:
        self._has_left.set()


def test_one_address_gets_two_of_four_places():
    async def attack() -> None:
        server = Server()
        many = [server.get(PLAYLIST, "198.51.100.1") for _ in range(40)]
        await settled()
        assert server.at_work == ["198.51.100.1"] * 2
        file = server.get(COVER, "198.51.100.1")
        await file.task
        assert file.status == 200, "only computations wait"
        others = [server.get(path, f"203.0.113.{i}") for i, path in enumerate((RADIO, "/api/songs/1/similar"))]
        third = server.get(RADIO, "203.0.113.9")
        await settled()
        assert server.at_work == ["198.51.100.1", "198.51.100.1", "203.0.113.0", "203.0.113.1"]
        await server.end()  # one of the many
        assert server.at_work[-1] == "203.0.113.9", "who waits for the first time comes before the third of another"
        await server.end(42)
        await asyncio.gather(*(request.task for request in (*many, *others, third)))
        assert Counter(request.status for request in (*many, *others, third)) == {200: 43}
        assert server.at_work == []

    asyncio.run(attack())


def test_queues_wait_in_the_line_of_playlists():
    async def attack() -> list[str]:
        server = Server()
        for path, method in [(QUEUE, "POST"), (PLAYLIST, "GET")] * 5:
            server.get(path, "198.51.100.1", method=method)
        server.get(QUEUE, "203.0.113.1", method="POST")
        await settled()
        return server.at_work

    assert asyncio.run(attack()) == ["198.51.100.1"] * 2 + ["203.0.113.1"]


def test_addresses_take_turns():
    async def attack() -> list[str]:
        server = Server()
        for address in ("198.51.100.1", "198.51.100.2", "203.0.113.1"):
            for _ in range(2 if address == "203.0.113.1" else 6):
                server.get(PLAYLIST, address)
        await settled()
        for _ in range(9):
            await server.end()
        return server.ended

    ended = asyncio.run(attack())
    assert Counter(ended) == {"198.51.100.1": 4, "198.51.100.2": 3, "203.0.113.1": 2}


def test_networks_of_one_site_take_turns_as_one_if_line_is_long():
    async def attack() -> None:
        server = Server()
        for i in range(40):
            server.get(PLAYLIST, f"2001:db8:0:{i:x}::1")
        await settled()
        assert len(server.at_work) == 4
        server.get(PLAYLIST, "2001:db8:0:ffff::1")
        server.get(PLAYLIST, "2001:db8:1::1")
        await settled()
        await server.end()
        assert "2001:db8:1::1" in server.at_work
        await server.end()
        assert len(server.at_work) == 3, "the site has two places while the line is long"

    asyncio.run(attack())


def test_request_of_client_that_left_is_not_computed():
    async def attack() -> list[str]:
        server = Server()
        many = [server.get(PLAYLIST, "198.51.100.1") for _ in range(10)]
        await settled()
        for request in many[2:]:
            request.leave()
        await settled()
        assert [request.task.done() for request in many] == [False] * 2 + [True] * 8
        await server.end(10)
        return server.ended

    assert len(asyncio.run(attack())) == 2


def test_slow_reader_does_not_keep_its_place():
    async def attack() -> list[str]:
        server = Server()
        for _ in range(4):
            server.get(PLAYLIST, "198.51.100.1", is_reading=False)
        await settled()
        await server.end(2)
        return server.at_work

    assert len(asyncio.run(attack())) == 2


def test_long_wait_returns_503(monkeypatch):
    monkeypatch.setattr("musicsim.api.lines.MAX_WAIT_S", 0.01)

    async def attack() -> int:
        server = Server()
        many = [server.get(PLAYLIST, "198.51.100.1") for _ in range(3)]
        await many[2].task
        return many[2].status

    assert asyncio.run(attack()) == 503


@pytest.mark.parametrize(
    ("method", "path", "n"),
    [
        ("GET", PLAYLIST, 150),
        ("POST", QUEUE, 375),
        ("POST", "/api/songs/table", 150),
        ("GET", "/api/songs/1/artists", 150),
        ("GET", "/api/sounds/0f-600/why", 150),
        ("POST", "/api/tracks", 600),
        ("GET", RADIO, 600),
        ("GET", "/api/songs", 600),
        ("GET", COVER, 3000),
    ],
)
def test_requests_count_by_what_they_compute(method, path, n, monkeypatch):
    monkeypatch.setattr("musicsim.api.budgets.time.monotonic", lambda: 0.0)

    async def serve(scope, receive, send) -> None:
        await PlainTextResponse("yes")(scope, receive, send)

    async def ask_often() -> list[int]:
        app = Visitors(serve, MessageDialect(lambda _: True), lambda _: (0, 0))
        asked = []
        for _ in range(n + 1):
            asked.append(Asked(app, path, "192.0.2.1", True, method))
            await asked[-1].task
        return [request.status for request in asked]

    assert asyncio.run(ask_often()) == [200] * n + [429]


def test_playlists_of_visitors_are_short(client: TestClient, monkeypatch):
    long = ("length=101", "length=500", "minutes=301")
    assert [client.get(f"/api/playlist?{query}").status_code for query in long] == [200] * 3
    monkeypatch.setenv("MUSICSIM_PUBLIC", "1")
    answers = [client.get(f"/api/playlist?{query}") for query in long]
    assert [answer.status_code for answer in answers] == [422] * 3
    assert answers[1].json()["detail"] == "length must be between 1 and 100."
    assert client.get("/api/playlist?length=100").status_code == 200
