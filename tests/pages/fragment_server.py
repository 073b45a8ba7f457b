"""A server whose event loop is busy when a page's run ends, while a fragment's request waits.

Streamlit allows one server per process, so the test starts this one in a process of its own.
"""

import threading
import time

import streamlit as st
from starlette.middleware import Middleware
from starlette.testclient import TestClient
from starlette.types import ASGIApp, Receive, Scope, Send
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from musicsim.ui.base.run_order import RunOrder
from tests.waiting import PATIENCE_S

PAGE = "from tests.pages.fragment_server import draw\n\ndraw()\n"
FIRST, LAST = "first element", "last element"
BUSY_S = 0.5  # a shorter time can only hide the fault
_runs: list[str] = []
_is_drawing, _may_end, _has_ended = (threading.Event() for _ in range(3))


@st.fragment
def draw() -> None:
    """Draw the page; its second run waits before the last element."""
    _runs.append("run")
    st.write(FIRST)
    if len(_runs) == 2:
        _is_drawing.set()
        _may_end.wait(PATIENCE_S)
    st.write(LAST)
    if len(_runs) == 2:
        _has_ended.set()


class _BusyLoop:
    """ASGI middleware that lets the page's run end while the event loop does nothing else, after a heartbeat."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def receive_and_block():
            message = await receive()
            if message.get("bytes") and BackMsg.FromString(message["bytes"]).app_heartbeat:
                _may_end.set()
                _has_ended.wait(PATIENCE_S)
                time.sleep(BUSY_S)
            return message

        await self._app(scope, receive_and_block if scope["type"] == "websocket" else receive, send)


def _request(fragment: str = "") -> bytes:
    message = BackMsg()
    message.rerun_script.query_string = ""
    message.rerun_script.fragment_id = fragment
    return message.SerializeToString()


def elements_of_second_run(script: str) -> list[str]:
    """Return what the browser gets from the second run of the page, during which it requests the fragment."""
    app = st.App(script, middleware=[Middleware(RunOrder), Middleware(_BusyLoop)])
    with TestClient(app) as client, client.websocket_connect("/_stcore/stream") as socket:

        def receive_run() -> list[ForwardMsg]:
            messages = [ForwardMsg.FromString(socket.receive_bytes())]
            while messages[-1].WhichOneof("type") != "script_finished":
                messages.append(ForwardMsg.FromString(socket.receive_bytes()))
            return messages

        socket.send_bytes(_request())
        fragment = next(message.delta.fragment_id for message in receive_run() if message.delta.fragment_id)
        socket.send_bytes(_request())
        _is_drawing.wait(PATIENCE_S)
        socket.send_bytes(_request(fragment))
        socket.send_bytes(BackMsg(app_heartbeat=True).SerializeToString())
        return [text for message in receive_run() if (text := message.delta.new_element.markdown.body)]
