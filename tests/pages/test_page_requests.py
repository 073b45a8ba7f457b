"""The requests of pages, as they reach Streamlit."""

import asyncio

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from musicsim.ui.base import page_requests
from musicsim.ui.base.page_requests import PageRequests
from tests.pages.page_server import FIRST, LAST, NEW, run_server
from tests.waiting import settled

EARLY = ForwardMsg.FINISHED_EARLY_FOR_RERUN
FRAGMENT_DONE = ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY


def request(click="", *, page="", fragment="", number=3, **texts: str) -> bytes:
    message = BackMsg()
    message.rerun_script.page_script_hash, message.rerun_script.fragment_id = page, fragment
    if click:
        message.rerun_script.widget_states.widgets.add(id=click, trigger_value=True)
    message.rerun_script.widget_states.widgets.add(id="number", int_value=number)
    for name, value in texts.items():
        message.rerun_script.widget_states.widgets.add(id=name, string_value=value)
    return message.SerializeToString()


def name_of(message: bytes) -> str:
    return BackMsg.FromString(message).rerun_script.widget_states.widgets[0].id


def page_of(message: bytes) -> str:
    return BackMsg.FromString(message).rerun_script.page_script_hash


def start(*fragments, page="listen") -> ForwardMsg:
    message = ForwardMsg()
    message.new_session.page_script_hash = page
    message.metadata.run.fragment_ids.extend(fragments)
    return message


def navigation(page) -> ForwardMsg:
    message = ForwardMsg()
    message.navigation.page_script_hash = page
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

        await PageRequests(app)({"type": "websocket"}, sent.get, ignore)

    asyncio.run(follow())
    return received


def names_after(*messages: ForwardMsg | bytes) -> list[str]:
    return [name_of(message) for message in received_after(*messages)]


WHOLE, QUEUE, BAR = request("page"), request("queue", fragment="listen"), request("bar", fragment="progress")


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
    sent = [WHOLE, start(), navigation("listen"), QUEUE, request("click"), BAR]
    assert names_after(*sent) == ["page", "queue", "click"]
    assert names_after(*sent, end()) == ["page", "queue", "click", "bar"]


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

    asyncio.run(PageRequests(app)({"type": "websocket"}, gone, None))


@pytest.mark.parametrize("late", [{"fragment": "queue"}, {"click": "play"}, {"fragment": "queue", "click": "play"}])
def test_late_request_runs_all_of_new_page(late):
    moved = received_after(start(), end(), request(page="library"), request(page="listen", **late))[-1]
    expected = request(page="library", click=late.get("click", ""))
    assert BackMsg.FromString(moved) == BackMsg.FromString(expected), "clicks and values stay"


@pytest.mark.parametrize("late", [{"number": 4}, {"text": "b"}, {"number": 4, "text": "b"}])
def test_late_change_runs_new_page(late):
    shown = [start(), end(), request(page="listen", text="a"), request(page="library")]
    moved = received_after(*shown, request(page="listen", **late))[-1]
    assert BackMsg.FromString(moved) == BackMsg.FromString(request(page="library", **late)), "values stay"


def test_late_value_of_component_runs_new_page():
    late = BackMsg.FromString(request(page="listen"))
    late.rerun_script.widget_states.widgets.add(id="component", json_value="{}")
    assert pages_after(start(), request(page="library"), late.SerializeToString())[-1] == "library"


def widget_of(script, name) -> ForwardMsg:
    message = ForwardMsg()
    message.metadata.active_script_hash = script
    message.delta.new_element.text_input.id = name
    return message


@pytest.mark.parametrize(("owner", "shown"), [("listen", "library"), ("frame", "listen")])
def test_first_value_of_widget_of_left_page_runs_new_page(owner, shown):
    begun = start()
    begun.new_session.main_script_hash = "frame"
    widget = widget_of(owner, "search")
    assert pages_after(begun, widget, end(), request(page="library"), request(page="listen", search="a"))[-1] == shown


def pages_after(*messages: ForwardMsg | bytes) -> list[str]:
    return [page_of(message) for message in received_after(*messages)]


def test_navigation_is_never_redirected():
    pages = ["library", "listen", "train"]
    assert pages_after(request(page="train", text="a"), *(request(page=page) for page in pages)) == ["train", *pages]


@pytest.mark.parametrize("shown", [start(page="playlist"), navigation("playlist")])
@pytest.mark.parametrize("from_page", ["playlist", "listen"])
def test_page_opened_by_script_is_current(shown, from_page):
    assert pages_after(request(page="listen"), shown, request("save", page=from_page))[-1] == "playlist"


def test_run_of_fragment_changes_no_page():
    sent = [start(page="listen"), request(page="library"), start("queue", page="listen")]
    assert pages_after(*sent, request("add", page="library")) == ["library", "library"]


def test_first_request_passes_unchanged():
    first = request("play")
    assert received_after(navigation("listen"), first) == [first]


LISTEN, LIBRARY = start(page="listen"), start(page="library")
NEXT = request(page="library")


@pytest.mark.parametrize("n_lost", [1, 2])
def test_lost_change_of_page_is_repeated(n_lost):
    again = [LISTEN, navigation("listen"), end()] * n_lost
    assert pages_after(LISTEN, NEXT, *again) == ["library"] * (1 + n_lost)
    late = request("add", page="listen")
    assert pages_after(LISTEN, NEXT, *again, late)[-1] == "library"
    assert received_after(LISTEN, NEXT, *again, LIBRARY, navigation("library"), LISTEN) == [NEXT] * (1 + n_lost)


@pytest.mark.parametrize("no_loss", [start("queue", page="listen"), end(EARLY), navigation("listen"), LIBRARY])
def test_change_of_page_is_not_repeated_without_a_loss(no_loss):
    assert received_after(LISTEN, NEXT, no_loss) == [NEXT]


def test_old_page_may_start_late():
    again = request(page="listen")
    assert received_after(LISTEN, again, NEXT, LISTEN) == [again, NEXT], "the start that the browser requested"
    assert received_after(LISTEN, again, NEXT, LISTEN, LISTEN) == [again, NEXT, NEXT]


def test_change_back_replaces_the_change():
    back = request(page="listen")
    assert received_after(LISTEN, NEXT, back, LISTEN) == [NEXT, back]


def test_browser_gets_all_of_the_page_before_its_end(tmp_path):
    assert run_server("elements_of_second_run", "draw", tmp_path) == str([FIRST, LAST])


def test_rerun_does_not_lose_a_change_of_page(tmp_path):
    shown = run_server("pages_shown", "draw_pages", tmp_path)
    assert NEW in shown, "Streamlit may drop elements of interrupted runs of the old page"


@pytest.mark.parametrize("scene", ["pages_shown_after_change", "pages_shown_after_first_text"])
def test_late_value_does_not_return_to_old_page(scene, tmp_path):
    assert run_server(scene, "draw_pages", tmp_path) == str([NEW])


@pytest.mark.parametrize("page", ["count_clicks", "count_clicks_in_fragment"])
def test_request_for_page_does_not_end_a_callback(page, tmp_path):
    assert run_server("clicks_counted", page, tmp_path) == "['1 clicks']"


CLICKS = [
    pytest.param(request("click"), id="in page"),
    pytest.param(request("click", fragment="queue"), id="in fragment"),
]
BODY = ForwardMsg()
BODY.delta.fragment_id = "queue"


@pytest.mark.parametrize("click", CLICKS)
@pytest.mark.parametrize("before", [(), (start(),), (start(), ForwardMsg(page_info_changed={})), (BODY,)])
def test_page_waits_for_callbacks_of_clicks(click, before):
    assert names_after(click, *before, WHOLE) == ["click"]


@pytest.mark.parametrize("click", CLICKS)
@pytest.mark.parametrize("after", [BODY, navigation("listen"), end(), end(EARLY)])
def test_page_runs_after_callbacks_of_clicks(click, after):
    assert names_after(click, start("queue"), WHOLE, after) == ["click", "page"]


def test_fragment_does_not_wait_for_callbacks():
    assert names_after(request("click", fragment="queue"), BAR) == ["click", "bar"]


def test_page_waits_for_callbacks_only_for_a_while(monkeypatch):
    monkeypatch.setattr(page_requests, "CALLBACKS_S", 0.0)
    assert names_after(request("click"), WHOLE) == ["click", "page"]


def element(widget, *, fragment="") -> ForwardMsg:
    message = ForwardMsg()
    message.delta.fragment_id = fragment
    message.delta.new_element.bidi_component.id = widget
    return message


def sends(fragment, *, event="", **states: str) -> bytes:
    """Return a request of a fragment with the values of components, and an event of one of them."""
    message = BackMsg()
    message.rerun_script.fragment_id = fragment
    for name, value in states.items():
        message.rerun_script.widget_states.widgets.add(id=name, json_value=value)
    if event:
        message.rerun_script.widget_states.widgets.add(
            id=f"$$STREAMLIT_INTERNAL_KEY_{event}__events", json_trigger_value="play"
        )
    return message.SerializeToString()


def fragments_after(*messages: ForwardMsg | bytes) -> list[str]:
    shown = [start(), element("list", fragment="queue"), element("box", fragment="search"), element("map"), end()]
    return [BackMsg.FromString(message).rerun_script.fragment_id for message in received_after(*shown, *messages)]


@pytest.mark.parametrize(
    "sent",
    [
        sends("queue", event="list", box="a"),
        sends("queue", event="list", map="a"),
        sends("search", event="list", box="a"),
        sends("search", event="map"),
    ],
    ids=["event and text", "event and map", "text and event", "event of the page"],
)
def test_page_runs_if_several_parts_of_it_changed(sent):
    assert fragments_after(sent) == [""]


@pytest.mark.parametrize(
    "sent",
    [sends("queue"), sends("queue", event="list"), sends("search", box="a"), sends("queue", unknown="a")],
    ids=["nothing", "event", "text", "unknown widget"],
)
def test_only_fragment_runs_if_nothing_else_changed(sent):
    assert fragments_after(sent) == [BackMsg.FromString(sent).rerun_script.fragment_id]


def test_known_values_are_no_change():
    first = sends("search", box="a")
    assert fragments_after(first, sends("queue", event="list", box="a")) == ["search", "queue"]
    assert fragments_after(first, sends("queue", event="list", box="b")) == ["search", ""]


def test_widgets_of_another_page_are_forgotten():
    assert fragments_after(start(page="library"), end(), sends("queue", box="a")) == ["queue"]
