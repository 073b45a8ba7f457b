"""Parsing in one thread at a time, where Python cannot do it in several.

In Python 3.11 two threads that are in :func:`ast.parse` at once now and then end in "SystemError: AST constructor
recursion depth mismatch": the depth is counted for all of them together (CPython issue 106905). Streamlit parses pages,
and numpy the head of every array that is read; of some hundred visitors who came together, one met it, and an import
whose songs were encoded by two threads.
"""

import ast
import functools
import sys
import threading
from typing import Any

_MENDED = (3, 12)


def parse_in_turn() -> None:
    """Let threads of this process wait for each other before they parse; where Python is mended, nothing is done."""
    if sys.version_info >= _MENDED or hasattr(ast.parse, "__wrapped__"):
        return
    parse, turn = ast.parse, threading.RLock()  # what is collected while a thread parses may parse, too

    @functools.wraps(parse)
    def waiting(*args: Any, **kwargs: Any) -> Any:
        with turn:
            return parse(*args, **kwargs)

    ast.parse = waiting
