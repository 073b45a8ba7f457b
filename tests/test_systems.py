"""Nothing refuses other systems without need: modules that only Unix has are optional, for example.

These tests run on Linux. They show that musicsim can be imported elsewhere, and not that all of it works there.
"""

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from musicsim.explorer import jobs
from tests.pythons import IMPORT_ALL
from tests.waiting import PATIENCE_S

# Libraries may use these modules on Unix; they are loaded first, so that only imports by musicsim fail.
_LIBRARIES = ("filelock", "fsspec", "multiprocessing.util", "numba", "distributed", "streamlit", "uvicorn", "pymilvus")
_UNIX_ONLY = ("fcntl", "resource", "pwd", "grp", "termios")
_WITHOUT = f"""
import contextlib, importlib, sys
for name in {_LIBRARIES}:
    with contextlib.suppress(ImportError):
        importlib.import_module(name)
sys.modules.update(dict.fromkeys({_UNIX_ONLY}))
"""


@pytest.mark.parametrize("name", _UNIX_ONLY)
def test_hidden_modules_cannot_be_imported(name):
    done = subprocess.run(
        [sys.executable, "-c", f"{_WITHOUT}\nimport {name}"], capture_output=True, text=True, check=False
    )
    assert f"import of {name} halted" in done.stderr


def test_all_modules_are_imported_without_those_of_unix():
    command = [sys.executable, "-c", _WITHOUT + IMPORT_ALL]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("handle", "waited", "is_running"), [(0, 0, False), (7, 0, False), (7, 0x102, True)])
def test_windows_is_asked_for_a_process_without_a_signal(monkeypatch, handle, waited, is_running):
    closed = []
    kernel = SimpleNamespace(
        OpenProcess=lambda *_: handle, WaitForSingleObject=lambda *_: waited, CloseHandle=closed.append
    )
    monkeypatch.setattr(jobs.ctypes, "windll", SimpleNamespace(kernel32=kernel), raising=False)
    monkeypatch.setattr(jobs.sys, "platform", "win32")
    monkeypatch.setattr(os, "kill", None)  # on Windows, 0 is Ctrl+C
    assert jobs.is_alive(SimpleNamespace(pid=2**22 + 1)) is is_running
    assert closed == [handle] * bool(handle)
