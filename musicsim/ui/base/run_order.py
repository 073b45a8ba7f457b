"""Middleware that starts a fragment's run only after the browser was sent the run of its page."""

from collections import deque

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from musicsim.api.inbox import Inbox
from musicsim.ui.base.page_messages import MAX_RUN_BYTES, is_end_of_run, rerun_of


class RunOrder:
    """ASGI middleware that holds requests for fragments while their page runs.

    When a fragment's run starts, Streamlit drops the fragment's elements that the page's run has not sent yet, but not
    the end of that run. The browser then removes these elements and builds them again. The map, for example, loses its
    zoom.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket":
            return await self._app(scope, receive, send)
        requests = _Requests(receive)

        async def send_and_note(message: Message) -> None:
            await send(message)
            data = message.get("bytes")
            if data and len(data) <= MAX_RUN_BYTES:
                requests.note(ForwardMsg.FromString(data))

        try:
            await self._app(scope, requests.receive, send_and_note)
        finally:
            requests.close()


class _Requests:
    def __init__(self, receive: Receive) -> None:
        self._inbox = Inbox(receive)
        self._due: deque[Message] = deque()
        self._held: list[Message] = []
        self._is_page_running = False

    async def receive(self) -> Message:
        while not self._due:
            message = await self._inbox.read()
            if message is not None:
                self._sort(message)
        return self._due.popleft()

    def note(self, sent: ForwardMsg) -> None:
        """Follow the page's run by the messages to the browser."""
        if sent.metadata.run.fragment_ids:
            return
        if sent.WhichOneof("type") == "new_session":
            self._is_page_running = True
        elif is_end_of_run(sent):
            self._is_page_running = False
            self._release()
            self._inbox.wake()

    def close(self) -> None:
        self._inbox.close()

    def _sort(self, message: Message) -> None:
        rerun = rerun_of(message["bytes"]) if message.get("bytes") else None
        if rerun is not None and rerun.is_of_fragment and self._is_page_running:
            self._held.append(message)
            return
        if rerun is not None and not rerun.is_of_fragment:
            self._is_page_running = True
            self._release()  # the order of requests stays; Streamlit runs the page once, with the clicks of all
        self._due.append(message)

    def _release(self) -> None:
        self._due.extend(self._held)
        self._held.clear()
