"""Middleware that keeps references to messages valid: the server sends them for messages that the browser stores."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from musicsim.ui.base.page_messages import is_end_of_run, rerun_of

STORED_RUNS = 30
"""Number of runs after which the browser deletes a message that was not used again."""
_OFFERED_RUNS = 20  # the rest is a reserve for runs that end between a request and its own run


class MessageCache:
    """ASGI middleware that lets a request name only those stored messages that the browser will still have.

    With each request, the browser names the large messages that it stores, and the server sends references to them.
    If another run ends in between, the browser may have deleted one; it then reports a connection error and stops
    (https://github.com/streamlit/streamlit/issues/15816). The server knows which runs it has ended, so this class
    counts them, and removes from a request the names of messages that are close to deletion.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket":
            return await self._app(scope, receive, send)
        sent_messages = _SentMessages(receive)

        async def note_and_send(message: Message) -> None:
            if message.get("bytes"):
                sent_messages.note(ForwardMsg.FromString(message["bytes"]))
            await send(message)

        await self._app(scope, sent_messages.receive, note_and_send)


class _SentMessages:
    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._n_ended = 0  # runs
        self._last_sent: dict[str, int] = {}  # hash -> number of ended runs when the message was last sent

    async def receive(self) -> Message:
        message = await self._receive()
        data = message.get("bytes")
        return {**message, "bytes": self._remove_old_names(data)} if data else message

    def note(self, message: ForwardMsg) -> None:
        if message.ref_hash:
            self._last_sent[message.ref_hash] = self._n_ended
        elif message.metadata.cacheable:
            self._last_sent[message.hash] = self._n_ended
        elif is_end_of_run(message):
            self._n_ended += 1
            self._last_sent = {name: n for name, n in self._last_sent.items() if self._n_ended - n <= _OFFERED_RUNS}

    def _remove_old_names(self, data: bytes) -> bytes:
        request = rerun_of(data)
        if request is None:
            return data
        names = request.message.rerun_script.cached_message_hashes
        kept = [name for name in names if name in self._last_sent]
        if len(kept) == len(names):
            return data
        del names[:]
        names.extend(kept)
        return request.to_bytes()
