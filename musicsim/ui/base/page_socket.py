"""The part that all middleware for the WebSockets of pages shares."""

import math
from abc import ABC, abstractmethod
from typing import ClassVar, Protocol

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg


class Follower(Protocol):
    """Follows the messages of one WebSocket."""

    async def receive(self) -> Message:
        """Return the next message for the app."""

    def note(self, sent: ForwardMsg) -> None:
        """Note a message before it is sent to the page."""

    def close(self) -> None:
        """Stop, because the connection has ended."""


class PageSocket(ABC):
    """ASGI middleware that follows the WebSocket of each page; other connections pass unchanged."""

    max_bytes: ClassVar[float] = math.inf
    """Larger messages to a page are not noted."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    @abstractmethod
    def follow(self, receive: Receive, send: Send) -> Follower:
        """Return the follower of a new WebSocket."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket":
            return await self._app(scope, receive, send)
        follower = self.follow(receive, send)

        async def note_and_send(message: Message) -> None:
            data = message.get("bytes")
            if data and len(data) <= self.max_bytes:
                follower.note(ForwardMsg.FromString(data))
            await send(message)

        try:
            await self._app(scope, follower.receive, note_and_send)
        finally:
            follower.close()
