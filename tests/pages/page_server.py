"""Servers whose pages are requested at the worst moment.

Streamlit allows one server per process, so a test starts each in a process of its own.
"""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import streamlit as st
from starlette.testclient import TestClient, WebSocketTestSession
from streamlit import config
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from musicsim.ui.base.page_messages import is_end_of_run
from musicsim.ui.base.watching import note_run, run_routes
from tests.waiting import PATIENCE_S

_TOKEN = "token"
_is_working, _may_end = threading.Event(), threading.Event()


def run_server(scene: str, page: str, folder: Path) -> str:
    """Return what a scene prints, in a process of its own, with the page that a function of this module draws."""
    script = folder / "page.py"
    script.write_text(f"from {__name__} import {page}\n\n{page}()\n")
    code = f"from {__name__} import {scene}; print({scene}({str(script)!r}))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    return ran.stdout.strip()


def work() -> None:
    """Draw a button that starts work in the page's run."""
    st.session_state.setdefault("session", _TOKEN)
    with note_run():
        if st.button("Work"):
            _is_working.set()
            _may_end.wait(PATIENCE_S)
            st.write("done")


def _request(click: str = "") -> bytes:
    message = BackMsg()
    if click:
        message.rerun_script.widget_states.widgets.add(id=click, trigger_value=True)
    message.rerun_script.query_string = ""
    return message.SerializeToString()


@contextmanager
def _connect(script: str) -> Iterator[tuple[TestClient, WebSocketTestSession]]:
    config.set_option("runner.fastReruns", False)  # as in the app
    app = st.App(script, routes=run_routes())
    with TestClient(app) as client, client.websocket_connect("/_stcore/stream") as socket:
        yield client, socket


def _receive_run(socket: WebSocketTestSession) -> list[ForwardMsg]:
    """Return all messages up to the end of a run that no other run interrupted."""
    messages = [ForwardMsg.FromString(socket.receive_bytes())]
    while not is_end_of_run(messages[-1]):
        messages.append(ForwardMsg.FromString(socket.receive_bytes()))
    return messages


def _texts(messages: list[ForwardMsg]) -> list[str]:
    return [text for message in messages if (text := message.delta.new_element.markdown.body)]


def _buttons(messages: list[ForwardMsg]) -> list[str]:
    return [message.delta.new_element.button.id for message in messages if message.delta.new_element.button.id]


def runs_told(script: str) -> list[object]:
    """Return what the server tells about the runs of a session while its page works, and afterwards."""
    with _connect(script) as (client, socket):
        socket.send_bytes(_request())
        (button,) = _buttons(_receive_run(socket))
        socket.send_bytes(_request(button))
        _is_working.wait(PATIENCE_S)
        told: list[object] = [client.get(f"/runs/{_TOKEN}").json()["is_running"]]
        _may_end.set()
        told += _texts(_receive_run(socket))
        told.append(client.get(f"/runs/{_TOKEN}").json()["is_running"])
        return told
