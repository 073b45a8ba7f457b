"""Connections that never send a whole request: they are closed, and others are not."""

import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket
from websockets.sync.client import connect

from musicsim.api import connections
from musicsim.api.connections import FairProtocol, PatientProtocol
from tests.waiting import PATIENCE_S, until

HEAD = b"GET / HTTP/1.1\r\nHost: localhost\r\n"


async def _answer(request: Request) -> PlainTextResponse:
    return PlainTextResponse(f"{len(await request.body())} bytes")


async def _refuse(request: Request) -> PlainTextResponse:
    return PlainTextResponse("refused", 413)


async def _echo(websocket: WebSocket) -> None:
    await websocket.accept()
    await websocket.send_text(await websocket.receive_text())


@pytest.fixture
def port(monkeypatch) -> Iterator[int]:
    """Start a server that waits as long as a test may take; yield its port."""
    monkeypatch.setattr(connections, "PATIENCE_S", PATIENCE_S)
    with serving(http=PatientProtocol) as port:
        yield port


@contextmanager
def serving(**options) -> Iterator[int]:
    app = Starlette(
        routes=[
            Route("/", _answer, methods=["GET", "POST"]),
            Route("/refused", _refuse, methods=["POST"]),
            WebSocketRoute("/echo", _echo),
        ]
    )
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", **options))
    thread = threading.Thread(target=server.run)
    thread.start()
    until(lambda: server.started)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    thread.join()


@pytest.fixture
def hurry(monkeypatch) -> Callable[[], None]:
    """Return a function after which the server waits for half a second."""
    return lambda: monkeypatch.setattr(connections, "PATIENCE_S", 0.5)


def opened(port: int, *sent: bytes, address="127.0.0.1") -> socket.socket:
    held = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S, source_address=(address, 0))
    for data in sent:
        held.sendall(data)
    return held


def received(held: socket.socket, until_has: bytes | None = None) -> bytes:
    """Read until `until_has` has come, or the end."""
    data = b""
    with suppress(ConnectionError):  # closed before all was sent
        while until_has is None or until_has not in data:
            if not (part := held.recv(4096)):
                break
            data += part
    return data


@pytest.mark.long
@pytest.mark.parametrize("sent", [b"", b"GET / HT", HEAD])
def test_incomplete_head_closes_connection(port, hurry, sent):
    hurry()
    with opened(port) as held:
        with suppress(ConnectionError):
            held.sendall(sent)
        assert received(held) == b""


def test_incomplete_second_head_closes_connection(port, hurry):
    with opened(port, HEAD) as held:
        hurry()
        held.sendall(b"\r\n")
        assert b"0 bytes" in received(held, b"0 bytes")
        with suppress(ConnectionError):
            held.sendall(HEAD)
        assert received(held) == b""


def test_connection_closes_after_early_response(port, hurry):
    head = HEAD.replace(b"GET /", b"POST /refused") + b"Content-Length: 1000000\r\n"
    with opened(port, head) as held:
        hurry()
        held.sendall(b"\r\n")
        assert b"refused" in received(held, b"refused")
        with pytest.raises(OSError, match=r".*"):  # noqa: PT012
            while True:
                held.sendall(b"12345")
                time.sleep(0.1)


@pytest.mark.long
def test_slow_request_in_progress_is_not_closed(port, hurry):
    head = HEAD.replace(b"GET", b"POST") + b"Content-Length: 5\r\n"
    with opened(port, head) as held:
        hurry()
        held.sendall(b"\r\n12")
        time.sleep(2 * connections.PATIENCE_S)
        held.sendall(b"345")
        assert b"5 bytes" in received(held, b"5 bytes")


@pytest.mark.long
def test_idle_websocket_stays_open(port, hurry):
    with connect(f"ws://127.0.0.1:{port}/echo", open_timeout=PATIENCE_S, ping_interval=None) as stream:
        hurry()
        time.sleep(2 * connections.PATIENCE_S)
        stream.send("still here")
        assert stream.recv(timeout=PATIENCE_S) == "still here"


needs_addresses = pytest.mark.skipif(sys.platform != "linux", reason="127.0.0.2 is not an address of this machine")


def status(port: int, address: str) -> int:
    with opened(port, HEAD, b"Connection: close\r\n\r\n", address=address) as held:
        return int(received(held).split()[1])


@needs_addresses
def test_half_requests_of_one_address_do_not_block_others(monkeypatch):
    monkeypatch.setattr(connections, "PATIENCE_S", PATIENCE_S)
    with serving(http=FairProtocol, limit_concurrency=60) as port, ExitStack() as held:
        many = [held.enter_context(opened(port, HEAD, address="127.0.0.2")) for _ in range(70)]
        assert status(port, "127.0.0.3") == 200
        for oldest in many[:20]:
            assert received(oldest) == b""
        many[-1].sendall(b"\r\n")
        assert b"0 bytes" in received(many[-1], b"0 bytes")


@needs_addresses
def test_address_with_busy_connections_gets_503(monkeypatch):
    monkeypatch.setenv("MUSICSIM_PAGES_PER_ADDRESS", "2")
    monkeypatch.setattr(connections, "PATIENCE_S", PATIENCE_S)
    head = HEAD.replace(b"GET", b"POST") + b"Content-Length: 5\r\nExpect: 100-continue\r\n\r\n"
    with serving(http=FairProtocol) as port, ExitStack() as held:
        busy = [held.enter_context(opened(port, head, address="127.0.0.2")) for _ in range(4)]
        for one in busy:
            assert b"100 Continue" in received(one, b"100 Continue")  # the app waits for the body
        assert status(port, "127.0.0.2") == 503
        assert status(port, "127.0.0.3") == 200
        busy[0].sendall(b"12345")
        assert b"5 bytes" in received(busy[0], b"5 bytes")
        assert status(port, "127.0.0.2") == 200


def test_trusted_proxy_has_no_limit(monkeypatch):
    monkeypatch.setenv("MUSICSIM_PAGES_PER_ADDRESS", "2")
    monkeypatch.setattr(connections, "PATIENCE_S", PATIENCE_S)
    with serving(http=FairProtocol) as port, ExitStack() as held:
        many = [held.enter_context(opened(port, HEAD)) for _ in range(20)]
        for one in many:
            one.sendall(b"\r\n")
            assert b"0 bytes" in received(one, b"0 bytes")
