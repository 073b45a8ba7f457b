"""Middleware that gives Streamlit a page's requests at the right time and for the right page."""

import time
from collections import deque
from typing import NamedTuple

from starlette.types import Message, Receive, Send
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState

from musicsim.api.inbox import Inbox
from musicsim.ui.base.page_messages import MAX_RUN_BYTES, PageRerun, is_end_of_run, rerun_of, widget_of
from musicsim.ui.base.page_socket import PageSocket

_AFTER_CALLBACKS = {"page_config_changed", "navigation", "script_finished"}
CALLBACKS_S = 2.0
"""A request to run the page waits no longer than this for the callbacks of earlier clicks."""


class PageRequests(PageSocket):
    """ASGI middleware that holds, redirects or repeats requests that Streamlit 1.67 would misunderstand.

    - When a fragment's run starts, Streamlit drops the fragment's elements that the page's run has not sent yet, but
      not the end of that run. The browser then removes these elements and builds them again; the map loses its zoom.
      Requests for fragments are therefore held while their page runs.
    - The browser learns of a new page only when its script starts. Until then, clicks, changed values and fragments
      request a rerun of the old page. Streamlit would return to that page, or run its fragments, for which the browser
      removes all elements of the new page. These requests are redirected to the new page.
    - If components of several fragments send values at the same time, the browser requests only one of the fragments.
      The page then runs instead.
    - A request to run the page also ends a callback, at its next access to the session's state, and the click has no
      effect. Such a request is held until the callbacks of earlier clicks have ended.
    - If a page calls ``st.rerun()`` while a request for another page waits, Streamlit runs the old page again instead.
      The request for the other page is then repeated.
    """

    max_bytes = MAX_RUN_BYTES

    def follow(self, receive: Receive, _: Send) -> "_Requests":
        return _Requests(receive)


class _Request(NamedTuple):
    message: Message
    has_clicks: bool
    is_of_fragment: bool


class _Requests:
    def __init__(self, receive: Receive) -> None:
        self._inbox = Inbox(receive)
        self._others: deque[Message] = deque()
        self._due: deque[_Request] = deque()
        self._held: list[_Request] = []
        self._calls_until = 0.0  # time at which callbacks of a click are expected to have ended
        self._has_run_begun = False  # since the last click
        self._is_page_running = False
        self._page = ""  # the page last requested by the browser or shown to it
        self._fragments: dict[str, str] = {}  # fragment of each widget on the page; empty for the page itself
        self._page_widgets: set[str] = set()  # of all pages that were shown, without the frame around them
        self._frame = ""  # the script of the frame
        self._states: dict[str, WidgetState] = {}  # the last values of the page's widgets
        self._change: _Request | None = None  # the request for this page, until its script starts
        self._is_start_due = False  # of a page that was requested
        self._is_old_start_due = False  # of a page that was requested before the change

    async def receive(self) -> Message:
        while (wait_s := self._wait_s()) != 0:
            message = await self._inbox.read(wait_s)
            if message is not None:
                self._sort(message)
        if self._others:
            return self._others.popleft()
        request = self._due.popleft()
        if request.has_clicks:
            self._calls_until, self._has_run_begun = time.monotonic() + CALLBACKS_S, False
        return request.message

    def _wait_s(self) -> float | None:
        """Return the seconds until a message may pass, or None without messages."""
        if not self._others and not self._due:
            return None
        if self._others or self._due[0].is_of_fragment:
            return 0.0
        return max(0.0, self._calls_until - time.monotonic())

    def note(self, sent: ForwardMsg) -> None:
        """Follow the page's runs by the messages to the browser."""
        if self._calls_until:
            self._note_callbacks(sent)
        if widget := widget_of(sent):
            self._fragments[widget] = sent.delta.fragment_id
            if sent.metadata.active_script_hash != self._frame:
                self._page_widgets.add(widget)
        if sent.metadata.run.fragment_ids:
            return
        kind = sent.WhichOneof("type")
        if kind == "new_session":
            self._frame = sent.new_session.main_script_hash
            self._note_start(sent.new_session.page_script_hash)
        elif kind == "navigation" and self._change is None:
            self._page = sent.navigation.page_script_hash
        elif is_end_of_run(sent):
            self._is_page_running = False
            self._release()
            self._inbox.wake()

    def _note_callbacks(self, sent: ForwardMsg) -> None:
        """Notice the first message after the callbacks of a click, which Streamlit calls after a run has begun."""
        kind = sent.WhichOneof("type")
        if kind == "new_session":
            self._has_run_begun = True
        elif self._has_run_begun and (kind in _AFTER_CALLBACKS or sent.delta.fragment_id):
            self._calls_until = 0.0
            self._inbox.wake()

    def close(self) -> None:
        self._inbox.close()

    def _note_start(self, page: str) -> None:
        self._is_page_running, self._is_start_due = True, False
        if page != self._page:
            self._fragments.clear()
        if self._change is None or page == self._page:
            self._page, self._change = page, None
        elif self._is_old_start_due:
            self._is_old_start_due = False
        else:
            self._due.append(self._change)
            self._inbox.wake()

    def _sort(self, message: Message) -> None:
        sent = rerun_of(message["bytes"]) if message.get("bytes") else None
        if sent is None:
            self._others.append(message)
            return
        rerun = sent.move(self._page, self._states, self._page_widgets)
        if rerun.is_of_fragment and any(self._is_elsewhere(name, rerun) for name in rerun.find_changes(self._states)):
            rerun = rerun.widen(rerun.page)
        # the navigation does not send the values of the page that the user leaves, whose late requests contain them
        self._states = rerun.states if rerun.page == self._page else self._states | rerun.states
        if rerun is not sent:
            message = {**message, "bytes": rerun.to_bytes()}
        request = _Request(message, rerun.has_clicks, rerun.is_of_fragment)
        if not rerun.is_of_fragment:
            self._request_page(rerun, request)
        elif self._is_page_running:
            self._held.append(request)
        else:
            self._due.append(request)

    def _is_elsewhere(self, widget: str, rerun: PageRerun) -> bool:
        """Return True if a widget is known to be outside of the fragment that a request names."""
        return self._fragments.get(widget, rerun.fragment) != rerun.fragment

    def _request_page(self, rerun: PageRerun, request: _Request) -> None:
        self._is_page_running = True
        # the order of requests stays; Streamlit runs the page once, with the clicks of all
        has_clicks = request.has_clicks or any(held.has_clicks for held in self._held)
        self._due.extend(held._replace(has_clicks=False) for held in self._held)
        self._held.clear()
        self._due.append(request._replace(has_clicks=has_clicks))
        if rerun.page and rerun.page != self._page:
            self._fragments.clear()
            self._change = request if self._page else None
            self._page, self._is_old_start_due = rerun.page, self._is_start_due
        self._is_start_due = True

    def _release(self) -> None:
        self._due.extend(self._held)
        self._held.clear()
