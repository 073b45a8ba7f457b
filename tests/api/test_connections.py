"""Connections that never send a whole request: they are closed, and others are not."""

import socket
import threading
import time
from collections.abc import Iterator

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
    """A server that waits for half a second."""
    monkeypatch.setattr(connections, "PATIENCE_S", 0.5)
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


def opened(port: int, *sent: bytes) -> socket.socket:
    held = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
    for data in sent:
        held.sendall(data)
    return held


def received(held: socket.socket, until_has: bytes | None = None) -> bytes:
    """All that comes until something has come, or the end."""
    data = b""
    while (part := held.recv(4096)) and (until_has is None or until_has not in data + part):
        data += part
    return data + part


@pytest.mark.parametrize("sent", [b"", b"GET / HT", HEAD])
def test_half_a_head_is_not_waited_for(port, sent):
    with opened(port, sent) as held:
        assert received(held) == b""


def test_nor_is_the_head_of_the_next_request(port):
    with opened(port, HEAD + b"\r\n") as held:
        assert b"0 bytes" in received(held, b"0 bytes")
        held.sendall(HEAD)
        assert received(held) == b""


def test_the_rest_of_a_body_that_has_its_answer_is_not_waited_for(port):
    head = HEAD.replace(b"GET /", b"POST /refused") + b"Content-Length: 1000000\r\n\r\n"
    with opened(port, head) as held:
        assert b"refused" in received(held, b"refused")
        with pytest.raises(OSError, match=r".*"):  # noqa: PT012
            while True:
                held.sendall(b"12345")
                time.sleep(0.1)


def test_a_request_that_is_at_work_is_waited_for(port):
    head = HEAD.replace(b"GET", b"POST") + b"Content-Length: 5\r\n\r\n"
    with opened(port, head + b"12") as held:
        time.sleep(2 * connections.PATIENCE_S)
        held.sendall(b"345")
        assert b"5 bytes" in received(held, b"5 bytes")


def test_a_websocket_stays(port):
    with connect(f"ws://127.0.0.1:{port}/echo") as stream:
        time.sleep(2 * connections.PATIENCE_S)
        stream.send("still here")
        assert stream.recv(timeout=PATIENCE_S) == "still here"
