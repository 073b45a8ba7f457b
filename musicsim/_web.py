"""Limits for music on web servers: time, the size of an answer, ranges, and redirects.

fsspec sends the requests. It reads answers whole and follows any redirect; its options allow these limits.
"""

import asyncio
import html
import ipaddress
import re
import socket
from collections.abc import Iterator
from functools import cache
from typing import Any
from urllib.parse import urljoin, urlsplit

REQUEST_S = 60.0
"""Seconds that one request may take, from the connection to the last byte of at most 4 MB."""
MAX_PAGE = 4 << 20
"""Bytes that are read of a page or of an answer to a request without a range."""
_MAX_REDIRECTS = 5
_MAX_FOLDERS, _MAX_FILES, _MAX_DEPTH = 100_000, 1_000_000, 32
_LINK = re.compile(r"""\bhref\s*=\s*["']([^"'<>\n]{1,4000})["']""", re.IGNORECASE)
_RANGE = re.compile(r"bytes=(\d+)-(\d+)")
_PAGES = (None, "text/html", "application/xhtml+xml")
_NO_RANGES = (
    "its server does not answer requests for a part of a file (HTTP ranges), which musicsim needs. Use another server, "
    "such as nginx, or copy the files to this machine"
)


def web_options() -> dict[str, Any]:
    """Options for fsspec's file system of web servers."""
    import aiohttp

    return {"timeout": aiohttp.ClientTimeout(total=REQUEST_S), "max_redirects": _MAX_REDIRECTS, "get_client": _session}


async def _session(**options: Any) -> Any:
    import aiohttp

    trace = aiohttp.TraceConfig()
    trace.on_request_redirect.append(_check_redirect)
    trace.on_request_end.append(_check_range)
    ours = {"response_class": _response_class(), "trace_configs": [trace]}
    return aiohttp.ClientSession(**{**options, **ours})


@cache
def _response_class() -> type:
    import aiohttp

    class BoundedResponse(aiohttp.ClientResponse):
        """An answer whose body is read up to the requested range, or up to MAX_PAGE."""

        async def read(self) -> bytes:
            if self._body is None:
                limit = _n_asked(self.request_info.headers.get("Range")) or MAX_PAGE
                parts, n_bytes = [], 0
                async for part in self.content.iter_chunked(1 << 16):
                    n_bytes += len(part)
                    if n_bytes > limit:
                        self.close()
                        raise OSError(f"its server sends more than the {limit:,} bytes that it should")
                    parts.append(part)
                self._body = b"".join(parts)
            return self._body

    return BoundedResponse


def _n_asked(header: str | None) -> int | None:
    match = _RANGE.fullmatch(header or "")
    return int(match[2]) - int(match[1]) + 1 if match else None


async def _check_range(_session: Any, _context: Any, params: Any) -> None:
    """Refuse a whole file as the answer to a request for a part of it."""
    response, n_asked = params.response, _n_asked(params.headers.get("Range"))
    if n_asked is None or response.status != 200:
        return
    if response.content_length is None or response.content_length > n_asked:
        response.close()
        raise OSError(_NO_RANGES)


async def _check_redirect(_session: Any, _context: Any, params: Any) -> None:
    """Refuse a redirect to a private network, so that no server uses this machine to reach its neighbors.

    Other ports and paths of the same host are allowed, and so are public hosts; from https to http nothing is.
    """
    headers = params.response.headers
    before = urlsplit(str(params.url))
    after = urlsplit(urljoin(str(params.url), headers.get("Location") or headers.get("URI") or ""))
    if after.scheme not in ("http", "https") or (before.scheme, after.scheme) == ("https", "http"):
        raise OSError(f"its server redirects from {before.scheme} to {after.scheme or 'nothing'}")
    if after.hostname != before.hostname and not await _is_public_host(after.hostname or ""):
        raise OSError("its server redirects to an address of a private network. Give that address itself")


async def _is_public_host(name: str) -> bool:
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return False
    return all(ipaddress.ip_address(str(where[0]).partition("%")[0]).is_global for *_, where in found)


def is_page(info: dict[str, Any]) -> bool:
    """Tell a page, which may list a folder, from a file."""
    return info.get("mimetype") in _PAGES


def list_links(system: Any, address: str, info: dict[str, Any]) -> Iterator[str]:
    """Yield the files below a folder, relative to it, as its pages link them.

    Parameters
    ----------
    address : str
        The folder.
    info : dict
        fsspec's information on the folder; it names the address after redirects.

    Raises
    ------
    OSError
        If a page cannot be read, or the folders do not end.
    """
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
            if len(seen) > _MAX_FOLDERS or n_files > _MAX_FILES:
                raise OSError(
                    f"it lists more than {_MAX_FOLDERS:,} folders or {_MAX_FILES:,} files. Name its folders one by one"
                )


def _links(page: str, folder: str, tops: tuple[str, str]) -> Iterator[str]:
    """Yield what a page links below its folder, relative to the top folder."""
    for match in _LINK.finditer(page):
        target = html.unescape(match[1])
        if "?" in target or "#" in target:  # "sort by name" and the like
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
