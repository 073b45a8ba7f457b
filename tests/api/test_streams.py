"""Floods over a page's WebSocket are delayed, and messages that pages never send are dropped."""

import asyncio

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from musicsim.api import streams
from musicsim.api.budgets import Budget, Budgets
from musicsim.api.streams import TRY_AGAIN_LATER, MessageDialect, Paces, Stream
from musicsim.ui.base.page_messages import filter_message, is_of_a_page, is_rerun
from tests.waiting import PATIENCE_S, settled

BEGUN, FINISHED = ForwardMsg(), ForwardMsg()
BEGUN.new_session.main_script_path = "/opt/secret/shell.py"
FINISHED.script_finished = ForwardMsg.FINISHED_SUCCESSFULLY
BEAT = BackMsg(app_heartbeat=True).SerializeToString()


def asked(value: int) -> bytes:
    """Return a page's request to run its script, with the value of a slider."""
    message = BackMsg()
    message.rerun_script.widget_states.widgets.add(id="slider").int_value = value
    return message.SerializeToString()


class Page:
    """A page that sends messages, and an app that receives those that pass."""

    def __init__(self, address="192.0.2.1", paces=None):
        self.sent = asyncio.Queue()
        self.shown = []
        dialect = MessageDialect(is_of_a_page, is_rerun, filter_message)
        self.stream = Stream(self.sent.get, self._show, dialect, paces or Paces(), Budgets(3000), address)

    async def _show(self, message):
        self.shown.append(message)

    def send(self, *messages: bytes) -> None:
        for message in messages:
            self.sent.put_nowait({"type": "websocket.receive", "bytes": message})

    def leave(self) -> None:
        self.sent.put_nowait({"type": "websocket.disconnect", "code": 1001})

    async def say(self, message: ForwardMsg) -> None:
        await self.stream.send({"type": "websocket.send", "bytes": message.SerializeToString()})

    async def taken(self) -> list[bytes]:
        """Return the messages that pass without a wait."""
        found: list[bytes] = []

        async def take() -> None:
            while (message := await self.stream.receive())["type"] == "websocket.receive":
                found.append(message["bytes"])

        taking = asyncio.ensure_future(take())
        await settled(10_000)
        taking.cancel()
        return found


@pytest.fixture
def no_refill(monkeypatch):
    """Allowances that do not refill during a test, and messages that are free."""
    monkeypatch.setattr(streams, "RERUNS_PER_S", 1e-9)
    monkeypatch.setattr(streams, "RERUNS_OF_ALL_FULL_IN_S", 1e12)
    monkeypatch.setattr(streams, "MESSAGES", 1e9)
    monkeypatch.setattr(streams, "MESSAGES_OF_ALL", 1e9)


def test_flood_of_requests_is_throttled_and_not_read_ahead(no_refill):
    async def flood() -> tuple[list[bytes], int]:
        page = Page()
        page.send(*(asked(i) for i in range(3_000)))
        return await page.taken(), page.sent.qsize()

    taken, n_left = asyncio.run(flood())
    assert taken == [asked(i) for i in range(60)]
    assert n_left == 3_000 - 61, "one message waits, and the others are not read"


def test_requests_pass_in_order_as_the_allowance_refills(monkeypatch):
    monkeypatch.setattr(streams, "RERUNS", 2.0)
    monkeypatch.setattr(streams, "RERUNS_PER_S", 200.0)

    async def flood() -> list[bytes]:
        page = Page()
        page.send(*(asked(i) for i in range(20)))
        return [(await page.stream.receive())["bytes"] for _ in range(20)]

    assert asyncio.run(flood()) == [asked(i) for i in range(20)]


def test_messages_are_limited_in_number_and_size(monkeypatch):
    monkeypatch.setattr(streams, "MESSAGES", 30.0)
    monkeypatch.setattr(streams, "_MESSAGES_PER_S", 1e-9)

    async def flood(messages: list[bytes]) -> int:
        page = Page()
        page.send(*messages)
        return len(await page.taken())

    large = BackMsg()
    large.rerun_script.query_string = 90_000 * "x"
    assert asyncio.run(flood(100 * [BEAT])) == 29  # each is a message and some bytes
    assert asyncio.run(flood(100 * [large.SerializeToString()])) == 2  # each counts as ten and a bit


def test_messages_that_pages_never_send_are_dropped():
    async def send() -> list[bytes]:
        page = Page()
        page.send(b"\xff\xff", BackMsg(clear_cache=True).SerializeToString(), BEAT, asked(1))
        return await page.taken()

    assert asyncio.run(send()) == [BEAT, asked(1)]


def test_pages_of_one_address_share_allowance(no_refill, monkeypatch):
    monkeypatch.setattr(streams, "RERUNS_OF_ALL", 100.0)

    async def flood() -> list[int]:
        paces, found = Paces(), []
        for address in ("192.0.2.1", "192.0.2.1", "192.0.2.2"):
            page = Page(address, paces)
            page.send(*(asked(i) for i in range(1_000)))
            found.append(len(await page.taken()))
        return found

    assert asyncio.run(flood()) == [60, 40, 60]


def test_page_can_leave_while_it_waits(no_refill, monkeypatch):
    monkeypatch.setattr(streams, "RERUNS", 1.0)
    left = {"type": "websocket.disconnect", "code": TRY_AGAIN_LATER}

    async def leave(*messages: bytes) -> tuple[dict, list[dict]]:
        page = Page()
        page.send(*messages)
        for _ in messages[1:]:
            await page.stream.receive()
        coming = asyncio.ensure_future(page.stream.receive())
        await settled()
        page.stream.leave()
        page.stream.leave()
        message = await asyncio.wait_for(coming, PATIENCE_S)
        await page.say(FINISHED)
        assert await page.stream.receive() == message
        return message, page.shown

    assert asyncio.run(leave()) == (left, []), "while it is silent"
    assert asyncio.run(leave(asked(1), asked(2))) == (left, []), "while a request waits"


def test_page_that_closes_its_connection_is_not_told_to_return():
    async def close() -> dict:
        page = Page()
        page.leave()
        return await page.stream.receive()

    assert asyncio.run(close()) == {"type": "websocket.disconnect", "code": 1001}


def test_messages_to_page_contain_no_local_path():
    async def say() -> list[dict]:
        page = Page()
        for message in (BEGUN, FINISHED):
            await page.say(message)
        await page.stream.send({"type": "websocket.close"})
        return page.shown

    begun, finished, closed = asyncio.run(say())
    assert b"secret" not in begun["bytes"]
    assert ForwardMsg.FromString(begun["bytes"]).WhichOneof("type") == "new_session"
    assert finished["bytes"] == FINISHED.SerializeToString()
    assert closed == {"type": "websocket.close"}


def test_overdrawn_budget_refills_before_next_use(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("musicsim.api.budgets.time.monotonic", lambda: now[0])
    budget = Budget(10, 2)
    budget.charge(10)
    budget.charge(4)
    assert budget.wait_s(1) == 2.5
    now[0] = 2.5
    assert budget.spend(1) == 0
    assert budget.spend(100) == 5, "a large cost is the whole allowance at most"
