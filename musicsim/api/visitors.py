"""Limits for visitors to a public demonstration: requests per minute, uploads, and simultaneous connections."""

import asyncio
import os
import re
from collections import Counter
from collections.abc import Callable, Set

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from musicsim.api.arrivals import Arrivals, Refused, TooManyFiles
from musicsim.api.budgets import Budgets, address_of
from musicsim.api.lines import WaitingLine
from musicsim.api.pages import Full, Pages
from musicsim.api.streams import TRY_AGAIN_LATER, MessageDialect, Paces, Stream

MAX_HELD = 4  # files per session; a page has one or two
_MAX_HELD_BYTES = 512 << 20  # total for all sessions
_MAX_ARRIVING = 4  # simultaneous files per address; others wait
_MAX_ARRIVING_BYTES = 1 << 30  # total for all addresses, in temporary files
_MAX_PROCESSED = 8  # uploaded files that are processed simultaneously; others wait
_MAX_COMPUTING, _MAX_COMPUTING_OF_ALL = 2, 4  # simultaneous computations, per address and of all; others wait
_MAX_BODY = 1 << 20  # bytes, for requests without a file
FORGOTTEN_S = 40.0  # by then, Streamlit has deleted the sessions of closed pages
_REQUESTS_A_MINUTE = 3000  # per address, which a whole lecture hall may share; a page needs about thirty requests
_READS = ("GET", "HEAD", "OPTIONS")
_COST_OF_A_FILE = 20  # in requests; other requests that change something cost the same
# The unit is a request for a file or a cover, about 0.01 s of CPU time. Requests with higher costs compute something.
_COSTS = (
    (re.compile(r"/api/queue/?$"), 8),
    (
        re.compile(
            r"/api/(?:playlist|songs/[0-9]+/(?:why|artists|transition)|sounds/[^/]+/why|songs/(?:table|file|order))/?$"
        ),
        20,
    ),
    (re.compile(r"/api/|/radio/?$"), 5),
)
_RETRY_AFTER_S = 15
_SCRIPTS = re.compile(r"/(?:static|scripts)/")  # most requests; they cost nothing, because browsers cache the responses
_UPLOAD = re.compile(r"/_stcore/upload_file/([^/]+)/")
_QUESTION = re.compile(r"/api/(?:queue|tracks|songs/(?:table|file|order))/?$")  # they change nothing, but have a body
_SEARCH = re.compile(r"/api/(?:similar|sounds)/?$")
_PING = re.compile(r"/_stcore/host-config/?$")  # a page asks for it before it connects, and shows why it was refused
_FOR_THE_OWNER = re.compile(r"/_stcore/(metrics|script-health-check|agent)")


class _TooManyReads(Refused):
    def __init__(self) -> None:
        super().__init__(503, "too many requests are being computed.", _RETRY_AFTER_S)


class Visitors:
    """ASGI middleware that enforces the limits for visitors.

    Requests beyond a limit get status 429 or 503 with ``Retry-After``; messages on a page's WebSocket are delayed. A
    file is received completely before it is processed; its size, including the multipart framing, is at most `max_file`
    bytes. `uploads_of` takes a session id, and returns that session's number of files and the total bytes of all
    sessions. `when_left` is called some time after the last page is closed. `page_paths` are the paths of the pages'
    HTML.
    """

    def __init__(
        self,
        app: ASGIApp,
        dialect: MessageDialect,
        uploads_of: Callable[[str], tuple[int, int]],
        when_left: Callable[[], object] = lambda: None,
        *,
        max_file: int = 21 << 20,
        page_paths: Set[str] = frozenset(),
    ) -> None:
        self._app, self._dialect = app, dialect
        self._uploads_of, self._when_left, self._max_file = uploads_of, when_left, max_file
        self._budgets = Budgets(float(os.environ.get("MUSICSIM_REQUESTS_A_MINUTE", _REQUESTS_A_MINUTE)))
        self._paces = Paces()
        self._arrivals = Arrivals(_MAX_ARRIVING_BYTES)
        self._files = WaitingLine(TooManyFiles, _MAX_ARRIVING)
        self._arriving: Counter[str] = Counter()  # files per session
        self._processed = WaitingLine(TooManyFiles, _MAX_PROCESSED, _MAX_PROCESSED)
        self._computing = WaitingLine(_TooManyReads, _MAX_COMPUTING, _MAX_COMPUTING_OF_ALL)
        self._page_paths = page_paths
        self._pages = Pages()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        serve = {"http": self._http, "websocket": self._stream}.get(scope["type"], self._app)
        try:
            await serve(scope, receive, send)
        except Refused as refused:
            await refused.response(scope, receive, send)
        except ClientDisconnect:
            await Response(status_code=499)(scope, receive, send)

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        if _FOR_THE_OWNER.search(scope["path"]):
            raise Refused(404, "there is nothing here.")
        is_reading = scope["method"] in _READS or (scope["method"] == "POST" and _QUESTION.search(scope["path"]))
        address = address_of(scope)
        cost = _cost_of_reading(scope["path"]) if is_reading else _COST_OF_A_FILE
        if wait_s := self._budgets.get(address).spend(cost):
            raise Refused(429, "too many requests.", wait_s)
        if is_reading:
            self._refuse_if_full(scope)
            return await (self._compute if cost > 1 else self._app)(scope, receive, send)
        upload = _UPLOAD.search(scope["path"]) if scope["method"] == "PUT" else None
        is_search = scope["method"] == "POST" and _SEARCH.search(scope["path"])
        if not upload and not is_search:
            async with self._arrivals.body(receive, _MAX_BODY) as body:
                return await self._app(scope, body.receive, send)
        length = Headers(raw=scope.get("headers", [])).get("content-length", "")
        if length.isdecimal() and int(length) > self._max_file:  # the app refuses it without reading the body
            return await self._app(scope, receive, send)
        async with self._files.place(address):
            if upload:
                return await self._upload(upload[1], scope, receive, send)
            async with self._arrivals.body(receive, self._max_file) as body:
                await self._app(scope, body.receive, send)

    async def _compute(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with (
            self._arrivals.body(receive, _MAX_BODY) as body,
            self._computing.place(address_of(scope), leaving=receive) as give_back,
        ):

            async def send_result(message: Message) -> None:
                give_back()  # a client that reads slowly needs no place
                await send(message)

            await self._app(scope, body.receive, send_result)

    def _refuse_if_full(self, scope: Scope) -> None:
        """Refuse the requests that precede a page's WebSocket if it would be refused: their refusal is visible."""
        is_page = scope["path"] in self._page_paths
        if (is_page or _PING.search(scope["path"])) and not self._pages.has_room(address_of(scope)):
            raise Full(is_page=is_page)

    async def _upload(self, session: str, scope: Scope, receive: Receive, send: Send) -> None:
        n_held, n_bytes = self._uploads_of(session)
        if n_held + self._arriving[session] >= MAX_HELD:
            raise Refused(429, f"a page can hold at most {MAX_HELD} files.", 60)
        if n_bytes >= _MAX_HELD_BYTES:
            raise TooManyFiles
        self._arriving[session] += 1
        try:
            async with self._arrivals.body(receive, self._max_file) as body, self._processed.place(address_of(scope)):
                await self._app(scope, body.receive, send)
        finally:
            self._arriving[session] -= 1
            self._arriving += Counter()  # removes sessions without files

    async def _stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        address = address_of(scope)
        if wait_s := self._budgets.get(address).spend(1):
            raise Refused(429, "too many requests.", wait_s)
        self._pages.make_room(address)
        is_reconnected = self._dialect.is_reconnection(scope)
        stream = Stream(
            receive, send, self._dialect, self._paces, self._budgets, address, is_reconnected=is_reconnected
        )
        self._pages.add(stream, address)
        try:
            await self._app(scope, stream.receive, stream.send)
        finally:
            stream.close()
            self._pages.remove(stream)
            if not self._pages:
                asyncio.get_running_loop().call_later(FORGOTTEN_S, self._call_if_left)
        if stream.is_leaving:
            await send({"type": "websocket.close", "code": TRY_AGAIN_LATER})

    def _call_if_left(self) -> None:
        if not self._pages:
            self._when_left()


def _cost_of_reading(path: str) -> int:
    if _SCRIPTS.search(path):
        return 0
    return next((cost for kind, cost in _COSTS if kind.search(path)), 1)
