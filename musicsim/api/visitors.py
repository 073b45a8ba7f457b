"""What visitors of a public demonstration may take of the server: requests a minute, uploads, connections at once.

An address is that of the connection. Behind a reverse proxy it is the one that the proxy forwards, where uvicorn trusts
the proxy (``FORWARDED_ALLOW_IPS``, this machine by default); what others forward counts for nothing.
"""

import asyncio
import os
import re
import time
from collections import OrderedDict
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address, ip_network

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_HELD = 4
"""Files that a session holds at once; a page has one or two."""
_MAX_HELD_BYTES = 512 << 20  # of all sessions
_MAX_RECEIVED = 8  # files at once; others wait their turn
_MAX_WAIT_S = 60.0
_FORGOTTEN_S = 40.0  # when Streamlit has forgotten the sessions of those who left
_MAX_STREAMS = 200  # pages that are open at once
_REQUESTS_A_MINUTE = (
    3000  # of one address, which may be that of a whole lecture hall; a page takes some thirty
)
_READS = ("GET", "HEAD", "OPTIONS")
_COST_OF_A_FILE = 20  # and of whatever else does not only read
_SCRIPTS = re.compile(r"/static/")  # of Streamlit's pages: nine of ten requests, and the browser keeps them
_MAX_ADDRESSES = 10_000
_UPLOAD = re.compile(r"/_stcore/upload_file/([^/]+)/")
_FOR_THE_OWNER = re.compile(r"/_stcore/(metrics|script-health-check)")


class Budgets:
    """How much each address has left; an allowance of a minute fills up evenly.

    Parameters
    ----------
    a_minute : float
        What an address may spend.
    """

    def __init__(self, a_minute: float) -> None:
        self._a_minute = a_minute
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # what was left, and when

    def spend(self, address: str, cost: float) -> float:
        """Take what something costs; where there is not enough, take nothing and say in how many seconds there is."""
        now = time.monotonic()
        left, since = self._left.pop(address, (self._a_minute, now))
        left = min(self._a_minute, left + (now - since) * self._a_minute / 60)
        wait_s = max(0.0, (cost - left) * 60 / self._a_minute)
        self._left[address] = (left if wait_s else left - cost, now)
        while len(self._left) > _MAX_ADDRESSES:
            self._left.popitem(last=False)
        return wait_s


class Visitors:
    """ASGI middleware that keeps visitors within limits.

    Requests beyond them are answered with 429 or 503 and ``Retry-After``; what a page sends over its WebSocket waits.

    Parameters
    ----------
    is_of_a_page : callable of a message's bytes
        Whether a page may send such a message over its WebSocket; others are dropped.
    uploads_of : callable of a session's id
        Gives how many files the session holds, and how many bytes all sessions hold together.
    when_left : callable, optional
        Called a while after the last page was closed.
    """

    def __init__(
        self,
        app: ASGIApp,
        is_of_a_page: Callable[[bytes], bool],
        uploads_of: Callable[[str], tuple[int, int]],
        when_left: Callable[[], object] = lambda: None,
    ) -> None:
        self._app, self._is_of_a_page, self._uploads_of = app, is_of_a_page, uploads_of
        self._budgets = Budgets(float(os.environ.get("MUSICSIM_REQUESTS_A_MINUTE", _REQUESTS_A_MINUTE)))
        self._receiving = asyncio.Semaphore(_MAX_RECEIVED)
        self._n_streams = 0
        self._when_left = when_left

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._http(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._stream(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        if _FOR_THE_OWNER.search(scope["path"]):
            return await _refuse(404, "there is nothing here.")(scope, receive, send)
        wait_s = self._budgets.spend(_address(scope), _cost(scope))
        if wait_s:
            return await _refuse(429, "too many requests.", wait_s)(scope, receive, send)
        upload = _UPLOAD.search(scope["path"]) if scope["method"] == "PUT" else None
        if upload is None:
            return await self._app(scope, receive, send)
        try:
            await asyncio.wait_for(self._receiving.acquire(), _MAX_WAIT_S)
        except TimeoutError:
            return await _too_many_files(scope, receive, send)
        try:
            n_held, n_bytes = self._uploads_of(upload[1])
            if n_held >= MAX_HELD:
                return await _refuse(429, f"a page holds {MAX_HELD} files at most.", 60)(scope, receive, send)
            if n_bytes >= _MAX_HELD_BYTES:
                return await _too_many_files(scope, receive, send)
            await self._app(scope, receive, send)
        finally:
            self._receiving.release()

    async def _stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        address = _address(scope)
        if self._n_streams >= _MAX_STREAMS or self._budgets.spend(address, 1):
            await receive()
            return await send({"type": "websocket.close", "code": 1013})

        async def receive_slowly() -> Message:
            message = await receive()
            while message.get("bytes") and not self._is_of_a_page(message["bytes"]):
                message = await receive()
            while message["type"] == "websocket.receive" and (wait_s := self._budgets.spend(address, 1)):
                await asyncio.sleep(wait_s)
            return message

        self._n_streams += 1
        try:
            await self._app(scope, receive_slowly, send)
        finally:
            self._n_streams -= 1
            if not self._n_streams:
                asyncio.get_running_loop().call_later(_FORGOTTEN_S, self._left)

    def _left(self) -> None:
        if not self._n_streams:
            self._when_left()


def _cost(scope: Scope) -> int:
    if scope["method"] not in _READS:
        return _COST_OF_A_FILE
    return 0 if _SCRIPTS.search(scope["path"]) else 1


def _address(scope: Scope) -> str:
    """Who asks; of IPv6 the network, which one household has all of."""
    host = scope["client"][0] if scope["client"] else ""
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if not isinstance(address, IPv6Address):
        return host
    return str(address.ipv4_mapped or ip_network((address, 64), strict=False))


async def _too_many_files(scope: Scope, receive: Receive, send: Send) -> None:
    await _refuse(503, "too many files are being sent.", 15)(scope, receive, send)


def _refuse(status: int, words: str, wait_s: float = 0.0) -> PlainTextResponse:
    headers = {"Retry-After": str(max(1, round(wait_s)))} if wait_s else {}
    return PlainTextResponse(words, status, headers)
