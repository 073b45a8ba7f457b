"""Middleware that keeps references to messages valid: the server sends them for messages that the browser stores."""

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

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
        sent = _SentMessages()

        async def receive_with_valid_names() -> Message:
            message = await receive()
            data = message.get("bytes")
            return {**message, "bytes": sent.remove_old_names(data)} if data else message

        async def note_and_send(message: Message) -> None:
            if data := message.get("bytes"):
                sent.note(ForwardMsg.FromString(data))
            await send(message)

        await self._app(scope, receive_with_valid_names, note_and_send)


class _SentMessages:
    def __init__(self) -> None:
        self._n_ended = 0  # runs
        self._last_sent: dict[str, int] = {}  # hash -> number of ended runs when the message was last sent

    def note(self, message: ForwardMsg) -> None:
        kind = message.WhichOneof("type")
        if kind == "ref_hash":
            self._last_sent[message.ref_hash] = self._n_ended
        elif message.metadata.cacheable:
            self._last_sent[message.hash] = self._n_ended
        elif kind == "script_finished" and message.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN:
            self._n_ended += 1
            self._last_sent = {name: n for name, n in self._last_sent.items() if self._n_ended - n <= _OFFERED_RUNS}

    def remove_old_names(self, data: bytes) -> bytes:
        try:
            request = BackMsg.FromString(data)
        except DecodeError:
            return data
        if request.WhichOneof("type") != "rerun_script":
            return data
        names = request.rerun_script.cached_message_hashes
        kept = [name for name in names if name in self._last_sent]
        if len(kept) == len(names):
            return data
        del names[:]
        names.extend(kept)
        return bytes(request.SerializeToString())
