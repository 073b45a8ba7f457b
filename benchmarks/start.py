"""Seconds until the command line responds and the app is up, from the start of the process.

Commands run one after another in alternating rounds, each in a separate process, and the median of their seconds
counts. A first round fills the caches of the system and compiles our modules, as an installation does. The app is up
when it responds to the first request. Python itself (``python -c pass``) and Streamlit's own page (``streamlit hello``)
are measured in the same rounds.

``--library FOLDER`` selects a library to open, without changing it; the default is the demo collection.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

from benchmarks.libraries import demo_library, read_only
from benchmarks.support.app import SILENT, served
from benchmarks.support.report import Claim, Progress, Row, Settings, at_most, main

_REPEATS, _FULL_REPEATS = 5, 15
_PYTHON, _HELLO = "python -c pass", "streamlit hello"
_MAX_S = {"musicsim --help": 0.25, "musicsim info": 0.5, "musicsim similar ID": 1.5, "musicsim app": 1.0}


def _ended(*arguments: str) -> float:
    """Return the seconds until a Python process with these arguments has ended."""
    started = time.perf_counter()
    subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - started


def _up(*arguments: str) -> float:
    """Return the seconds until a server responds."""
    started = time.perf_counter()
    with served([sys.executable, "-m", *arguments]):
        return time.perf_counter() - started


def _starts(folder: Path, song_id: int) -> dict[str, Callable[[], float]]:
    """Return the measured programs by name."""
    here = f"--library={folder}"
    return {
        _PYTHON: partial(_ended, "-c", "pass"),
        "musicsim --help": partial(_ended, "-m", "musicsim", "--help"),
        "musicsim info": partial(_ended, "-m", "musicsim", "info", here),
        "musicsim similar ID": partial(_ended, "-m", "musicsim", "similar", str(song_id), here),
        _HELLO: partial(_up, "streamlit", "hello", "--server.port={port}", *SILENT),
        "musicsim app": partial(_up, "musicsim", "app", "--no-browser", "--port={port}", here),
    }


def run(settings: Settings, progress: Progress) -> tuple[list[Row], list[Claim]]:
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # with it every process would compile them again
    with read_only(settings.library) if settings.library else demo_library(settings.seed, progress) as library:
        ids = library.table().ids
        settings.facts["songs"] = len(ids)
        starts = _starts(library.folder, int(ids[0]))
    seconds: dict[str, list[float]] = {name: [] for name in starts}
    for turn in range(1 + (_FULL_REPEATS if settings.full else _REPEATS)):
        for name, start in starts.items():
            taken = start()
            progress(f"{name}: {taken:.2f} s")
            if turn:
                seconds[name].append(taken)
    medians = {name: median(of) for name, of in seconds.items()}
    rows = [
        {
            "what": name, "median_s": taken, "slowest_s": max(seconds[name]),
            "of python": taken / medians[_PYTHON], "of hello": taken / medians[_HELLO],
        }
        for name, taken in medians.items()
    ]  # fmt: skip
    return rows, [at_most(f"{name}, s", medians[name], most) for name, most in _MAX_S.items()]


if __name__ == "__main__":
    main(
        "start", __doc__.splitlines()[0], run, rivals=("streamlit", "typer", "sqlalchemy"), takes_library=True,
        short="5 of 15 repeats",
    )  # fmt: skip
