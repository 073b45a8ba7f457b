"""Servers whose pages are requested, or end, at the worst moment.

Streamlit allows one server per process, so a test starts each in a process of its own.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st
from starlette.middleware import Middleware
from starlette.testclient import TestClient, WebSocketTestSession
from starlette.types import ASGIApp, Receive, Scope, Send
from streamlit import config
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from musicsim.ui.base.page_messages import is_end_of_run
from musicsim.ui.base.page_requests import PageRequests
from tests.waiting import PATIENCE_S

SCRIPT = "from tests.pages.page_server import {0}\n\n{0}()\n"
FIRST, LAST = "first element", "last element"
OLD, NEW = "old page", "new page"
BUSY_S = 0.5  # a shorter time can only hide the fault
_runs: list[str] = []
_requested: list[str] = []  # pages, of all messages that reached Streamlit
_is_drawing, _may_end, _has_ended, _has_read = (threading.Event() for _ in range(4))


@st.fragment
def draw() -> None:
    """Draw the page; its second run waits before the last element."""
    is_second = _begin(FIRST)
    st.write(LAST)
    if is_second:
        _has_ended.set()


def _begin(text: str) -> bool:
    """Write the first element; in the second run, wait until it may end, and return True."""
    _runs.append("run")
    st.write(text)
    is_second = len(_runs) == 2
    if is_second:
        _is_drawing.set()
        _may_end.wait(PATIENCE_S)
    return is_second


def draw_pages() -> None:
    """Draw the old or the new page; the second run of the old page waits, and then asks for another run."""
    st.navigation([st.Page(_draw_old, title=OLD, url_path="old"), st.Page(_draw_new, title=NEW, url_path="new")]).run()


def _draw_old() -> None:
    if _begin(OLD):
        st.rerun()


def _draw_new() -> None:
    _may_end.wait(PATIENCE_S)
    st.write(NEW)


def count_clicks() -> None:
    """Draw a button whose callback is busy, and the number of its calls that ended."""
    st.session_state.setdefault("clicks", 0)
    st.button("Count", key="count", on_click=_count)
    st.write(f"{st.session_state.clicks} clicks")


@st.fragment
def count_clicks_in_fragment() -> None:
    """Do the same in a fragment."""
    count_clicks()


def _count() -> None:
    _is_drawing.set()
    _may_end.wait(PATIENCE_S)
    time.sleep(BUSY_S)
    st.session_state.clicks += 1  # ends the callback if a request for the page waits


class _OnHeartbeat:
    """ASGI middleware that lets the page's run end when a heartbeat arrives, also while the event loop is busy."""

    def __init__(self, app: ASGIApp, is_busy: bool) -> None:
        self._app = app
        self._is_busy = is_busy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def receive_and_note():
            message = await receive()
            sent = BackMsg.FromString(message.get("bytes") or b"")
            _requested.append(sent.rerun_script.page_script_hash)
            if sent.app_heartbeat:
                (_has_read if _may_end.is_set() else _may_end).set()
                if self._is_busy:
                    _has_ended.wait(PATIENCE_S)
                    time.sleep(BUSY_S)
            return message

        await self._app(scope, receive_and_note if scope["type"] == "websocket" else receive, send)


def _request(*, page: str = "", fragment: str = "", click: str = "", changed: str = "") -> bytes:
    message = BackMsg()
    if click:
        message.rerun_script.widget_states.widgets.add(id=click, trigger_value=True)
    if changed:
        message.rerun_script.widget_states.widgets.add(id=changed, json_value="{}")
    message.rerun_script.page_script_hash, message.rerun_script.fragment_id = page, fragment
    message.rerun_script.query_string = ""
    return message.SerializeToString()


HEARTBEAT = BackMsg(app_heartbeat=True).SerializeToString()


@contextmanager
def _connect(script: str, *, is_busy: bool) -> Iterator[WebSocketTestSession]:
    config.set_option("runner.fastReruns", False)  # as in the app
    app = st.App(script, middleware=[Middleware(PageRequests), Middleware(_OnHeartbeat, is_busy=is_busy)])
    with TestClient(app) as client, client.websocket_connect("/_stcore/stream") as socket:
        yield socket


def _receive_run(socket: WebSocketTestSession) -> list[ForwardMsg]:
    """Return all messages up to the end of a run that no other run interrupted."""
    messages = [ForwardMsg.FromString(socket.receive_bytes())]
    while not is_end_of_run(messages[-1]):
        messages.append(ForwardMsg.FromString(socket.receive_bytes()))
    return messages


def _texts(messages: list[ForwardMsg]) -> list[str]:
    return [text for message in messages if (text := message.delta.new_element.markdown.body)]


def _pages(messages: list[ForwardMsg]) -> dict[str, str]:
    """Return the hash of each page's script, keyed by the page's name."""
    return {page.page_name: page.page_script_hash for sent in messages for page in sent.navigation.app_pages}


def elements_of_second_run(script: str) -> list[str]:
    """Return what the browser gets from the second run of the page, during which it requests the fragment."""
    with _connect(script, is_busy=True) as socket:
        socket.send_bytes(_request())
        fragment = next(message.delta.fragment_id for message in _receive_run(socket) if message.delta.fragment_id)
        socket.send_bytes(_request())
        _is_drawing.wait(PATIENCE_S)
        socket.send_bytes(_request(fragment=fragment))
        socket.send_bytes(HEARTBEAT)
        return _texts(_receive_run(socket))


def pages_shown(script: str) -> list[str]:
    """Return the pages that the browser gets if it requests the new one just before the old one reruns itself."""
    with _connect(script, is_busy=False) as socket:
        socket.send_bytes(_request())
        pages = _pages(_receive_run(socket))
        socket.send_bytes(_request(page=pages[OLD]))
        _is_drawing.wait(PATIENCE_S)
        socket.send_bytes(_request(page=pages[NEW]))
        socket.send_bytes(HEARTBEAT)
        shown = _texts(_receive_run(socket))
        socket.send_bytes(HEARTBEAT)
        _has_read.wait(PATIENCE_S)
        if NEW not in shown and _requested.count(pages[NEW]) > 1:  # its run is still to come
            shown += _texts(_receive_run(socket))
        return shown


def pages_shown_after_change(script: str) -> list[str]:
    """Return the pages that the browser gets if a component of the old one sends a value after the navigation."""
    with _connect(script, is_busy=False) as socket:
        socket.send_bytes(_request())
        pages = _pages(_receive_run(socket))
        socket.send_bytes(_request(page=pages[NEW]))
        socket.send_bytes(_request(page=pages[OLD], changed="component"))
        socket.send_bytes(HEARTBEAT)
        return _texts(_receive_run(socket))


def clicks_counted(script: str) -> list[str]:
    """Return what the browser gets if it clicks, and requests the page while the callback is busy."""
    with _connect(script, is_busy=False) as socket:
        socket.send_bytes(_request())
        first = _receive_run(socket)
        button = next(message.delta.new_element.button.id for message in first if message.delta.new_element.button.id)
        fragment = next((message.delta.fragment_id for message in first if message.delta.fragment_id), "")
        socket.send_bytes(_request(click=button, fragment=fragment))
        _is_drawing.wait(PATIENCE_S)
        socket.send_bytes(_request())
        socket.send_bytes(HEARTBEAT)
        return _texts(_receive_run(socket))
