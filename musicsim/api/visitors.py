"""Limits for the visitors of a public demonstration: requests per minute, uploads, connections at once."""

import asyncio
import os
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from musicsim.api.arrivals import Arrivals, TooLargeError, TooManyError, TooSlowError
from musicsim.api.budgets import Budgets, Places, address_of
from musicsim.api.streams import Dialect, Paces, Rerun, Said, Stream

MAX_HELD = 4
"""Files that a session holds at once; a page has one or two."""
_MAX_HELD_BYTES = 512 << 20  # of all sessions
_MAX_ARRIVING = 4  # files of an address at once; others wait their turn
_MAX_ARRIVING_BYTES = 1 << 30  # of all addresses, in temporary files
_MAX_PROCESSED = 8  # files at once that have arrived; others wait their turn
_MAX_WAIT_S = 60.0
_MAX_BODY = 1 << 20  # bytes, of requests that send no file
_FORGOTTEN_S = 40.0  # when Streamlit has forgotten the sessions of those who left
_MAX_STREAMS = 200  # pages that are open at once
_REQUESTS_A_MINUTE = 3000  # of one address, which may be that of a whole lecture hall; a page takes some thirty
_READS = ("GET", "HEAD", "OPTIONS")
_COST_OF_A_FILE = 20  # and of whatever else does not only read
_SCRIPTS = re.compile(r"/static/")  # of Streamlit's pages: nine of ten requests, and the browser keeps them
_UPLOAD = re.compile(r"/_stcore/upload_file/([^/]+)/")
_SEARCH = re.compile(r"/api/similar/?$")
_TOO_MANY = "too many files are being sent."
_RETRY_AFTER_S = 15
_FOR_THE_OWNER = re.compile(r"/_stcore/(metrics|script-health-check|agent)")


class Visitors:
    """ASGI middleware that keeps visitors within limits.

    Requests beyond them are answered with 429 or 503 and ``Retry-After``. Messages of a page's WebSocket wait. A file
    is received whole before it takes a place among those that are processed.

    Parameters
    ----------
    is_of_a_page, rerun_of, filter_message : callable
        The language of the pages, as :class:`musicsim.api.streams.Dialect`.
    uploads_of : callable of a session's id
        Gives how many files the session holds, and how many bytes all sessions hold together.
    when_left : callable, optional
        Called a while after the last page was closed.
    max_file : int
        Bytes of a file with its frame.
    """

    def __init__(
        self,
        app: ASGIApp,
        is_of_a_page: Callable[[bytes], bool],
        uploads_of: Callable[[str], tuple[int, int]],
        when_left: Callable[[], object] = lambda: None,
        *,
        rerun_of: Callable[[bytes], Rerun | None] = lambda message: None,
        filter_message: Callable[[bytes], tuple[bytes, Said]] = lambda message: (message, Said.OTHER),
        max_file: int = 21 << 20,
    ) -> None:
        self._app, self._dialect = app, Dialect(is_of_a_page, rerun_of, filter_message)
        self._uploads_of, self._when_left, self._max_file = uploads_of, when_left, max_file
        self._budgets = Budgets(float(os.environ.get("MUSICSIM_REQUESTS_A_MINUTE", _REQUESTS_A_MINUTE)))
        self._paces = Paces()
        self._arrivals, self._places = Arrivals(_MAX_ARRIVING_BYTES), Places(_MAX_ARRIVING)
        self._arriving: Counter[str] = Counter()  # files of each session
        self._processed = asyncio.Semaphore(_MAX_PROCESSED)
        self._n_streams = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._http(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._stream(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        if _FOR_THE_OWNER.search(scope["path"]):
            return await _refusal(404, "there is nothing here.")(scope, receive, send)
        wait_s = self._budgets.spend(address_of(scope), _cost(scope))
        if wait_s:
            return await _refusal(429, "too many requests.", wait_s)(scope, receive, send)
        if scope["method"] in _READS:
            return await self._app(scope, receive, send)
        upload = _UPLOAD.search(scope["path"]) if scope["method"] == "PUT" else None
        is_search = scope["method"] == "POST" and _SEARCH.search(scope["path"])
        try:
            if upload is not None:
                await self._upload(upload[1], scope, receive, send)
            elif is_search:
                await self._search(scope, receive, send)
            else:
                async with self._arrivals.body(receive, _MAX_BODY) as body:
                    await self._app(scope, body.receive, send)
        except _Refused as refused:
            await refused.answer(scope, receive, send)
        except TooSlowError:
            answer = _refusal(408, "the file came too slowly: send a smaller part of it.")
            answer.headers["Connection"] = "close"
            await answer(scope, receive, send)
        except TooLargeError:
            await _refusal(413, "the file is too large: send a part of it.")(scope, receive, send)
        except TooManyError:
            await _refusal(503, _TOO_MANY, _RETRY_AFTER_S)(scope, receive, send)
        except ClientDisconnect:
            await Response(status_code=499)(scope, receive, send)

    async def _upload(self, session: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a file that a page sends."""
        if _says_too_large(scope, self._max_file):  # the app says so, and reads nothing of it
            return await self._app(scope, receive, send)
        async with _place(self._places.get(address_of(scope))):
            n_held, n_bytes = self._uploads_of(session)
            if n_held + self._arriving[session] >= MAX_HELD:
                raise _Refused(_refusal(429, f"a page holds {MAX_HELD} files at most.", 60))
            if n_bytes >= _MAX_HELD_BYTES:
                raise _Refused(_refusal(503, _TOO_MANY, _RETRY_AFTER_S))
            self._arriving[session] += 1
            try:
                async with self._arrivals.body(receive, self._max_file) as body, _place(self._processed):
                    await self._app(scope, body.receive, send)
            finally:
                self._arriving[session] -= 1
                self._arriving += Counter()  # forgets sessions that send nothing

    async def _search(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a file that a program searches with."""
        if _says_too_large(scope, self._max_file):
            return await self._app(scope, receive, send)
        places = self._places.get(address_of(scope))
        async with _place(places), self._arrivals.body(receive, self._max_file) as body:
            await self._app(scope, body.receive, send)

    async def _stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        address = address_of(scope)
        if self._n_streams >= _MAX_STREAMS or self._budgets.spend(address, 1):
            await receive()
            return await send({"type": "websocket.close", "code": 1013})
        stream = Stream(receive, send, self._dialect, self._paces, self._budgets, address)
        self._n_streams += 1
        try:
            await self._app(scope, stream.receive, stream.send)
        finally:
            stream.close()
            self._n_streams -= 1
            if not self._n_streams:
                asyncio.get_running_loop().call_later(_FORGOTTEN_S, self._left)

    def _left(self) -> None:
        if not self._n_streams:
            self._when_left()


class _Refused(Exception):
    """A request beyond a limit."""

    def __init__(self, answer: PlainTextResponse) -> None:
        super().__init__()
        self.answer = answer


@asynccontextmanager
async def _place(places: asyncio.Semaphore) -> AsyncIterator[None]:
    """Hold a place, after a wait if there are others."""
    try:
        await asyncio.wait_for(places.acquire(), _MAX_WAIT_S)
    except TimeoutError:
        raise _Refused(_refusal(503, _TOO_MANY, _RETRY_AFTER_S)) from None
    try:
        yield
    finally:
        places.release()


def _cost(scope: Scope) -> int:
    if scope["method"] not in _READS:
        return _COST_OF_A_FILE
    return 0 if _SCRIPTS.search(scope["path"]) else 1


def _says_too_large(scope: Scope, max_bytes: int) -> bool:
    length = Headers(raw=scope.get("headers", [])).get("content-length", "")
    return length.isdecimal() and int(length) > max_bytes


def _refusal(status: int, words: str, wait_s: float = 0.0) -> PlainTextResponse:
    headers = {"Retry-After": str(max(1, round(wait_s)))} if wait_s else {}
    return PlainTextResponse(words, status, headers)
