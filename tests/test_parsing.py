"""Concurrent parsing, which Python 3.11 does not support."""

import ast
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
