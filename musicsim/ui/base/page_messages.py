"""Messages between Streamlit and its pages, filtered for visitors."""

from dataclasses import dataclass
from functools import cached_property

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from starlette.types import Scope
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState

from musicsim.api.streams import RunEvent

_SENT_BY_PAGES = {
    "rerun_script", "stop_script", "app_heartbeat", "file_urls_request", "deferred_file", "dataframe_chunk",
}  # fmt: skip
_TRIGGERS = {"trigger_value", "string_trigger_value", "chat_input_value", "json_trigger_value"}
_MAX_RUN_BYTES = 1 << 16
"""Maximum size in bytes of a message about a run; larger messages are page elements."""
_SCRIPT = "app.py"
_N_FIRST_PROTOCOLS = 2  # the name of the protocol and a token; the browser can only send them as subprotocols


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


def rerun_of(message: bytes) -> "PageRerun | None":
    """Return a page's request for a rerun, or None for other messages."""
    sent = parse_request(message)
    if sent is None or sent.WhichOneof("type") != "rerun_script":
        return None
    return PageRerun(sent, len(message))


@dataclass(frozen=True)
class PageRerun:
    """A page's request to run its script."""

    message: BackMsg
    n_bytes: int

    @cached_property
    def states(self) -> dict[str, WidgetState]:
        """The values of the page's widgets, keyed by widget id."""
        return {state.id: state for state in self.message.rerun_script.widget_states.widgets}

    @cached_property
    def clicks(self) -> dict[str, WidgetState]:
        """Triggers that are set, keyed by widget id; a page sends each trigger only once."""
        return {name: state for name, state in self.states.items() if _is_click(state)}

    @property
    def has_clicks(self) -> bool:
        """True if a trigger is set."""
        return bool(self.clicks)

    def join(self, newer: "PageRerun") -> "PageRerun | None":
        """Return the newer request with the clicks of this one added, or None if the two requests conflict."""
        mine, other = self.message.rerun_script, newer.message.rerun_script
        if other.fragment_id and other.fragment_id != mine.fragment_id:
            return None
        if not self.clicks and not mine.is_history_navigation:
            return newer
        if mine.page_script_hash != other.page_script_hash or not self.clicks.keys().isdisjoint(newer.clicks):
            return None
        both = BackMsg()
        both.CopyFrom(newer.message)
        both.rerun_script.is_history_navigation |= mine.is_history_navigation
        widgets = both.rerun_script.widget_states.widgets
        unclicked = [state for state in other.widget_states.widgets if state.id not in self.clicks]
        del widgets[:]
        widgets.extend([*unclicked, *self.clicks.values()])
        return PageRerun(both, both.ByteSize())

    def to_bytes(self) -> bytes:
        """Return the request as a message."""
        return bytes(self.message.SerializeToString())


def is_reconnection(scope: Scope) -> bool:
    """Return True for the WebSocket of a page that was connected before: it names its session after a token."""
    return len(scope.get("subprotocols", ())) > _N_FIRST_PROTOCOLS


def filter_message(message: bytes) -> tuple[bytes, RunEvent]:
    """Remove this machine's paths from a message to a page; return it with the event that it reports."""
    if len(message) > _MAX_RUN_BYTES:
        return message, RunEvent.OTHER
    sent = ForwardMsg.FromString(message)
    kind = sent.WhichOneof("type")
    if kind == "new_session":
        sent.new_session.main_script_path = _SCRIPT  # the page only derives a key from it
        return sent.SerializeToString(), RunEvent.BEGUN
    if is_end_of_run(sent):
        return message, RunEvent.FINISHED
    return message, RunEvent.OTHER


def is_end_of_run(message: ForwardMsg) -> bool:
    """Return True for the end of a run that was not interrupted for another one."""
    kind = message.WhichOneof("type")
    return bool(kind == "script_finished" and message.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN)


def _is_click(state: WidgetState) -> bool:
    kind = state.WhichOneof("value")
    if kind not in _TRIGGERS:
        return False
    value = getattr(state, kind)
    return bool(value.ListFields()) if hasattr(value, "ListFields") else bool(value)
