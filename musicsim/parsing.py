"""A lock around :func:`ast.parse`, which is not thread-safe in Python 3.11 (CPython issue 106905)."""

import ast
import functools
import sys
import threading
from typing import Any

_FIXED = (3, 12)


def parse_in_turn() -> None:
    """Allow only one thread of this process to parse at a time; do nothing if Python has the fix."""
    if sys.version_info >= _FIXED or hasattr(ast.parse, "__wrapped__"):
        return
    parse, lock = ast.parse, threading.RLock()  # reentrant, because a finalizer that runs during parsing may also parse

    @functools.wraps(parse)
    def parse_with_lock(*args: Any, **kwargs: Any) -> Any:
        with lock:
            return parse(*args, **kwargs)

    ast.parse = parse_with_lock
