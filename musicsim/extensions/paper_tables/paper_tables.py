"""The papers' tables with our numbers: results of the experiments in ``experiments``, and short runs of them.

Results that come with the program are in ``docs/results``. Results from this machine are in
``data/experiments/results``. The newer result is shown. Experiments need a checkout.
"""

import ast
import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

import musicsim
from musicsim.errors import LibraryError, NotFoundError
from musicsim.library import Library, atomic_path
from musicsim.progress import Canceled, Progress

Row = Mapping[str, Any]

PAPERS = ("paper", "thesis")
_SPREADS = (" deviation", " sd")
_POLL_S = 0.25
_PATIENCE_S = 10.0
_MAX_MESSAGE = 300  # characters


class NothingMeasured(LibraryError):
    """An experiment returned no rows because its data are missing; the message names the data."""


@dataclass(frozen=True, slots=True)
class PaperTable:
    name: str
    date: str  # ISO 8601
    machine: dict[str, Any]  # cores, CPU, versions
    settings: dict[str, Any]  # seed, splits, protocol, seconds
    rows: list[dict[str, Any]]
    claims: list[dict[str, Any]]  # claim, value, goal, holds
    is_own: bool  # whether the experiment ran on this machine
    commit: str = ""  # commit of the program; older results have neither a commit nor inputs
    inputs: dict[str, str] = field(default_factory=dict)  # maps the name of each input to its SHA-256


def _checkout() -> Path | None:
    """Return the folder above the package, or None if it is not a checkout."""
    folder = Path(musicsim.__file__).resolve().parents[1]
    is_checkout = (folder / "experiments" / "__init__.py").exists() and (folder / "pyproject.toml").exists()
    return folder if is_checkout else None


def experiments() -> dict[str, str]:
    """Return a dict from the name of each experiment to its title; empty without a checkout."""
    checkout = _checkout()
    files = sorted(checkout.glob("experiments/[!_]*.py")) if checkout else []
    return {file.stem: _read_title(file, file.stat().st_mtime_ns) for file in files}


@lru_cache(maxsize=256)
def _read_title(file: Path, _changed_ns: int) -> str:
    """Return the first line of a script's docstring; parsing all of them takes half a second."""
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8")))
    return (text or file.stem).splitlines()[0]


def find_page(name: str) -> str:
    """Return the path of the page in the documentation with an experiment's table; "" if there is none."""
    checkout = _checkout()
    if checkout is None:
        return ""
    mark = f"<!-- results: {name} -->"
    found = (page for page in checkout.glob("docs/**/*.md") if mark in page.read_text(encoding="utf-8"))
    return next((page.relative_to(checkout).as_posix() for page in found), "")


def short_form(name: str, package: str = "experiments") -> str:
    """Return how the short form of an experiment or benchmark differs, as declared in its call of ``main``.

    "" without a short form, or without a checkout.
    """
    text: str = read_declared(name, "short", package) or ""
    return text


def read_declared(name: str, option: str, package: str = "experiments") -> Any:
    """Return an option that an experiment or benchmark passes to ``main``; None if it does not, or has no checkout."""
    checkout = _checkout()
    if checkout is None:
        return None
    text = (checkout / package / f"{name}.py").read_text(encoding="utf-8")
    words = (word for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call) for word in node.keywords)
    return next((ast.literal_eval(word.value) for word in words if word.arg == option), None)


def load_table(name: str) -> PaperTable | None:
    """Load the newest result of an experiment; None if it has none. Raises LibraryError for an unreadable result."""
    checkout = _checkout()
    if checkout is None:
        return None
    tables = [
        _read(checkout / "docs" / "results" / f"{name}.json", is_own=False),
        _read(_own_result(checkout, name), is_own=True),
    ]
    return max((table for table in tables if table is not None), key=lambda table: table.date, default=None)


def _own_result(checkout: Path, name: str) -> Path:
    return checkout / "data" / "experiments" / "results" / f"{name}.json"


def _read(path: Path, *, is_own: bool) -> PaperTable | None:
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
        required = {key: report[key] for key in ("name", "date", "machine", "settings", "rows", "claims")}
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise LibraryError(
            f"{path}: this is not an experiment result ({error}). Delete the file and run the experiment again."
        ) from error
    optional = {key: report[key] for key in ("commit", "inputs") if key in report}
    return PaperTable(**required, **optional, is_own=is_own)


def split_tables(rows: Sequence[Row]) -> list[list[Row]]:
    """Group rows by the name of their first column into tables, in order of first appearance."""
    tables: dict[str, list[Row]] = {}
    for row in rows:
        tables.setdefault(next(iter(row), ""), []).append(row)
    return list(tables.values())


def order_columns(rows: Sequence[Row]) -> list[tuple[str, str | None]]:
    """Return (column, column of its deviations) pairs in display order; a paper's column follows ours."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    measure_of = {name: measure for name in names if (measure := _measure_of(name, names)) is not None}
    ours = [name for name in names if name not in measure_of and not name.startswith(PAPERS)]
    figures = [name for name in ours if any(isinstance(row.get(name), float) for row in rows)]
    ordered = list(ours)
    for name in reversed([n for n in names if n.startswith(PAPERS) and n not in measure_of]):
        counterpart = name.split(maxsplit=1)[1].strip() if " " in name else ""
        previous = counterpart if counterpart in ours else figures[0] if figures else None
        ordered.insert(ordered.index(previous) + 1 if previous else len(ordered), name)
    spread_of = {measure: name for name, measure in measure_of.items()}
    return [(name, spread_of.get(name)) for name in ordered]


def _measure_of(name: str, names: Sequence[str]) -> str | None:
    """Return the column whose deviations are in the column `name`; None if `name` does not contain deviations."""
    if name == "sd" and names.index(name) > 0:
        return names[names.index(name) - 1]
    bases = (name.removesuffix(ending) for ending in _SPREADS if name.endswith(ending))
    return next((base for base in bases if base in names), None)


def run_experiment(name: str, progress: Progress, options: Sequence[str] = ()) -> bool:
    """Run the short version of an experiment in its own process and store the result; return False if canceled."""
    checkout = _checkout()
    if checkout is None or name not in experiments():
        raise NotFoundError(f"the experiment {name!r} was not found. Experiments need a checkout of the repository.")
    with tempfile.TemporaryFile("w+", encoding="utf-8") as out, _start(checkout, name, out, options) as process:
        last = ""
        for line in _lines(process):
            last = line or last
            try:
                progress(last)
            except Canceled:
                return False
        if process.wait() != 0:
            raise LibraryError(f"the experiment {name} ended with an error: {last[-_MAX_MESSAGE:]}")
        out.seek(0)
        result = out.read().strip().rpartition("\n")[2]
    with atomic_path(_own_result(checkout, name)) as temporary:
        temporary.write_text(result + "\n", encoding="utf-8")
        table = _read(temporary, is_own=True)  # raises an error before a good result is replaced
        if table is not None and not table.rows:
            raise NothingMeasured(
                f"the experiment {name} has no result: {table.settings.get('data', 'it returned no rows')}"
            )
    return True


def run_job(_library: Library, *, name: str, progress: Any) -> bool:
    return run_experiment(name, progress)


def _end(process: subprocess.Popen[str], signal_name: str) -> None:
    """Send a signal to a process and its children; Windows has no signals for groups, so there only to the process."""
    if hasattr(os, "killpg"):
        os.killpg(process.pid, getattr(signal, signal_name))
    else:
        process.kill()


@contextlib.contextmanager
def _start(checkout: Path, name: str, out: IO[str], options: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    """Start an experiment in a process, and end the process and its children after the block."""
    process = subprocess.Popen(
        [sys.executable, "-m", f"experiments.{name}", "--json", *options],
        cwd=checkout,
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        yield process
    finally:
        for signal_name in ("SIGTERM", "SIGKILL"):
            if process.poll() is not None:
                break
            _end(process, signal_name)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_PATIENCE_S)
        assert process.stderr is not None
        process.stderr.close()


def _lines(process: subprocess.Popen[str]) -> Iterator[str]:
    """Yield progress lines as they arrive, and an empty string after each pause, so that the caller can cancel."""
    lines: queue.Queue[str | None] = queue.Queue()

    def read() -> None:
        with contextlib.suppress(ValueError):  # the stream was closed during reading
            for line in process.stderr or ():
                lines.put(line.strip())
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    while True:
        try:
            line = lines.get(timeout=_POLL_S)
        except queue.Empty:
            line = ""
        if line is None:
            return
        yield line
