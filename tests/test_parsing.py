"""Concurrent parsing, which Python 3.11 does not support."""

import ast
import gc
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from musicsim.library import Library
from musicsim.parsing import parse_in_turn
from musicsim.ui import app


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="this Python parses in several threads")
@pytest.mark.parametrize("begin", [app.app_options, lambda: Library.open(os.environ["MUSICSIM_LIBRARY"]).close()])
def test_threads_parse_one_at_a_time(begin, monkeypatch, tmp_path):
    at_work = threading.Lock()

    def parse(source, *_args, **_named):
        # as in Python 3.11, two at once are an error
        if not at_work.acquire(blocking=False):
            raise SystemError("AST constructor recursion depth mismatch")
        time.sleep(0.01)
        at_work.release()
        return ast.Expression(ast.Constant(source))

    monkeypatch.setattr(ast, "parse", parse)
    monkeypatch.setenv("MUSICSIM_LIBRARY", str(tmp_path))
    begin()
    in_turn = ast.parse
    parse_in_turn()
    assert ast.parse is in_turn  # already patched
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ast.literal_eval, "abcdefgh")) == list("abcdefgh")


class ParsesAtItsEnd:
    """Garbage whose finalizer parses deep in the stack."""

    def __init__(self):
        self.itself = self

    def __del__(self):
        self.parse_below(30)

    def parse_below(self, depth):
        return self.parse_below(depth - 1) if depth else ast.parse("1 + 1")


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="in this Python, finalizers may parse while another call does")
def test_finalizers_do_not_parse_during_parsing(monkeypatch):
    monkeypatch.setattr(ast, "parse", getattr(ast.parse, "__wrapped__", ast.parse))
    parse_in_turn()
    source = "\n".join(f"x{i} = [a + {i} for a in range({i})]" for i in range(300))
    for _ in range(20):
        for _ in range(50):
            ParsesAtItsEnd()
        ast.parse(source)
        assert gc.isenabled()
