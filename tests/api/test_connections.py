"""Connections that never send a whole request: they are closed, and others are not."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket
from websockets.sync.client import connect

from musicsim.api import connections
from musicsim.api.connections import PatientProtocol
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
    app = Starlette(
        routes=[
            Route("/", _answer, methods=["GET", "POST"]),
            Route("/refused", _refuse, methods=["POST"]),
            WebSocketRoute("/echo", _echo),
        ]
    )
    server = uvicorn.Server(uvicorn.Config(app, port=0, http=PatientProtocol, log_level="error"))
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


def opened(port: int, *sent: bytes) -> socket.socket:
    held = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
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
