"""Parts of a sound, as browsers ask for them."""

import re

from starlette.requests import Request

_AT_ONCE = 4 << 20  # bytes of one answer: browsers ask for all that is left
_RANGE = re.compile(r"bytes=([0-9]{1,15})-([0-9]{0,15})")


def asked_range(request: Request) -> tuple[int, int] | None:
    """The first byte that is asked for, and the first one behind; None where all is asked for."""
    asked = _RANGE.fullmatch(request.headers.get("Range", ""))
    if asked is None:
        return None
    start = int(asked[1])
    return start, min(int(asked[2]) + 1 if asked[2] else start + _AT_ONCE, start + _AT_ONCE)
