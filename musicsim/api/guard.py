"""Protection against other web pages: requests must go to an address of the app and come from its own pages.

Another page in the user's browser can send requests to this machine. It can even read the responses if its own host
name resolves to 127.0.0.1 (DNS rebinding). ``Host`` is the address that the browser believes it is talking to, and
``Origin`` is the page that sends the request. The guard checks both before anything else.
"""

import os
import re
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, ip_address

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
_RESPONSES = ("http.response.start", "websocket.http.response.start")
_FRAMES = "frame-ancestors 'self'"
_HEADERS = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin"}


def _ip(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def _normalize(host: str) -> str:
    """Return a host name in lower case, or an IP address in its shortest form (IPv4 if it is IPv4-mapped)."""
    ip = _ip(host)
    return str(getattr(ip, "ipv4_mapped", None) or ip) if ip else host.lower()


def _is_loopback(host: str) -> bool:
    """Return whether a normalized host is a loopback address, or a name that RFC 6761 reserves for loopback."""
    ip = _ip(host)
    return ip.is_loopback if ip else f".{host}".endswith(".localhost")


def _parse_host(text: str) -> tuple[str, int | None] | None:
    match = _HOST.fullmatch(text)
    if match is None:
        return None
    ipv6, name, port = match.groups()
    if (ipv6 and not _ip(ipv6)) or (port and int(port) > 65535):
        return None
    return _normalize(ipv6 or name), int(port) if port else None


def read_allowed_hosts() -> frozenset[str]:
    """Return the hosts in ``MUSICSIM_ALLOWED_HOSTS``; raise AddressError if one is not a host name or address."""
    names = [name.strip() for name in os.environ.get("MUSICSIM_ALLOWED_HOSTS", "").split(",")]
    hosts = set()
    for name in filter(None, names):
        parsed = _parse_host(f"[{name}]" if _ip(name) and ":" in name else name)
        if parsed is None or parsed[1] is not None:
            raise AddressError(
                f"{name!r} is not a host name or address: write it like music.example, without http:// or a port."
            )
        hosts.add(parsed[0])
    return frozenset(hosts)


class Guard:
    """ASGI middleware that refuses requests to other hosts with 421, and requests from other pages with 403.

    It adds headers to responses: only the app's own pages can embed them, browsers do not guess their types, and other
    sites receive no referrer. `names` are host names of the app, in addition to loopback names and the connection's IP
    address. Pages at these hosts can have any scheme and port, because a reverse proxy may use different ones.
    """

    def __init__(self, app: ASGIApp, names: Iterable[str] = ()) -> None:
        self._app = app
        self._names = frozenset(names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            return await self._app(scope, receive, send)

        async def send_guarded(message: Message) -> None:
            if message["type"] in _RESPONSES:
                _add_headers(MutableHeaders(scope=message))
            await send(message)

        refusal = self._refusal(scope)
        if refusal is None:
            await self._app(_take_host_of_page(scope), receive, send_guarded)
        else:
            await refusal(scope, receive, send_guarded)

    def _refusal(self, scope: Scope) -> PlainTextResponse | None:
        headers = Headers(scope=scope)
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        if len(hosts) != 1 or (target := _parse_host(hosts[0])) is None:
            return PlainTextResponse("the request does not say which host it is for.", 400)
        # an IP address in Host rules out DNS rebinding
        host, port = target
        is_address = _ip(host) and scope["server"] and host == _normalize(scope["server"][0])
        if not (_is_loopback(host) or host in self._names or is_address):
            return PlainTextResponse(
                f"{host} is not an address of this app: open it at its own address, "
                f"or start it with --allow-host {host}.",
                421,
            )
        if origins:
            is_own = len(origins) == 1 and self._is_own_page(origins[0], host, port, scope)
        elif scope["type"] == "websocket":  # browsers always send the origin of a WebSocket
            is_own = bool(scope["client"]) and _is_loopback(_normalize(scope["client"][0]))
        else:
            is_own = not _is_from_other_page(headers, scope["method"])
        return None if is_own else PlainTextResponse("a different site sent this request: open the app itself.", 403)

    def _is_own_page(self, origin: str, host: str, port: int | None, scope: Scope) -> bool:
        match = _ORIGIN.fullmatch(origin)
        page = _parse_host(match[2]) if match else None
        if match is None or page is None:
            return False
        scheme = "https" if scope["scheme"] in ("https", "wss") else "http"
        default = _DEFAULT_PORTS[scheme]
        is_same = (match[1], page[0], page[1] or default) == (scheme, host, port or default)
        return is_same or page[0] in self._names


def _take_host_of_page(scope: Scope) -> Scope:
    """Replace a WebSocket's host with its origin's host: Streamlit compares them, and a proxy may change the host."""
    origin = Headers(scope=scope).get("origin", "") if scope["type"] == "websocket" else ""
    match = _ORIGIN.fullmatch(origin)
    if match is None:
        return scope
    others = [header for header in scope["headers"] if header[0] != b"host"]
    return {**scope, "headers": [*others, (b"host", match[2].encode())]}


def _is_from_other_page(headers: Headers, method: str) -> bool:
    """Return whether another site embeds the response or posts a form. Links from other sites are allowed."""
    navigates = (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")) == ("navigate", "document")
    is_link = navigates and method in _READS
    return headers.get("sec-fetch-site", "none") in ("cross-site", "same-site") and not is_link


def _add_headers(headers: MutableHeaders) -> None:
    """Add the headers that every response has; keep a frame policy that the response already has."""
    for name, value in _HEADERS.items():
        headers.setdefault(name, value)
    policies = headers.getlist("Content-Security-Policy")
    if not policies:
        headers["Content-Security-Policy"] = _FRAMES
    elif not any("frame-ancestors" in policy for policy in policies):
        headers["Content-Security-Policy"] = "; ".join([policies[-1].rstrip("; "), _FRAMES])
