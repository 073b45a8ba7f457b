"""Requests of a page that the user has left, as they reach Streamlit."""

import asyncio

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from musicsim.ui.base.page_changes import PageChanges


def request(page, *, fragment="", click="") -> bytes:
    message = BackMsg()
    message.rerun_script.page_script_hash, message.rerun_script.fragment_id = page, fragment
    message.rerun_script.widget_states.widgets.add(id="number", int_value=3)
    if click:
        message.rerun_script.widget_states.widgets.add(id=click, trigger_value=True)
    return message.SerializeToString()


def new_session(page, *fragments) -> bytes:
    message = ForwardMsg()
    message.new_session.page_script_hash = page
    message.metadata.run.fragment_ids.extend(fragments)
    return message.SerializeToString()


def navigation(page) -> bytes:
    message = ForwardMsg()
    message.navigation.page_script_hash = page
    return message.SerializeToString()


def requests_of(*messages: tuple[str, bytes]) -> list[bytes]:
    """Send messages "in" to the app and "out" to the page, in order; return those that reach the app."""
    received = []
    waiting = iter([{"type": "websocket.receive", "bytes": data} for direction, data in messages if direction == "in"])

    async def receive():
        return next(waiting)

    async def ignore(message):
        pass

    async def app(scope, receive, send):
        for direction, data in messages:
            if direction == "in":
                received.append((await receive())["bytes"])
            else:
                await send({"type": "websocket.send", "bytes": data})

    asyncio.run(PageChanges(app)({"type": "websocket"}, receive, ignore))
    return received


def page_of(message: bytes) -> str:
    return BackMsg.FromString(message).rerun_script.page_script_hash


@pytest.mark.parametrize("late", [{"fragment": "queue"}, {"click": "play"}, {"fragment": "queue", "click": "play"}])
def test_late_request_runs_all_of_new_page(late):
    listen = ("out", new_session("listen"))
    moved = requests_of(listen, ("in", request("library")), ("in", request("listen", **late)))[-1]
    expected = BackMsg.FromString(request("library", click=late.get("click", "")))
    assert BackMsg.FromString(moved) == expected, "clicks and values stay"


def test_navigation_is_never_redirected():
    pages = ["library", "listen", "train"]
    assert [page_of(message) for message in requests_of(*(("in", request(page)) for page in pages))] == pages


@pytest.mark.parametrize("shown", [new_session("playlist"), navigation("playlist")])
@pytest.mark.parametrize("from_page", ["playlist", "listen"])
def test_page_opened_by_script_is_current(shown, from_page):
    sent = [("in", request("listen")), ("out", shown), ("in", request(from_page, click="save"))]
    assert page_of(requests_of(*sent)[-1]) == "playlist"


def test_run_of_fragment_changes_no_page():
    sent = [("in", request("library")), ("out", new_session("listen", "queue"))]
    assert page_of(requests_of(*sent, ("in", request("library", click="add")))[-1]) == "library"


def test_first_request_and_broken_messages_pass_unchanged():
    messages = [request("", click="play"), b"\xff\xff\xff", BackMsg(app_heartbeat=True).SerializeToString()]
    assert requests_of(("out", navigation("listen")), *(("in", message) for message in messages)) == messages
