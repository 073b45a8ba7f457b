"""Parts of a sound, as browsers ask for them."""

import re

from starlette.requests import Request
from starlette.responses import Response

_AT_ONCE = 4 << 20  # bytes of one answer: browsers ask for all that is left
_RANGE = re.compile(r"bytes=([0-9]{1,15})-([0-9]{0,15})")


def asked_range(request: Request) -> tuple[int, int] | None:
    """The first byte that is asked for, and the first one behind; None where all is asked for."""
    asked = _RANGE.fullmatch(request.headers.get("Range", ""))
    if asked is None:
        return None
    start = int(asked[1])
    return start, min(int(asked[2]) + 1 if asked[2] else start + _AT_ONCE, start + _AT_ONCE)


def sound_response(data: bytes, asked: tuple[int, int] | None, n_bytes: int, kind: str) -> Response:
    """A sound of `n_bytes`, or the part of it that was asked for; where that is empty, the part lies behind its end."""
    headers = {"Accept-Ranges": "bytes", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
    if asked is None:
        return Response(data, media_type=kind, headers=headers)
    if not data:
        return Response(status_code=416, headers={"Content-Range": f"bytes */{n_bytes}"})
    headers["Content-Range"] = f"bytes {asked[0]}-{asked[0] + len(data) - 1}/{n_bytes}"
    return Response(data, 206, headers, kind)
