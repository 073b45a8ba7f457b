"""Tests that the loops of all methods are compiled at the installation."""

import os
import subprocess
import sys

import pytest

# a loop that others call is in their compiled code, and in a file of its own
_CHECK = """
import sys
from pathlib import Path
from numba.core.dispatcher import Dispatcher
from musicsim.warm_up import PACKAGES
for compile_package in PACKAGES.values():
    compile_package()
loops = {loop for name, module in list(sys.modules.items()) if name.startswith("musicsim.")
         for loop in vars(module).values() if isinstance(loop, Dispatcher)}
print(len(loops))
for loop in loops:
    stem = f"{loop.py_func.__module__.rpartition('.')[2]}.{loop.py_func.__name__}-"
    if not any(Path(loop.stats.cache_path).glob(f"{stem}*.nbi")):
        print(stem, "was not compiled")
    if loop.stats.cache_misses:
        print(stem, "was compiled again")
"""

_IMPORT = "from musicsim.audio import import_librosa; import_librosa()"
_IMPORT_LATER = f"import numba; numba.njit(lambda x: x)(1); {_IMPORT}"  # the file's content depends on what came before


@pytest.mark.long
def test_all_loops_are_compiled_at_the_installation():
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", _CHECK], capture_output=True, text=True, check=True)
    n_loops, *problems = done.stdout.splitlines()
    assert int(n_loops) > 100
    assert not problems


@pytest.mark.long
def test_processes_that_import_librosa_at_once_compile_it_once(tmp_path):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    both = [subprocess.Popen([sys.executable, "-c", code], env=environment) for code in (_IMPORT, _IMPORT_LATER)]
    assert [process.wait() for process in both] == [0, 0]
    subprocess.run([sys.executable, "-c", _IMPORT], env=environment, check=True)  # numba #10128: it would crash
