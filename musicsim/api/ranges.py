"""HTTP range requests for audio."""

import re

from starlette.requests import Request
from starlette.responses import Response

_MAX_BYTES = 4 << 20  # per response: browsers request the whole rest
_RANGE = re.compile(r"bytes=([0-9]{1,15})-([0-9]{0,15})")


def parse_range(request: Request) -> tuple[int, int] | None:
    """Return the first requested byte and the end (exclusive); None without a range."""
    match = _RANGE.fullmatch(request.headers.get("Range", ""))
    if match is None:
        return None
    start = int(match[1])
    return start, min(int(match[2]) + 1 if match[2] else start + _MAX_BYTES, start + _MAX_BYTES)


def respond_with_sound(data: bytes, span: tuple[int, int] | None, n_bytes: int, kind: str) -> Response:
    """Return a response with audio of `n_bytes`, or with its requested part; no data means a range past the end."""
    headers = {"Accept-Ranges": "bytes", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
    if span is None:
        return Response(data, media_type=kind, headers=headers)
    if not data:
        return Response(status_code=416, headers={"Content-Range": f"bytes */{n_bytes}"})
    headers["Content-Range"] = f"bytes {span[0]}-{span[0] + len(data) - 1}/{n_bytes}"
    return Response(data, 206, headers, kind)
