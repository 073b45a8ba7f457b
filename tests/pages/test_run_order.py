"""The order of runs: a fragment's run starts only after the run of its page was sent."""

import asyncio
import subprocess
import sys

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from musicsim.ui.base.run_order import RunOrder
from tests.pages.fragment_server import FIRST, LAST, PAGE
from tests.waiting import PATIENCE_S, settled

EARLY = ForwardMsg.FINISHED_EARLY_FOR_RERUN
FRAGMENT_DONE = ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY


def request(name, fragment="") -> bytes:
    message = BackMsg()
    message.rerun_script.fragment_id = fragment
    message.rerun_script.widget_states.widgets.add(id=name, trigger_value=True)
    return message.SerializeToString()


def name_of(message: bytes) -> str:
    (click,) = BackMsg.FromString(message).rerun_script.widget_states.widgets
    return click.id


def start(*fragments) -> ForwardMsg:
    message = ForwardMsg()
    message.new_session.page_script_hash = "listen"
    message.metadata.run.fragment_ids.extend(fragments)
    return message


def end(status=ForwardMsg.FINISHED_SUCCESSFULLY, *fragments) -> ForwardMsg:
    message = ForwardMsg(script_finished=status)
    message.metadata.run.fragment_ids.extend(fragments)
    return message


STOP = BackMsg(stop_script=True).SerializeToString()


def received_after(*messages: ForwardMsg | bytes) -> list[bytes]:
    """Send messages to the browser (ForwardMsg) and to the app (bytes) in order; return those that reach the app."""
    received = []

    async def follow() -> None:
        sent = asyncio.Queue()

        async def ignore(message):
            pass

        async def app(scope, receive, send):
            async def read() -> None:
                while True:
                    received.append((await receive())["bytes"])

            reading = asyncio.ensure_future(read())
            for message in messages:
                if isinstance(message, bytes):
                    sent.put_nowait({"type": "websocket.receive", "bytes": message})
                else:
                    await send({"type": "websocket.send", "bytes": message.SerializeToString()})
                await settled()
            reading.cancel()

        await RunOrder(app)({"type": "websocket"}, sent.get, ignore)

    asyncio.run(follow())
    return received


def names_after(*messages: ForwardMsg | bytes) -> list[str]:
    return [name_of(message) for message in received_after(*messages)]


WHOLE, QUEUE, BAR = request("page"), request("queue", "listen"), request("bar", "progress")


@pytest.mark.parametrize("beginning", [WHOLE, start()], ids=["requested", "started by the script"])
def test_fragment_waits_for_end_of_page(beginning):
    n_pages = int(isinstance(beginning, bytes))
    assert len(received_after(beginning, QUEUE, BAR)) == n_pages
    assert names_after(beginning, QUEUE, BAR, end())[n_pages:] == ["queue", "bar"]


@pytest.mark.parametrize("no_end", [end(EARLY), end(FRAGMENT_DONE, "listen"), start("listen"), start()])
def test_other_messages_do_not_end_the_page(no_end):
    assert names_after(WHOLE, QUEUE, no_end) == ["page"]


@pytest.mark.parametrize("before", [(), (WHOLE, end()), (start("listen"),), (end(),)])
def test_fragment_passes_while_no_page_runs(before):
    assert names_after(*before, QUEUE)[-1] == "queue"


def test_requests_keep_their_order():
    click = request("click")
    assert names_after(WHOLE, QUEUE, click, BAR) == ["page", "queue", "click"]
    assert names_after(WHOLE, QUEUE, click, BAR, end()) == ["page", "queue", "click", "bar"]


def test_stop_does_not_wait():
    assert received_after(WHOLE, QUEUE, STOP) == [WHOLE, STOP]


@pytest.mark.parametrize("message", [b"\xff\xff\xff", BackMsg(app_heartbeat=True).SerializeToString()])
def test_other_messages_pass_unchanged(message):
    assert received_after(WHOLE, message) == [WHOLE, message]


def test_end_of_connection_passes():
    async def gone():
        return {"type": "websocket.disconnect"}

    async def app(scope, receive, send):
        assert await receive() == {"type": "websocket.disconnect"}

    asyncio.run(RunOrder(app)({"type": "websocket"}, gone, None))


def test_browser_gets_all_of_the_page_before_its_end(tmp_path):
    script = tmp_path / "page.py"
    script.write_text(PAGE)
    code = f"from tests.pages.fragment_server import *; print(elements_of_second_run({str(script)!r}))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    assert ran.stdout.strip() == str([FIRST, LAST])
