"""Middleware that runs the page that the user sees, also for clicks made just before it appeared."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from musicsim.ui.base.page_messages import MAX_RUN_BYTES, rerun_of


class PageChanges:
    """ASGI middleware that directs late requests of a page that the user has left to the new page.

    The browser learns of the new page only when its script starts. Until then, clicks and fragments request a rerun of
    the old page. Streamlit would either return to that page, or run its fragments, for which the browser removes all
    elements of the new page.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket":
            return await self._app(scope, receive, send)
        page = ""  # the page last requested by the browser or shown to it

        async def receive_for_page() -> Message:
            nonlocal page
            message = await receive()
            data = message.get("bytes")
            if not data or (sent := rerun_of(data)) is None:
                return message
            rerun = sent.move(page)
            page = rerun.page or page
            return message if rerun is sent else {**message, "bytes": rerun.to_bytes()}

        async def send_from_page(message: Message) -> None:
            nonlocal page
            data = message.get("bytes")
            if data and len(data) <= MAX_RUN_BYTES:
                page = _page_shown_by(ForwardMsg.FromString(data)) or page
            await send(message)

        await self._app(scope, receive_for_page, send_from_page)


def _page_shown_by(message: ForwardMsg) -> str:
    """Return the page that the browser takes from a message as the current one, or an empty text."""
    kind = message.WhichOneof("type")
    if kind == "new_session" and not message.metadata.run.fragment_ids:
        return str(message.new_session.page_script_hash)
    return str(message.navigation.page_script_hash) if kind == "navigation" else ""
