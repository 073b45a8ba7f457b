"""Who may talk to the app: requests to one of its own addresses, from its own pages.

A web page that the listener has open elsewhere can send requests to this machine too and, where a name of its own leads
to 127.0.0.1 (DNS rebinding), read the answers. ``Host`` says which address the browser believes it is talking to and
``Origin`` which page is asking, so these two are judged before anything else sees a request.
"""

import os
import re
from collections.abc import Iterable
from ipaddress import IPv6Address, ip_address
from typing import NamedTuple

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from musicsim.errors import AddressError

_DEFAULT_PORTS = {"http": 80, "https": 443}
_HOST = re.compile(
    r"(?:\[([0-9a-f:.]+)\]|([a-z0-9_-]+(?:\.[a-z0-9_-]+)*)\.?)(?::([0-9]{1,5}))?", re.IGNORECASE | re.ASCII
)
_ORIGIN = re.compile(r"(https?)://(.+)")
_READS = ("GET", "HEAD")
_ANSWERS = ("http.response.start", "websocket.http.response.start")
_FRAMES = "frame-ancestors 'self'"
_HEADERS = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin"}


class _Place(NamedTuple):
    host: str
    port: int | None


class _Refusal(NamedTuple):
    status: int
    reason: str


def _normalised(host: str) -> str:
    """A host in one spelling: lower case, numeric addresses in their shortest form, IPv4 inside IPv6 as IPv4."""
    try:
        address = ip_address(host)
    except ValueError:
        return host.lower()
    inside = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(inside or address)


def _is_number(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _is_loopback(host: str) -> bool:
    """Whether a normalised host means this machine itself, by number or by a name that RFC 6761 keeps for it."""
    return ip_address(host).is_loopback if _is_number(host) else f".{host}".endswith(".localhost")


def _place(text: str) -> _Place | None:
    """Host and port of a ``Host`` header, or nothing if it is malformed."""
    found = _HOST.fullmatch(text)
    if found is None:
        return None
    ipv6, name, port = found.groups()
    if (ipv6 and not _is_number(ipv6)) or (port and int(port) > 65535):
        return None
    return _Place(_normalised(ipv6 or name), int(port) if port else None)


def named_hosts() -> frozenset[str]:
    """The hosts that ``MUSICSIM_ALLOWED_HOSTS`` names, separated by commas.

    Raises AddressError if one of them is no name or address of a machine.
    """
    names = [name.strip() for name in os.environ.get("MUSICSIM_ALLOWED_HOSTS", "").split(",")]
    hosts = set()
    for name in filter(None, names):
        place = _place(f"[{name}]" if _is_number(name) and ":" in name else name)
        if place is None or place.port is not None:
            raise AddressError(
                f"{name!r} is not a machine's name or address: write it as in music.example, without http:// and port."
            )
        hosts.add(place.host)
    return frozenset(hosts)


class Guard:
    """ASGI middleware that answers requests to other hosts with 421, and requests of other pages with 403.

    Every answer says that only pages of the app may frame it, that its type is final, and that other sites get no
    referrer.

    Parameters
    ----------
    names : iterable of str
        Hosts by which the app may be reached, next to this machine's own names and the numeric address of the
        connection. Their pages may have any scheme and port: a reverse proxy has its own.
    """

    def __init__(self, app: ASGIApp, names: Iterable[str] = ()) -> None:
        self._app = app
        self._names = frozenset(names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            return await self._app(scope, receive, send)

        async def send_guarded(message: Message) -> None:
            if message["type"] in _ANSWERS:
                _add_headers(MutableHeaders(scope=message))
            await send(message)

        refusal = self._refusal(scope)
        if refusal is None:
            await self._app(self._as_the_page_sees_it(scope), receive, send_guarded)
        else:
            await PlainTextResponse(refusal.reason, refusal.status)(scope, receive, send_guarded)

    def _refusal(self, scope: Scope) -> _Refusal | None:
        headers = Headers(scope=scope)
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        if len(hosts) != 1 or (place := _place(hosts[0])) is None:
            return _Refusal(400, "the request does not say which host it is meant for.")
        if not self._is_ours(place.host, scope):
            return _Refusal(
                421,
                f"{place.host} is not an address of this app: open it at its own address, "
                f"or start it with --allow-host {place.host}.",
            )
        if origins:
            is_ours = len(origins) == 1 and self._is_own_page(origins[0], place, scope)
        elif scope["type"] == "websocket":  # browsers name the page that opens one
            is_ours = bool(scope["client"]) and _is_loopback(_normalised(scope["client"][0]))
        else:
            is_ours = not _is_of_another_page(headers, scope["method"])
        return None if is_ours else _Refusal(403, "another page sent this request: open the app itself.")

    def _as_the_page_sees_it(self, scope: Scope) -> Scope:
        """The request with the host of its page: a proxy may have replaced it, and Streamlit compares the two."""
        origin = Headers(scope=scope).get("origin", "") if scope["type"] == "websocket" else ""
        found = _ORIGIN.fullmatch(origin)
        if found is None:
            return scope
        others = [header for header in scope["headers"] if header[0] != b"host"]
        return {**scope, "headers": [*others, (b"host", found[2].encode())]}

    def _is_ours(self, host: str, scope: Scope) -> bool:
        if _is_loopback(host) or host in self._names:
            return True
        # a number is never the work of DNS
        return _is_number(host) and bool(scope["server"]) and host == _normalised(scope["server"][0])

    def _is_own_page(self, origin: str, asked: _Place, scope: Scope) -> bool:
        found = _ORIGIN.fullmatch(origin)
        page = _place(found[2]) if found else None
        if found is None or page is None:
            return False
        scheme = "https" if scope["scheme"] in ("https", "wss") else "http"
        default = _DEFAULT_PORTS[scheme]
        same = (found[1], page.host, page.port or default) == (scheme, asked.host, asked.port or default)
        return same or page.host in self._names


def _is_of_another_page(headers: Headers, method: str) -> bool:
    """Return whether another page shows, plays or frames the answer, or posts a form; links are fine."""
    navigates = (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")) == ("navigate", "document")
    is_link = navigates and method in _READS
    return headers.get("sec-fetch-site", "none") in ("cross-site", "same-site") and not is_link


def _add_headers(headers: MutableHeaders) -> None:
    """Add the headers that every answer has; keep a stricter policy that an answer has already."""
    for name, value in _HEADERS.items():
        headers.setdefault(name, value)
    policies = headers.getlist("Content-Security-Policy")
    if not policies:
        headers["Content-Security-Policy"] = _FRAMES
    elif not any("frame-ancestors" in policy for policy in policies):
        headers["Content-Security-Policy"] = "; ".join([policies[-1].rstrip("; "), _FRAMES])
