"""Downloads and uploads that a page asks for while it runs."""

import asyncio

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from musicsim.ui.base.page_files import PageFiles
from tests.pages.page_server import CONTENT, run_server


@pytest.mark.parametrize(
    "scene", ["content_of_replaced_file", "content_of_file_replaced_now", "content_asked_before_run"]
)
def test_button_downloads_although_page_runs(scene, tmp_path):
    assert run_server(scene, "offer_file", tmp_path) == CONTENT


def test_file_is_uploaded_although_page_runs(tmp_path):
    assert run_server("upload_asked_before_run", "offer_file", tmp_path) == "204"


def test_page_is_told_that_a_file_cannot_be_made(tmp_path):
    assert run_server("content_of_replaced_file", "offer_failing_file", tmp_path).startswith("Failed to generate file")


def click(session: str, file: str) -> bytes:
    message = BackMsg()
    message.backend_operation_request.session_id = session
    message.backend_operation_request.deferred_file.file_id = file
    return message.SerializeToString()


UPLOAD = BackMsg()
UPLOAD.file_urls_request.file_names.append("file.txt")


def received_after(shown: list[ForwardMsg], message: dict) -> dict:
    """Return what the app receives if the browser got `shown` and sends a message."""
    received = []

    async def browser():
        return message

    async def ignore(message):
        pass

    async def app(scope, receive, send):
        for sent in shown:
            await send({"type": "websocket.send", "bytes": sent.SerializeToString()})
        received.append(await receive())

    asyncio.run(PageFiles(app)({"type": "websocket"}, browser, ignore))
    return received[0]


def page_with_button(session: str, file: str) -> list[ForwardMsg]:
    start, button = ForwardMsg(), ForwardMsg()
    start.new_session.initialize.session_id = session
    button.delta.new_element.download_button.id = "save"
    button.delta.new_element.download_button.deferred_file_id = file
    return [start, button]


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(click("mine", "other"), id="unknown file"),
        pytest.param(click("other", "file"), id="other session"),
        pytest.param(BackMsg(app_heartbeat=True).SerializeToString(), id="other question"),
        pytest.param(b"\xff", id="not a message"),
    ],
)
def test_app_answers_other_messages(sent):
    message = {"type": "websocket.receive", "bytes": sent}
    assert received_after(page_with_button("mine", "file"), message) == message


@pytest.mark.parametrize("sent", [UPLOAD.SerializeToString(), click("mine", "file")])
def test_app_answers_before_its_first_run(sent):
    message = {"type": "websocket.receive", "bytes": sent}
    assert received_after([], message) == message


def test_end_of_connection_passes():
    message = {"type": "websocket.disconnect"}
    assert received_after(page_with_button("mine", "file"), message) == message
