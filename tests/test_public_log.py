"""The log of a public demonstration: its operator can read it, and visitors cannot fill it."""

import re
import shutil
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from websockets.sync.client import ClientConnection

from tests.test_app_server import Server, running
from tests.test_attacks import HOSTILE, finished, rerun, stream
from tests.waiting import PATIENCE_S, until

N_DAMAGED = 15
DAMAGED = ("[" * 5_000, '{"value": "zebra' * 300, "zebra" * 1_000)


@pytest.fixture(scope="module")
def logged(built_library, tmp_path_factory) -> Iterator[tuple[Server, Path]]:
    """A public demonstration, and the file that contains its stderr."""
    folder = tmp_path_factory.mktemp("logged")
    shutil.copytree(built_library, folder / "library")
    with (
        (folder / "stderr").open("wb") as stderr,
        running(folder / "library", "--public", lines=2, stderr=stderr) as app,
    ):
        yield app, folder / "stderr"


def send_damaged(page: ClientConnection, widget: str, value: str) -> None:
    message = BackMsg.FromString(rerun())
    message.rerun_script.widget_states.widgets.add(id=widget).json_value = value
    page.send(message.SerializeToString())
    finished(page)


def test_damaged_messages_write_few_short_lines(logged):
    server, stderr = logged
    before, begun = stderr.stat().st_size, time.monotonic()
    with stream(server, HOSTILE) as page:
        page.send(rerun())
        elements = [message.delta.new_element for message in finished(page)]
        widgets = [element.bidi_component.id for element in elements if element.bidi_component.id]
        assert widgets
        for n in range(N_DAMAGED):
            send_damaged(page, widgets[n % len(widgets)], DAMAGED[n % len(DAMAGED)])
            assert stderr.stat().st_size > before, "the operator learns of it"
    lines = stderr.read_text(errors="replace")[before:].splitlines()
    # at most ten lines in a minute, which a busy machine may need several times
    n_minutes = 1 + int((time.monotonic() - begun) / 60)
    assert 10 <= len(lines) <= 10 * n_minutes
    assert all("Error" in line and len(line) < 1_000 for line in lines)
    assert "zebra" not in "".join(lines)
    assert n_minutes > 1 or "left out" in lines[-1]


def test_operator_reads_warnings_of_the_server(logged):
    server, stderr = logged
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S) as client:
        client.sendall(b"zebra\r\n\r\n")
        assert client.recv(100).startswith(b"HTTP/1.1 400")
    until(lambda: re.search(r"^.*Invalid HTTP request received", stderr.read_text(errors="replace"), re.MULTILINE))
    assert "zebra" not in stderr.read_text(errors="replace")
