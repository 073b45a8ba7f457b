"""The token that opens the app to other machines: who knows it may do everything, and nobody else may do anything.

``musicsim app --host`` prints an address with the token. The first visit stores it in a cookie, and continues at the
address without it. Programs send ``Authorization: Bearer TOKEN``. Players have tokens of their own, which their routes
check.
"""

import os
import secrets
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from html import escape
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qsl, quote, urlencode

from starlette.datastructures import Headers
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Receive, Scope, Send

from musicsim.api.budgets import address_of
from musicsim.errors import AddressError
from musicsim.library.disk.arrays import update_private
from musicsim.own_extensions import FOLDER

COOKIE = "musicsim_token"
VARIABLE = "MUSICSIM_TOKEN"
FILE = FOLDER.parent / "token"
_LEAST_LENGTH = 16  # of a token that somebody chose
_YEAR_S = 365 * 24 * 3600
_HEALTH = "/_stcore/health"
_GUESSES, _PER_S = 10, 60.0  # wrong tokens of one address, and the time in which they are counted
_MOST_ADDRESSES = 10_000
_MARK = "__checks_token__"
_STYLE = (
    ":root{color-scheme:light dark}body{font:1rem/1.5 system-ui;max-width:26rem;margin:20vh auto;padding:0 1rem}"
    "input,button{font:inherit;padding:.5rem;box-sizing:border-box;width:100%;margin-top:.5rem}"
)

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


def checks_token(endpoint: Endpoint) -> Endpoint:
    """Mark a route's endpoint that checks a token itself, such as that of a player."""
    setattr(endpoint, _MARK, True)
    return endpoint


def load_token(*, new: bool = False, file: Path = FILE) -> str:
    """Return the token of this user's apps, which is kept in a file; make it at the first call, or if `new`.

    ``MUSICSIM_TOKEN`` comes first. Raises AddressError if it is too short to be safe.
    """
    chosen = os.environ.get(VARIABLE, "")
    if chosen:
        if len(chosen) < _LEAST_LENGTH:
            raise AddressError(f"{VARIABLE} has {len(chosen)} characters: use at least {_LEAST_LENGTH}.")
        return chosen

    def keep_or_make(known: bytes | None) -> str:
        return known.decode() if known and known.strip() and not new else secrets.token_urlsafe(18) + "\n"

    return update_private(file, keep_or_make).strip()


class TokenGate:
    """ASGI middleware that refuses requests without the token with 401.

    Parameters
    ----------
    app : ASGIApp
    token : str
    routes : sequence of routes
        Those whose endpoints are marked with :func:`checks_token` are not refused.
    """

    def __init__(self, app: ASGIApp, token: str, routes: Sequence[BaseRoute] = ()) -> None:
        self._app = app
        self._token = token
        self._open_routes = [route for route in routes if getattr(getattr(route, "endpoint", None), _MARK, False)]
        self._wrong = _WrongTokens()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket") or self._is_open(scope) or self._has_cookie(scope):
            return await self._app(scope, receive, send)
        response = self._let_in(scope)
        await (self._app if response is None else response)(scope, receive, send)

    def _is_open(self, scope: Scope) -> bool:
        if scope["path"].endswith(_HEALTH):
            return True
        return any(route.matches(scope)[0] is Match.FULL for route in self._open_routes)

    def _has_cookie(self, scope: Scope) -> bool:
        cookies = SimpleCookie()
        for text in Headers(scope=scope).getlist("cookie"):
            with suppress(CookieError):
                cookies.load(text)
        return COOKIE in cookies and self._is_token(cookies[COOKIE].value)

    def _is_token(self, text: str) -> bool:
        return secrets.compare_digest(text.encode(), self._token.encode())

    def _let_in(self, scope: Scope) -> Response | None:
        """Return the response to a request without a cookie; None if it may pass."""
        parameters = parse_qsl(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True)
        sent = [value for name, value in parameters if name == "token"]
        scheme, _, bearer = Headers(scope=scope).get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            sent.append(bearer.strip())
        client = address_of(scope)
        if sent and self._wrong.are_too_many(client):
            return PlainTextResponse("too many wrong tokens: wait a minute.", 429, {"Retry-After": str(int(_PER_S))})
        if not any(map(self._is_token, sent)):
            if sent:
                self._wrong.add(client)
            return _refuse(scope, was_wrong=bool(sent))
        if scope["type"] == "websocket" or not any(name == "token" for name, _ in parameters):
            return None
        return _enter(scope, self._token, [pair for pair in parameters if pair[0] != "token"])


class _WrongTokens:
    """Times of the last wrong tokens of each of the most recent addresses."""

    def __init__(self) -> None:
        self._times = lru_cache(_MOST_ADDRESSES)(lambda _address: deque[float](maxlen=_GUESSES))

    def are_too_many(self, client: str) -> bool:
        times = self._times(client)
        return len(times) == _GUESSES and time.monotonic() - times[0] < _PER_S

    def add(self, client: str) -> None:
        self._times(client).append(time.monotonic())


def _enter(scope: Scope, token: str, parameters: list[tuple[str, str]]) -> Response:
    # A page that moves on, not a redirect: after a link on another site, browsers leave out strict cookies.
    # "//" would begin another site's address.
    address = "/" + quote(scope["path"]).lstrip("/") + (f"?{urlencode(parameters)}" if parameters else "")
    move = f'<meta http-equiv="refresh" content="0;url={escape(address)}">'
    response = HTMLResponse(f"<!doctype html><title>musicsim</title>{move}", headers={"Cache-Control": "no-store"})
    response.set_cookie(
        COOKIE, token, max_age=_YEAR_S, httponly=True, samesite="strict", secure=scope["scheme"] == "https"
    )
    return response


def _refuse(scope: Scope, *, was_wrong: bool) -> Response:
    headers = {"WWW-Authenticate": "Bearer", "Cache-Control": "no-store"}
    words = "This token is wrong." if was_wrong else "This library is private."
    how = "Open the address that musicsim printed when it was started, or enter the token in it."
    if scope["type"] == "websocket" or "text/html" not in Headers(scope=scope).get("accept", ""):
        return PlainTextResponse(f"{words} {how}", 401, headers)
    form = (
        '<form><input name="token" type="password" aria-label="Token" autofocus required><button>Open</button></form>'
    )
    page = '<!doctype html><html lang="en"><meta name="viewport" content="width=device-width"><title>musicsim</title>'
    return HTMLResponse(f"{page}<style>{_STYLE}</style><h1>musicsim</h1><p>{words} {how}</p>{form}", 401, headers)
