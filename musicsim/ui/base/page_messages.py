"""Messages between Streamlit and its pages: filtered for visitors, and with references that stay valid."""

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

_SENT_BY_PAGES = {
    "rerun_script", "stop_script", "app_heartbeat", "file_urls_request", "deferred_file", "dataframe_chunk",
}  # fmt: skip
_MAX_RUN_BYTES = 1 << 16
"""Maximum size in bytes of a message about a run; larger messages are page elements."""
_SCRIPT = "app.py"
_N_FIRST_PROTOCOLS = 2  # the name of the protocol and a token; the browser can only send them as subprotocols

STORED_RUNS = 30
"""Number of runs after which the browser deletes a message that was not used again."""
_OFFERED_RUNS = 20  # the rest is a reserve for runs that end between a request and its own run


def is_of_a_page(message: bytes) -> bool:
    """Return True for messages that the app's pages send; other messages could clear shared caches or install files."""
    sent = parse_request(message)
    if sent is None:
        return False
    kind: str | None = sent.WhichOneof("type")
    if kind == "backend_operation_request":
        kind = sent.backend_operation_request.WhichOneof("payload")
    return kind in _SENT_BY_PAGES


def parse_request(message: bytes) -> BackMsg | None:
    """Return a page's message to the app, or None if it is not one."""
    try:
        return BackMsg.FromString(message)
    except DecodeError:
        return None


def is_rerun(message: bytes) -> bool:
    """Return True for a page's request to run its script."""
    sent = parse_request(message)
    return sent is not None and sent.WhichOneof("type") == "rerun_script"


def is_reconnection(scope: Scope) -> bool:
    """Return True for the WebSocket of a page that was connected before: it names its session after a token."""
    return len(scope.get("subprotocols", ())) > _N_FIRST_PROTOCOLS


def filter_message(message: bytes) -> bytes:
    """Remove this machine's paths from a message to a page."""
    if len(message) > _MAX_RUN_BYTES:
        return message
    sent = ForwardMsg.FromString(message)
    if sent.WhichOneof("type") != "new_session":
        return message
    sent.new_session.main_script_path = _SCRIPT  # the page only derives a key from it
    return bytes(sent.SerializeToString())


def is_end_of_run(message: ForwardMsg) -> bool:
    """Return True for the end of a run that was not interrupted for another one."""
    kind = message.WhichOneof("type")
    return bool(kind == "script_finished" and message.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN)


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
        request = parse_request(data)
        if request is None:
            return data
        names = request.rerun_script.cached_message_hashes  # none in other messages
        kept = [name for name in names if name in self._last_sent]
        if len(kept) == len(names):
            return data
        del names[:]
        names.extend(kept)
        return bytes(request.SerializeToString())
