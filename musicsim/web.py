"""Limits for music on web servers, passed to fsspec as options: time, size of responses, ranges and redirects."""

import asyncio
import html
import ipaddress
import re
import socket
from collections.abc import Iterator
from functools import cache
from typing import Any
from urllib.parse import urljoin, urlsplit

REQUEST_S = 60.0  # seconds for one request, from connecting to the last byte; a response has at most 4 MB
MAX_PAGE = 4 << 20  # maximum size in bytes of a page, or of a response to a request without a range
_MAX_REDIRECTS = 5
MAX_FOLDERS, _MAX_FILES, _MAX_DEPTH = 100_000, 1_000_000, 32
_LINK = re.compile(r"""\bhref\s*=\s*["']([^"'<>\n]{1,4000})["']""", re.IGNORECASE)
_RANGE = re.compile(r"bytes=(\d+)-(\d+)")
_PAGES = (None, "text/html", "application/xhtml+xml")
_NO_RANGES = (
    "the server does not support requests for part of a file (HTTP ranges), which musicsim needs. Use a different "
    "server, such as nginx, or copy the files to this machine"
)


def web_options() -> dict[str, Any]:
    """Return the options for fsspec's HTTP file system."""
    import aiohttp

    return {"timeout": aiohttp.ClientTimeout(total=REQUEST_S), "max_redirects": _MAX_REDIRECTS, "get_client": _session}


async def _session(**options: Any) -> Any:
    import aiohttp

    trace = aiohttp.TraceConfig()
    trace.on_request_redirect.append(_check_redirect)
    trace.on_request_end.append(_check_range)
    return aiohttp.ClientSession(**{**options, "response_class": _response_class(), "trace_configs": [trace]})


@cache
def _response_class() -> type:
    import aiohttp

    class BoundedResponse(aiohttp.ClientResponse):
        """A response whose body may not exceed the requested range, or MAX_PAGE without a range."""

        async def read(self) -> bytes:
            if self._body is None:
                limit = _range_size(self.request_info.headers.get("Range")) or MAX_PAGE
                parts, n_bytes = [], 0
                async for part in self.content.iter_chunked(1 << 16):
                    n_bytes += len(part)
                    if n_bytes > limit:
                        self.close()
                        raise OSError(f"the server sent more than the expected {limit:,} bytes")
                    parts.append(part)
                self._body = b"".join(parts)
            return self._body

    return BoundedResponse


def _range_size(header: str | None) -> int | None:
    match = _RANGE.fullmatch(header or "")
    return int(match[2]) - int(match[1]) + 1 if match else None


async def _check_range(_session: Any, _context: Any, params: Any) -> None:
    response, size = params.response, _range_size(params.headers.get("Range"))
    if size is None or response.status != 200:
        return
    if response.content_length is None or response.content_length > size:
        response.close()
        raise OSError(_NO_RANGES)


async def _check_redirect(_session: Any, _context: Any, params: Any) -> None:
    """Refuse redirects from https to http, and to private networks, which others must not reach through musicsim."""
    headers, before = params.response.headers, urlsplit(str(params.url))
    after = urlsplit(urljoin(str(params.url), headers.get("Location") or headers.get("URI") or ""))
    if after.scheme not in ("http", "https") or (before.scheme, after.scheme) == ("https", "http"):
        raise OSError(f"the server redirects from {before.scheme} to {after.scheme or 'nothing'}")
    if after.hostname != before.hostname and not await _is_public_host(after.hostname or ""):
        raise OSError("the server redirects to an address in a private network. Use that address directly")


async def _is_public_host(name: str) -> bool:
    loop = asyncio.get_running_loop()
    try:
        infos = await loop.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return False
    return all(ipaddress.ip_address(str(address[0]).partition("%")[0]).is_global for *_, address in infos)


def is_page(info: dict[str, Any]) -> bool:
    """Return whether fsspec's `info` describes an HTML page, which may list a folder."""
    return info.get("mimetype") in _PAGES


def list_links(system: Any, address: str, info: dict[str, Any]) -> Iterator[str]:
    """Yield the relative paths of files below a folder to which its pages link; `info` comes from fsspec."""
    top = address.rstrip("/") + "/"
    moved = str(info.get("url") or top).partition("?")[0].rstrip("/") + "/"
    folders, seen = [""], {""}
    n_files = 0
    while folders:
        folder = folders.pop()
        page = system.cat_file(top + folder if folder else address).decode("utf-8", "replace")
        for link in dict.fromkeys(_links(page, folder, (top, moved))):
            if link in seen:
                continue
            if not link.endswith("/"):
                n_files += 1
                yield link
            elif link.count("/") <= _MAX_DEPTH:
                seen.add(link)
                folders.append(link)
            if len(seen) > MAX_FOLDERS or n_files > _MAX_FILES:
                raise OSError(
                    f"it lists more than {MAX_FOLDERS:,} folders or {_MAX_FILES:,} files. Add its folders one by one"
                )


def _links(page: str, folder: str, tops: tuple[str, str]) -> Iterator[str]:
    """Yield a page's links to files and folders below its own folder, relative to the top folder."""
    for match in _LINK.finditer(page):
        target = html.unescape(match[1])
        if "?" in target or "#" in target:  # a link such as "sort by name"
            continue
        for top in tops:
            try:
                link = urljoin(top + folder, target)
            except ValueError:
                continue
            below = link.removeprefix(top + folder)
            if below != link and below.strip("/") and "//" not in below:
                yield folder + below
                break
