"""Bodies that come slowly, or never: other visitors are served meanwhile."""

import asyncio

import pytest
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from musicsim.api import Visitors, arrivals, visitors
from musicsim.api.arrivals import Arrivals, TooLargeError, TooManyError, TooSlowError

UPLOAD, SEARCH = "/_stcore/upload_file/{session}/1", "/api/similar"


class Server:
    """The limits with an app behind them that reads bodies; `at_work` are addresses that it has begun with."""

    def __init__(self, held=lambda session: (0, 0)):
        self.at_work: list[str] = []
        self.may_end = asyncio.Event()
        self.may_end.set()
        route = Route("/{path:path}", self._answer, methods=["PUT", "POST"])
        self._app = Visitors(Starlette(routes=[route]), lambda _: True, held, max_file=1 << 20)

    async def _answer(self, request: Request) -> PlainTextResponse:
        self.at_work.append(request.client.host)
        body = await request.body()
        await self.may_end.wait()
        return PlainTextResponse(str(len(body)))

    async def send(self, path, *, address="192.0.2.1", parts=(), ends=True, length=None) -> tuple[int, str]:
        """Status and text of a request whose body comes in parts, and may never end."""
        coming = iter([*parts, *([b""] if ends else [])])
        n_left = len(parts) + ends
        answer = []

        async def receive():
            nonlocal n_left
            if not n_left:
                await asyncio.Event().wait()
            n_left -= 1
            return {"type": "http.request", "body": next(coming), "more_body": n_left > 0 or not ends}

        async def send(message):
            answer.append(message)

        scope = {
            "type": "http", "http_version": "1.1", "scheme": "http", "path": path, "raw_path": path.encode(),
            "method": "PUT" if "upload_file" in path else "POST", "query_string": b"", "root_path": "",
            "headers": [(b"content-length", str(length).encode())] if length else [],
            "client": (address, 1), "server": ("127.0.0.1", 2),
        }  # fmt: skip
        await self._app(scope, receive, send)
        return answer[0]["status"], b"".join(message.get("body", b"") for message in answer).decode()


async def settled() -> None:
    """Let all tasks come to where they wait."""
    for _ in range(50):
        await asyncio.sleep(0)


@pytest.mark.parametrize("n_addresses", [1, 64])
def test_another_visitor_is_served_during_64_slow_bodies(n_addresses):
    async def attack() -> list[tuple[int, str]]:
        server = Server()
        slow = [
            asyncio.create_task(
                server.send(
                    path.format(session=i), address=f"198.51.100.{i % n_addresses}", parts=[b"12345"], ends=False
                )
            )
            for i in range(32)
            for path in (UPLOAD, SEARCH)
        ]
        await settled()
        assert server.at_work == []
        answers = [await server.send(path.format(session="other"), parts=[b"abc", b"de"]) for path in (UPLOAD, SEARCH)]
        assert not any(task.done() for task in slow)
        for task in slow:
            task.cancel()
        return answers

    assert asyncio.run(attack()) == [(200, "5")] * 2


def test_a_body_below_the_least_pace_is_refused_after_its_grace(monkeypatch):
    monkeypatch.setattr(arrivals, "_GRACE_S", 0.05)
    monkeypatch.setattr(arrivals, "_LEAST_PER_S", 1e9)

    async def send() -> list[tuple[int, str]]:
        server = Server()
        slow = await asyncio.gather(
            *(server.send(path, parts=[b"1"], ends=False) for path in (SEARCH, UPLOAD, "/listen/x/grades"))
        )
        return [*slow, await server.send(SEARCH)]

    *slow, after = asyncio.run(send())
    assert slow == [(408, "the file came too slowly: send a smaller part of it.")] * 3
    assert after == (200, "0")


def test_a_slow_uplink_has_longer_than_its_grace(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("musicsim.api.arrivals.time.monotonic", lambda: now[0])
    monkeypatch.setattr(arrivals, "_LEAST_PER_S", 100)

    async def arrive(seconds_a_part: float) -> int:
        """Send twenty parts, each of which earns ten seconds; give how many came in time."""
        n_sent, now[0] = 0, 0.0

        async def receive():
            nonlocal n_sent
            n_sent += 1
            now[0] += seconds_a_part
            return {"type": "http.request", "body": bytes(1_000), "more_body": n_sent < 20}

        try:
            async with Arrivals(1 << 20).body(receive, 1 << 20):
                return n_sent
        except TooSlowError:
            return n_sent

    assert asyncio.run(arrive(12.0)) == 20, "four minutes, of which one is the grace"
    assert asyncio.run(arrive(20.0)) < 20


def test_an_address_has_few_files_on_their_way_and_a_session_fewer():
    async def attack() -> tuple[int, list[int], tuple[int, str]]:
        server = Server(held=lambda session: (2, 0) if session == "full" else (0, 0))
        server.may_end.clear()
        sent = [asyncio.create_task(server.send(SEARCH)) for _ in range(10)]
        page = [
            asyncio.create_task(server.send(UPLOAD.format(session="full"), address="192.0.2.2", ends=False))
            for _ in range(2)
        ]
        await settled()
        n_at_work = len(server.at_work)
        third = await server.send(UPLOAD.format(session="full"), address="192.0.2.2")
        server.may_end.set()
        for task in page:
            task.cancel()
        return n_at_work, [status for status, _ in await asyncio.gather(*sent)], third

    n_at_work, statuses, third = asyncio.run(attack())
    assert n_at_work == 4
    assert statuses == [200] * 10
    assert third == (429, "a page holds 4 files at most.")


def test_who_waits_too_long_for_a_place_is_told_so(monkeypatch):
    monkeypatch.setattr(visitors, "_MAX_WAIT_S", 0.01)

    async def attack() -> tuple[int, str]:
        server = Server()
        slow = [asyncio.create_task(server.send(SEARCH, ends=False)) for _ in range(4)]
        await settled()
        answer = await server.send(SEARCH)
        for task in slow:
            task.cancel()
        return answer

    assert asyncio.run(attack()) == (503, "too many files are being sent.")


def test_a_body_comes_whole_from_memory_and_from_disk():
    async def send() -> list[tuple[int, str]]:
        server = Server()
        return [await server.send(SEARCH, parts=parts) for parts in ((), [b"x"], [bytes(60_000)] * 3, [bytes(1 << 20)])]

    assert asyncio.run(send()) == [(200, "0"), (200, "1"), (200, "180000"), (200, str(1 << 20))]


def test_a_body_is_stopped_where_it_is_too_large():
    async def send() -> list[int]:
        server = Server()
        found = [(await server.send(path, parts=[bytes(1 << 19)] * 9))[0] for path in (SEARCH, UPLOAD)]
        # one that says so goes on to the app, which reads nothing of it
        found.append((await server.send(SEARCH, length=1 << 30))[0])
        return found

    assert asyncio.run(send()) == [413, 413, 200]


def test_all_bodies_together_have_a_limit_and_give_their_room_back():
    async def body(*parts: bytes, all_of: Arrivals) -> int:
        coming = iter(parts)

        async def receive():
            chunk = next(coming, None)
            if chunk is None:
                return {"type": "http.disconnect"}
            return {"type": "http.request", "body": chunk, "more_body": chunk != b"end"}

        async with all_of.body(receive, 100) as arrived:
            return len((await arrived.receive())["body"])

    async def send() -> None:
        all_of = Arrivals(150)
        for error, parts in ((TooLargeError, [bytes(101)]), (ClientDisconnect, [bytes(90)])):
            with pytest.raises(error):
                await body(*parts, all_of=all_of)
        assert await body(bytes(97), b"end", all_of=all_of) == 100

        async def holds():
            return {"type": "http.request", "body": bytes(100)}

        async with all_of.body(holds, 100):
            with pytest.raises(TooManyError):
                await body(bytes(60), all_of=all_of)
            assert await body(b"end", all_of=all_of) == 3
        assert await body(bytes(97), b"end", all_of=all_of) == 100

    asyncio.run(send())


def test_the_agents_interface_is_not_for_visitors():
    async def send() -> list[tuple[int, str]]:
        server = Server()
        return [await server.send("/_stcore/agent/interact"), await server.send("/x/_stcore/agent/openapi.json")]

    assert asyncio.run(send()) == [(404, "there is nothing here.")] * 2
