"""Undisturbed calls of :func:`ast.parse`, which neither threads nor finalizers may enter in Python 3.11.

All calls share one counter of depth (CPython issue 106905). If another call changes it, this one raises a SystemError.
"""

import ast
import functools
import gc
import sys
import threading
from typing import Any

_FIXED = (3, 12)


def parse_in_turn() -> None:
    """Allow one call of :func:`ast.parse` at a time, without garbage collection; do nothing if Python has the fix."""
    if sys.version_info >= _FIXED or hasattr(ast.parse, "__wrapped__"):
        return
    parse, lock = ast.parse, threading.RLock()

    @functools.wraps(parse)
    def parse_with_lock(*args: Any, **kwargs: Any) -> Any:
        with lock:
            was_enabled = gc.isenabled()
            gc.disable()  # garbage collection runs finalizers, which may parse or let other threads run
            try:
                return parse(*args, **kwargs)
            finally:
                if was_enabled:
                    gc.enable()

    ast.parse = parse_with_lock
