"""Slow and endless request bodies: other visitors are served in the meantime."""

import asyncio

import pytest
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from musicsim.api import Visitors, arrivals, lines
from musicsim.api.arrivals import Arrivals, Refused, TooManyFiles
from musicsim.api.streams import MessageDialect
from tests.waiting import PATIENCE_S, settled

UPLOAD, SEARCH = "/_stcore/upload_file/{session}/1", "/api/similar"


class Server:
    """The limits in front of an app that reads bodies; `at_work` are addresses whose requests have started."""

    def __init__(self, held=lambda session: (0, 0)):
        self.at_work: list[str] = []
        self.may_end = asyncio.Event()
        self.may_end.set()
        route = Route("/{path:path}", self._answer, methods=["PUT", "POST"])
        self._app = Visitors(Starlette(routes=[route]), MessageDialect(lambda _: True), held, max_file=1 << 20)

    async def _answer(self, request: Request) -> PlainTextResponse:
        self.at_work.append(request.client.host)
        body = await request.body()
        await self.may_end.wait()
        return PlainTextResponse(str(len(body)))

    async def send(self, path, *, address="192.0.2.1", parts=(), ends=True, length=None) -> tuple[int, str]:
        """Send a request whose body comes in parts, and may never end; return status and text."""
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


@pytest.mark.parametrize("n_addresses", [1, 64])
def test_slow_bodies_do_not_block_other_visitors(n_addresses, monkeypatch):
    monkeypatch.setattr(arrivals, "GRACE_S", PATIENCE_S)

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


def test_slow_body_is_refused_after_grace_period(monkeypatch):
    monkeypatch.setattr(arrivals, "GRACE_S", 0.05)
    monkeypatch.setattr(arrivals, "LEAST_PER_S", 1e9)

    async def send() -> list[tuple[int, str]]:
        server = Server()
        slow = await asyncio.gather(
            *(server.send(path, parts=[b"1"], ends=False) for path in (SEARCH, UPLOAD, "/listen/x/grades"))
        )
        return [*slow, await server.send(SEARCH)]

    *slow, after = asyncio.run(send())
    assert slow == [(408, "the file arrived too slowly: send a smaller part of it.")] * 3
    assert after == (200, "0")


def test_steady_slow_uplink_outlasts_grace_period(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("musicsim.api.arrivals.time.monotonic", lambda: now[0])
    monkeypatch.setattr(arrivals, "LEAST_PER_S", 100)

    async def arrive(seconds_a_part: float) -> int:
        """Send twenty parts, each of which earns ten seconds; return the number that came in time."""
        n_sent, now[0] = 0, 0.0

        async def receive():
            nonlocal n_sent
            n_sent += 1
            now[0] += seconds_a_part
            return {"type": "http.request", "body": bytes(1_000), "more_body": n_sent < 20}

        try:
            async with Arrivals(1 << 20).body(receive, 1 << 20):
                return n_sent
        except Refused:
            return n_sent

    assert asyncio.run(arrive(12.0)) == 20, "four minutes, of which one is the grace"
    assert asyncio.run(arrive(20.0)) < 20


def test_concurrent_files_are_limited_per_address_and_session(monkeypatch):
    monkeypatch.setattr(arrivals, "GRACE_S", PATIENCE_S)
    monkeypatch.setattr(lines, "MAX_WAIT_S", PATIENCE_S)

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
    assert third == (429, "a page can hold at most 4 files.")


def test_long_wait_for_slot_returns_503(monkeypatch):
    monkeypatch.setattr(lines, "MAX_WAIT_S", 0.01)

    async def attack() -> tuple[int, str]:
        server = Server()
        slow = [asyncio.create_task(server.send(SEARCH, ends=False)) for _ in range(4)]
        await settled()
        answer = await server.send(SEARCH)
        for task in slow:
            task.cancel()
        return answer

    assert asyncio.run(attack()) == (503, "too many files are being uploaded.")


def test_body_arrives_complete_from_memory_and_disk():
    async def send() -> list[tuple[int, str]]:
        server = Server()
        return [await server.send(SEARCH, parts=parts) for parts in ((), [b"x"], [bytes(60_000)] * 3, [bytes(1 << 20)])]

    assert asyncio.run(send()) == [(200, "0"), (200, "1"), (200, "180000"), (200, str(1 << 20))]


def test_oversized_body_is_cut_off_with_413():
    async def send() -> list[int]:
        server = Server()
        found = [(await server.send(path, parts=[bytes(1 << 19)] * 9))[0] for path in (SEARCH, UPLOAD)]
        # a request that announces its length goes on to the app, which does not read it
        found.append((await server.send(SEARCH, length=1 << 30))[0])
        return found

    assert asyncio.run(send()) == [413, 413, 200]


def test_total_body_size_is_limited_and_released():
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
        with pytest.raises(Refused, match="too large"):
            await body(bytes(101), all_of=all_of)
        with pytest.raises(ClientDisconnect):
            await body(bytes(90), all_of=all_of)
        assert await body(bytes(97), b"end", all_of=all_of) == 100

        async def holds():
            return {"type": "http.request", "body": bytes(100)}

        async with all_of.body(holds, 100):
            with pytest.raises(TooManyFiles):
                await body(bytes(60), all_of=all_of)
            assert await body(b"end", all_of=all_of) == 3
        assert await body(bytes(97), b"end", all_of=all_of) == 100

    asyncio.run(send())


def test_agent_interface_is_hidden_from_visitors():
    async def send() -> list[tuple[int, str]]:
        server = Server()
        return [await server.send("/_stcore/agent/interact"), await server.send("/x/_stcore/agent/openapi.json")]

    assert asyncio.run(send()) == [(404, "there is nothing here.")] * 2
