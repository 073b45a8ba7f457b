"""Floods over a page's WebSocket: runs stay few, no click is lost, and the last state wins."""

import asyncio
import json

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from musicsim.api import streams
from musicsim.api.budgets import Budget, Budgets
from musicsim.api.streams import Dialect, Paces, Stream
from musicsim.ui.base.page_messages import filter_message, is_of_a_page, rerun_of
from tests.waiting import PATIENCE_S, settled

BEGUN, FINISHED, EARLY = ForwardMsg(), ForwardMsg(), ForwardMsg()
BEGUN.new_session.main_script_path = "/opt/secret/shell.py"
FINISHED.script_finished = ForwardMsg.FINISHED_SUCCESSFULLY
EARLY.script_finished = ForwardMsg.FINISHED_EARLY_FOR_RERUN


def asked(*, page="", fragment="", **widgets) -> bytes:
    """Return a request of a page: values are numbers, and clicks are texts."""
    message = BackMsg()
    message.rerun_script.page_script_hash, message.rerun_script.fragment_id = page, fragment
    for name, value in widgets.items():
        state = message.rerun_script.widget_states.widgets.add(id=name)
        if isinstance(value, int):
            state.int_value = value
        else:
            state.json_trigger_value = value
    return message.SerializeToString()


def values(message: bytes) -> dict[str, object]:
    """Return values of the widgets in a request."""
    states = BackMsg.FromString(message).rerun_script.widget_states.widgets
    return {state.id: getattr(state, state.WhichOneof("value")) for state in states}


class Page:
    """A page that sends messages, and an app that receives the requests that pass."""

    def __init__(self, address="192.0.2.1", paces=None):
        self.sent = asyncio.Queue()
        self.shown = []
        dialect = Dialect(is_of_a_page, rerun_of, filter_message)
        requests = Budgets(3000)
        self.stream = Stream(self.sent.get, self._show, dialect, paces or Paces(), requests, address)

    async def _show(self, message):
        self.shown.append(message)

    def send(self, *messages: bytes) -> None:
        for message in messages:
            self.sent.put_nowait({"type": "websocket.receive", "bytes": message})

    def leave(self) -> None:
        self.sent.put_nowait({"type": "websocket.disconnect"})

    async def say(self, message: ForwardMsg) -> None:
        await self.stream.send({"type": "websocket.send", "bytes": message.SerializeToString()})

    async def next(self) -> bytes:
        return (await self.stream.receive())["bytes"]

    async def runs(self) -> list[dict[str, object]]:
        """Receive requests until the page leaves, and run the script for each."""
        taken = []
        while (message := await self.stream.receive())["type"] == "websocket.receive":
            taken.append(values(message["bytes"]))
            await self.say(BEGUN)
            await self.say(FINISHED)
        return taken


@pytest.fixture
def no_refill(monkeypatch):
    """Allowances that do not refill during a test, and messages that are free."""
    monkeypatch.setattr(streams, "RERUNS_PER_S", 1e-9)
    monkeypatch.setattr(streams, "MESSAGES", 1e9)
    monkeypatch.setattr(streams, "MESSAGES_OF_ALL", 1e9)


@pytest.mark.long
@pytest.mark.parametrize("n", [3_000, 30_000])
def test_flood_of_requests_is_throttled(no_refill, n):
    async def flood() -> list[dict[str, object]]:
        page = Page()
        page.send(*(asked(slider=i) for i in range(n)))
        page.leave()
        return await page.runs()

    runs = asyncio.run(flood())
    assert [run["slider"] for run in runs] == list(range(60))


def test_last_state_of_flood_wins(no_refill, monkeypatch):
    monkeypatch.setattr(streams, "RERUNS_PER_S", 1000.0)
    monkeypatch.setattr(streams, "RERUNS", 2.0)

    async def flood() -> list[int]:
        page = Page()
        page.send(*(asked(slider=i) for i in range(3_000)))
        seen = []
        while not seen or seen[-1] != 2_999:
            seen.append(values(await page.next())["slider"])
        return seen

    seen = asyncio.run(flood())
    assert seen == sorted(seen)


def test_quick_clicks_are_never_lost():
    clicks = [json.dumps([{"event": "action", "value": i}]) for i in range(30)]

    async def click() -> list[object]:
        page = Page()
        page.send(*(asked(hits=click, slider=3) for click in clicks))
        taken = []
        while len(taken) < len(clicks):
            taken.append(values(await page.next())["hits"])
            await page.say(BEGUN)
            await page.say(FINISHED)
        return taken

    assert asyncio.run(click()) == clicks


def test_click_waits_until_previous_click_is_handled(monkeypatch):
    """Otherwise Streamlit would replace a pending click on the same component."""
    monkeypatch.setattr(streams, "TAKEN_S", 1e6)
    monkeypatch.setattr(streams, "CLICK_S", 1e6)

    async def click() -> None:
        page = Page()
        page.send(asked(hits="one"), asked(hits="two"))
        assert values(await page.next()) == {"hits": "one"}
        coming = asyncio.ensure_future(page.next())
        for said in (FINISHED, EARLY, BEGUN, EARLY):  # the first two are of an earlier run
            await page.say(said)
            await settled()
            assert not coming.done()
        await page.say(BEGUN)
        await page.say(FINISHED)
        assert values(await coming) == {"hits": "two"}

    asyncio.run(click())


def test_click_does_not_wait_forever_for_run(monkeypatch):
    monkeypatch.setattr(streams, "TAKEN_S", 0.01)
    monkeypatch.setattr(streams, "CLICK_S", 0.01)

    async def click() -> list[dict[str, object]]:
        page = Page()
        page.send(asked(hits="one", fragment="gone"), asked(hits="two"), asked(hits="three"))
        first, second = values(await page.next()), values(await page.next())
        await page.say(BEGUN)  # a long run
        return [first, second, values(await page.next())]

    assert asyncio.run(click()) == [{"hits": "one"}, {"hits": "two"}, {"hits": "three"}]


def joined(older: bytes, newer: bytes) -> dict[str, object] | None:
    both = rerun_of(older).join(rerun_of(newer))
    return None if both is None else values(both.to_bytes())


def test_requests_are_merged_unless_click_is_lost():
    assert joined(asked(a=1, b=2), asked(a=3)) == {"a": 3}
    assert joined(asked(a=1, hits="one"), asked(a=3)) == {"a": 3, "hits": "one"}
    assert joined(asked(hits="one"), asked(hits="")) == {"hits": "one"}
    assert joined(asked(hits="one"), asked(other="two")) == {"hits": "one", "other": "two"}
    assert joined(asked(hits="one"), asked(hits="two")) is None
    assert joined(asked(hits="one"), asked(page="compare")) is None
    assert joined(asked(a=1), asked(page="compare", b=1)) == {"b": 1}
    assert joined(asked(fragment="x", hits="one"), asked(a=1)) == {"a": 1, "hits": "one"}
    assert joined(asked(fragment="x", a=1), asked(fragment="x", a=2)) == {"a": 2}
    assert joined(asked(a=1), asked(fragment="x", a=2)) is None
    assert joined(asked(fragment="y", a=1), asked(fragment="x", a=2)) is None


def test_merged_request_of_back_button_still_opens_its_address():
    older = BackMsg.FromString(asked(a=1))
    older.rerun_script.is_history_navigation = True
    both = rerun_of(older.SerializeToString()).join(rerun_of(asked(a=2)))
    assert both.message.rerun_script.is_history_navigation
    assert values(both.to_bytes()) == {"a": 2}


def test_endless_clicks_are_not_read_ahead(no_refill, monkeypatch):
    monkeypatch.setattr(streams, "RERUNS", 1.0)

    async def flood() -> int:
        page = Page()
        page.send(*(asked(hits=str(i)) for i in range(1_000)))
        await page.next()
        coming = asyncio.ensure_future(page.next())
        await settled(10_000)
        assert not coming.done()
        coming.cancel()
        return page.sent.qsize()

    assert asyncio.run(flood()) >= 1_000 - 1 - streams.MAX_HELD


def test_other_messages_overtake_waiting_runs(no_refill, monkeypatch):
    monkeypatch.setattr(streams, "RERUNS", 1.0)
    beat = BackMsg(app_heartbeat=True).SerializeToString()

    async def flood() -> list[bytes]:
        page = Page()
        page.send(asked(a=1), asked(a=2), beat, b"\xff\xff", BackMsg(clear_cache=True).SerializeToString(), beat)
        return [await page.next() for _ in range(3)]

    assert asyncio.run(flood()) == [asked(a=1), beat, beat]


def test_pages_of_one_address_share_allowance(no_refill, monkeypatch):
    monkeypatch.setattr(streams, "RERUNS_OF_ALL", 100.0)
    monkeypatch.setattr(streams, "RERUNS_OF_ALL_FULL_IN_S", 1e9)

    async def flood() -> list[int]:
        paces, found = Paces(), []
        for address in ("192.0.2.1", "192.0.2.1", "192.0.2.2"):
            page = Page(address, paces)
            page.send(*(asked(slider=i) for i in range(1_000)))
            page.leave()
            found.append(len(await page.runs()))
        return found

    assert asyncio.run(flood()) == [60, 40, 60]


def test_pages_of_one_address_take_turns(monkeypatch):
    monkeypatch.setattr(streams, "MAX_RUNS", 2)
    monkeypatch.setattr(streams, "RUN_S", 1e6)

    async def crowd() -> None:
        paces = Paces()
        pages = [Page("192.0.2.1", paces) for _ in range(5)]
        for page in pages:
            page.send(asked(a=1))
        runs = [asyncio.ensure_future(page.next()) for page in pages]

        async def begun() -> list[int]:
            await settled()
            return [i for i, run in enumerate(runs) if run.done()]

        assert await begun() == [0, 1]
        other = Page("192.0.2.2", paces)
        other.send(asked(a=1))
        await other.next()
        await pages[1].say(BEGUN)
        assert await begun() == [0, 1]
        await pages[1].say(FINISHED)
        assert await begun() == [0, 1, 2]
        runs[3].cancel()
        pages[3].stream.close()  # it leaves during the wait
        pages[0].stream.close()  # this one leaves during its run
        assert await begun() == [0, 1, 2, 3, 4]
        pages[2].send(asked(a=2))
        await pages[2].next()  # it still gets its turn

    asyncio.run(crowd())


def test_long_run_yields_its_turn(monkeypatch):
    monkeypatch.setattr(streams, "MAX_RUNS", 1)
    monkeypatch.setattr(streams, "RUN_S", 0.01)

    async def crowd() -> None:
        paces = Paces()
        for _ in range(3):
            page = Page("192.0.2.1", paces)
            page.send(asked(a=1))
            await asyncio.wait_for(page.next(), PATIENCE_S)
            await page.say(BEGUN)

    asyncio.run(crowd())


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
