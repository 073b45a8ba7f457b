"""The stored messages that requests name, as they reach Streamlit."""

import asyncio

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from musicsim.ui.base.page_messages import STORED_RUNS, MessageCache


def request(*names) -> BackMsg:
    message = BackMsg()
    message.rerun_script.cached_message_hashes.extend(names)
    message.rerun_script.widget_states.widgets.add(id="number", int_value=3)
    return message


def element(name, *, is_cacheable=True) -> ForwardMsg:
    message = ForwardMsg(hash=name)
    message.metadata.cacheable = is_cacheable
    message.delta.new_element.text.body = "drawn"
    return message


def end(status=ForwardMsg.FINISHED_SUCCESSFULLY) -> ForwardMsg:
    return ForwardMsg(script_finished=status)


def receive_after(sent: list[ForwardMsg], message: bytes) -> bytes:
    """Return a page's message as the app receives it after the app has sent others."""

    async def receive():
        return {"type": "websocket.receive", "bytes": message}

    async def ignore(message):
        pass

    received = []

    async def app(scope, receive, send):
        for shown in sent:
            await send({"type": "websocket.send", "bytes": shown.SerializeToString()})
        received.append((await receive())["bytes"])

    asyncio.run(MessageCache(app)({"type": "websocket"}, receive, ignore))
    return received[0]


def names_after(*sent: ForwardMsg, names=("map",)) -> list[str]:
    received = receive_after(list(sent), request(*names).SerializeToString())
    return list(BackMsg.FromString(received).rerun_script.cached_message_hashes)


def test_messages_sent_before_can_be_named():
    assert names_after(element("map"), end(), element("list"), end(), names=("list", "map")) == ["list", "map"]


def test_messages_of_other_connections_are_removed_and_the_rest_stays():
    received = receive_after(
        [element("map"), element("text", is_cacheable=False)], request("map", "text", "old").SerializeToString()
    )
    assert BackMsg.FromString(received) == request("map")


@pytest.mark.parametrize("status", [ForwardMsg.FINISHED_SUCCESSFULLY, ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY])
def test_message_is_removed_well_before_the_browser_deletes_it(status):
    left = [n for n in range(2 * STORED_RUNS) if names_after(element("map"), *[end(status)] * n)]
    assert left == list(range(len(left)))
    assert 2 < len(left) <= STORED_RUNS - 5


def test_reference_makes_message_last():
    ends = [end()] * (STORED_RUNS // 2)
    assert names_after(element("map"), *ends, ForwardMsg(ref_hash="map"), *ends) == ["map"]


def test_interrupted_run_is_not_counted():
    interrupted = end(ForwardMsg.FINISHED_EARLY_FOR_RERUN)
    assert names_after(element("map"), *[interrupted] * (2 * STORED_RUNS)) == ["map"]


@pytest.mark.parametrize("message", [b"\xff\xff\xff", BackMsg(app_heartbeat=True).SerializeToString()])
def test_other_messages_pass_unchanged(message):
    assert receive_after([], message) == message
