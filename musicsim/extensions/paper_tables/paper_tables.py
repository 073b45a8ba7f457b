"""Tables of the papers with our numbers: what `experiments/` has printed, and a short run of it.

An experiment prints one JSON object (``python -m experiments.NAME --json``). Those that are kept with the program lie
in ``docs/results``, those of this machine in ``data/experiments/results``; the newer one of both is shown. An
installed package has no experiments: they need a checkout.
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
from pathlib import Path
from typing import IO, Any

import musicsim
from musicsim.errors import LibraryError, NotFoundError
from musicsim.library.disk.arrays import atomic_path
from musicsim.progress import Canceled, Progress

Row = Mapping[str, Any]

PAPERS = ("paper", "thesis")
_SPREADS = (" deviation", " sd")
_SPREAD = "sd"
_ASK_EVERY_S = 0.25
_PATIENCE_S = 10.0
_TOLD_OF_A_FAILURE = 300  # characters


class NothingMeasured(LibraryError):
    """An experiment ended well, without a row: what it needs is not here, and the message says what."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """An experiment of the checkout: its name, and the first line on what it asks."""

    name: str
    title: str


@dataclass(frozen=True, slots=True)
class PaperTable:
    """What an experiment printed."""

    name: str
    date: str  # ISO 8601
    # as printed: cores, CPU, versions; seed, splits, protocol, seconds
    machine: dict[str, Any]
    settings: dict[str, Any]
    rows: list[dict[str, Any]]  # lines of the table
    claims: list[dict[str, Any]]  # claim, value, goal, holds
    is_own: bool  # whether it was run here, not kept with the program
    commit: str = ""  # of the program; older results do not say it, nor the inputs
    inputs: dict[str, str] = field(default_factory=dict)  # SHA-256 by name


def _checkout() -> Path | None:
    """The folder above the package, if it is a checkout."""
    folder = Path(musicsim.__file__).resolve().parents[1]
    is_checkout = (folder / "experiments" / "__init__.py").exists() and (folder / "pyproject.toml").exists()
    return folder if is_checkout else None


def experiments() -> list[Experiment]:
    """The experiments of the checkout by name; none where there is no checkout."""
    checkout = _checkout()
    if checkout is None:
        return []
    files = sorted(checkout.glob("experiments/[!_]*.py"))
    return [Experiment(file.stem, _title(file)) for file in files]


def _title(file: Path) -> str:
    words = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or file.stem
    return words.splitlines()[0]


def load_table(name: str) -> PaperTable | None:
    """The newest result of an experiment, None before there is one.

    Raises LibraryError if a result cannot be read; the file is named.
    """
    checkout = _checkout()
    if checkout is None:
        return None
    found = [_read(checkout / "docs" / "results" / f"{name}.json", is_own=False)]
    found.append(_read(_own(checkout, name), is_own=True))
    return max((table for table in found if table is not None), key=lambda table: table.date, default=None)


def _own(checkout: Path, name: str) -> Path:
    return checkout / "data" / "experiments" / "results" / f"{name}.json"


def _read(path: Path, *, is_own: bool) -> PaperTable | None:
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
        parts = {n: report[n] for n in ("name", "date", "machine", "settings", "rows", "claims")}
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise LibraryError(
            f"{path}: this is not an experiment result ({error}). Delete it and run the experiment again."
        ) from error
    since = {n: report[n] for n in ("commit", "inputs") if n in report}
    return PaperTable(**parts, **since, is_own=is_own)


def parted(rows: Sequence[Row]) -> list[list[Row]]:
    """The rows of each table: those whose first column is the same, in the order in which they were printed."""
    tables: dict[str, list[Row]] = {}
    for row in rows:
        tables.setdefault(next(iter(row), ""), []).append(row)
    return list(tables.values())


def ordered_columns(rows: Sequence[Row]) -> list[tuple[str, str | None]]:
    """Columns of a table, those of the papers beside ours, each with the column of its spread, if it has one.

    "paper" stands after our first figure that has one, "paper NAME" or "thesis NAME" after NAME. "NAME sd", "NAME
    deviation", and a bare "sd" for the column before it, are spreads and no columns of their own.
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    spreads = {name: of for name in names if (of := _spread_of(name, names)) is not None}
    ours = [name for name in names if name not in spreads and not name.startswith(PAPERS)]
    figures = [name for name in ours if any(isinstance(row.get(name), float) for row in rows)]
    ordered = list(ours)
    for name in reversed([n for n in names if n.startswith(PAPERS) and n not in spreads]):
        of = name.split(maxsplit=1)[1].strip() if " " in name else ""
        beside = of if of in ours else figures[0] if figures else None
        ordered.insert(ordered.index(beside) + 1 if beside else len(ordered), name)
    spread_of = {of: name for name, of in spreads.items()}
    return [(name, spread_of.get(name)) for name in ordered]


def _spread_of(name: str, names: Sequence[str]) -> str | None:
    """The column that this one is the spread of."""
    if name == _SPREAD and names.index(name) > 0:
        return names[names.index(name) - 1]
    for ending in _SPREADS:
        if name.endswith(ending) and name.removesuffix(ending) in names:
            return name.removesuffix(ending)
    return None


def run_experiment(name: str, progress: Progress, options: Sequence[str] = ()) -> bool:
    """Do the short run of an experiment in a process of its own, and keep what it prints.

    `progress` gets the last line of output a few times a second. If it cancels the run, the result is False, and the
    earlier result stays. `options` are further ones of the experiment's command.

    Raises NotFoundError if there is no such experiment here; LibraryError, with its last words, if it fails;
    NothingMeasured if its data are absent. The result before it stays then, too.
    """
    checkout = _checkout()
    if checkout is None or name not in {experiment.name for experiment in experiments()}:
        raise NotFoundError(f"there is no experiment {name!r} here: experiments need a checkout of the program.")
    with tempfile.TemporaryFile("w+", encoding="utf-8") as out, _started(checkout, name, out, options) as process:
        last = ""
        for line in _lines(process):
            last = line or last
            try:
                progress(last)
            except Canceled:
                return False
        if process.wait() != 0:
            raise LibraryError(f"the experiment {name} ended with an error: {last[-_TOLD_OF_A_FAILURE:]}")
        out.seek(0)
        printed = out.read().strip().rpartition("\n")[2]
    with atomic_path(_own(checkout, name)) as temporary:
        temporary.write_text(printed + "\n", encoding="utf-8")
        table = _read(temporary, is_own=True)  # raises before it takes the place of a good one
        if table is not None and not table.rows:
            raise NothingMeasured(
                f"the experiment {name} has measured nothing: {table.settings.get('data', 'it has no rows')}"
            )
    return True


@contextlib.contextmanager
def _started(checkout: Path, name: str, out: IO[str], options: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    """The process of an experiment, gone with all that it started when the block ends."""
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
        _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    for how in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            break
        os.killpg(process.pid, how)  # pools of workers are in the same group
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_PATIENCE_S)
    assert process.stderr is not None
    process.stderr.close()


def _lines(process: subprocess.Popen[str]) -> Iterator[str]:
    """Lines of progress as they come, and an empty one when a while has passed without any."""
    lines: queue.Queue[str | None] = queue.Queue()

    def listen() -> None:
        with contextlib.suppress(ValueError):  # closed while it was read
            for line in process.stderr or ():
                lines.put(line.strip())
        lines.put(None)

    threading.Thread(target=listen, daemon=True).start()
    while True:
        try:
            line = lines.get(timeout=_ASK_EVERY_S)
        except queue.Empty:
            line = ""
        if line is None:
            return
        yield line
