"""Servers whose pages and files are requested, or end, at the worst moment.

Streamlit allows one server per process, so a test starts each in a process of its own.
"""

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import streamlit as st
from starlette.middleware import Middleware
from starlette.testclient import TestClient, WebSocketTestSession
from starlette.types import ASGIApp, Receive, Scope, Send
from streamlit import config
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime import runtime

from musicsim.ui.base.page_files import PageFiles
from musicsim.ui.base.page_messages import is_end_of_run
from musicsim.ui.base.page_requests import PageRequests
from tests.waiting import PATIENCE_S

FIRST, LAST = "first element", "last element"
OLD, NEW = "old page", "new page"
CONTENT = "content of the file"
BUSY_S = 0.5  # a shorter time can only hide the fault
_runs: list[str] = []
_requested: list[str] = []  # pages, of all messages that reached Streamlit
_is_drawing, _may_end, _has_ended, _has_read = (threading.Event() for _ in range(4))


def run_server(scene: str, page: str, folder: Path) -> str:
    """Return what a scene prints, in a process of its own, with the page that a function of this module draws."""
    script = folder / "page.py"
    script.write_text(f"from {__name__} import {page}\n\n{page}()\n")
    code = f"from {__name__} import {scene}; print({scene}({str(script)!r}))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    return ran.stdout.strip()


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
    st.text_input("Search")


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


def offer_file() -> None:
    """Draw a button that downloads a file, made at the click."""
    st.download_button("Save", lambda: CONTENT, "file.txt", on_click="ignore")


def offer_failing_file() -> None:
    """Draw a button that downloads a file that cannot be made."""
    st.download_button("Save", lambda: CONTENT + 1, "file.txt", on_click="ignore")


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


def _request(*, page: str = "", fragment: str = "", click: str = "", changed: str = "", typed: str = "") -> bytes:
    message = BackMsg()
    if click:
        message.rerun_script.widget_states.widgets.add(id=click, trigger_value=True)
    if changed:
        message.rerun_script.widget_states.widgets.add(id=changed, json_value="{}")
    if typed:
        message.rerun_script.widget_states.widgets.add(id=typed, string_value="text")
    message.rerun_script.page_script_hash, message.rerun_script.fragment_id = page, fragment
    message.rerun_script.query_string = ""
    return message.SerializeToString()


HEARTBEAT = BackMsg(app_heartbeat=True).SerializeToString()


@contextmanager
def _connect(script: str, *, is_busy: bool) -> Iterator[WebSocketTestSession]:
    heartbeats = Middleware(_OnHeartbeat, is_busy=is_busy)
    with _serve(script, heartbeats) as client, client.websocket_connect("/_stcore/stream") as socket:
        yield socket


@contextmanager
def _serve(script: str, *middleware: Middleware) -> Iterator[TestClient]:
    config.set_option("runner.fastReruns", False)  # as in the app
    app = st.App(script, middleware=[Middleware(PageFiles), Middleware(PageRequests), *middleware])
    with TestClient(app) as client:
        yield client


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
    return _pages_shown_after(script, lambda first: {"changed": "component"})


def pages_shown_after_first_text(script: str) -> list[str]:
    """Return the pages that the browser gets if the box of the old one sends its first text after the navigation."""

    def text(first: list[ForwardMsg]) -> dict[str, str]:
        return {"typed": next(box.id for sent in first if (box := sent.delta.new_element.text_input).id)}

    return _pages_shown_after(script, text)


def _pages_shown_after(script: str, late: Callable[[list[ForwardMsg]], dict[str, str]]) -> list[str]:
    with _connect(script, is_busy=False) as socket:
        socket.send_bytes(_request())
        first = _receive_run(socket)
        pages = _pages(first)
        socket.send_bytes(_request(page=pages[NEW]))
        socket.send_bytes(_request(page=pages[OLD], **late(first)))
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


def content_of_replaced_file(script: str) -> str:
    """Return what the browser downloads if it requests the file of a run that other runs have followed."""
    with _serve(script) as client, client.websocket_connect("/_stcore/stream") as socket:
        socket.send_bytes(_request())
        click = _click_on_button(_receive_run(socket))
        for _ in range(2):  # Streamlit deletes a file shortly after the end of a run, so certainly before the next end
            socket.send_bytes(_request())
            _receive_run(socket)
        socket.send_bytes(click)
        return _receive_content(client, socket)


def content_of_file_replaced_now(script: str) -> str:
    """Return what the browser downloads if a run has deleted the file and the new file is not sent yet."""
    with _serve(script) as client, client.websocket_connect("/_stcore/stream") as socket:
        click = _click_on_button(_receive_run_and_pause(socket))
        socket.send_bytes(_request())
        time.sleep(BUSY_S / 2)
        socket.send_bytes(click)
        return _receive_content(client, socket)


def content_asked_before_run(script: str) -> str:
    """Return what the browser downloads if the page runs before the answer is sent."""
    with _serve(script) as client, client.websocket_connect("/_stcore/stream") as socket:
        socket.send_bytes(_click_on_button(_receive_run_and_pause(socket)))
        time.sleep(BUSY_S / 2)
        socket.send_bytes(_request())
        return _receive_content(client, socket)


def upload_asked_before_run(script: str) -> int:
    """Return the status of an upload if the page runs before the browser gets the address."""
    config.set_option("server.enableXsrfProtection", False)
    with _serve(script) as client, client.websocket_connect("/_stcore/stream") as socket:
        _receive_run_and_pause(socket)
        wanted = BackMsg()
        wanted.file_urls_request.request_id = "1"
        wanted.file_urls_request.file_names.append("file.txt")
        socket.send_bytes(wanted.SerializeToString())
        socket.send_bytes(_request())
        while not (got := ForwardMsg.FromString(socket.receive_bytes()).file_urls_response).response_id:
            pass
        url = got.file_urls[0].upload_url
        return client.put(url, files={"file": ("file.txt", CONTENT)}).status_code


def _receive_run_and_pause(socket: WebSocketTestSession) -> list[ForwardMsg]:
    """Run the page; return its messages, after which Streamlit sends nothing for a while."""
    runtime.MESSAGE_FLUSH_INTERVAL_SECS = BUSY_S
    socket.send_bytes(_request())
    return _receive_run(socket)


def _click_on_button(messages: list[ForwardMsg]) -> bytes:
    """Return the request for the file of the page's download button."""
    click = BackMsg()
    wanted = click.backend_operation_request
    wanted.request_id = "1"
    started = next(sent.new_session for sent in messages if sent.WhichOneof("type") == "new_session")
    wanted.session_id = started.initialize.session_id
    buttons = [sent.delta.new_element.download_button for sent in messages]
    wanted.deferred_file.file_id = next(button.deferred_file_id for button in buttons if button.deferred_file_id)
    return click.SerializeToString()


def _receive_content(client: TestClient, socket: WebSocketTestSession) -> str:
    """Return the file of the next answer to a download, or its error."""
    while not (got := ForwardMsg.FromString(socket.receive_bytes()).backend_operation_response).request_id:
        pass
    return got.error_msg or client.get(got.deferred_file.url).text
