"""The frame shared by all benchmarks and experiments: arguments, timing, and a report at the end.

A script defines ``run(settings, progress) -> (rows, claims)`` and ends with::

    if __name__ == "__main__":
        main("codebook", "what it measures", run, rivals=("scikit-learn", "faiss-cpu"))

`rows` are dictionaries, one per line of the table. `claims` are made by :func:`at_least`, :func:`at_most` or
:class:`Claim`. With ``--json`` the last line of stdout is one JSON object with the keys name, date, commit, machine,
inputs, settings, rows and claims. Without it, the same is printed as a table. Progress goes to stderr.
"""

import argparse
import hashlib
import json
import math
import os
import platform
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.support.durations import PARTS, Stopwatch
from benchmarks.support.metric_learn_process import ENVIRONMENT
from benchmarks.support.rival import timed
from musicsim import datasets
from musicsim.commit import from_git
from musicsim.errors import DataSetAbsentError

__all__ = ["Claim", "Settings", "Skipped", "at_least", "at_most", "digest", "load_found", "main", "race", "version"]

Loaded = TypeVar("Loaded")
Row = Mapping[str, Any]
Progress = Callable[[str], None]

_NEIGHBOR = (Path(__file__).parents[2] / "../shared/data").resolve()
"""Next to a checkout, the folder of public data sets is found without MUSICSIM_SHARED_DATA."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A measured goal: the claim, the value, the goal as text, and whether it is met."""

    claim: str
    value: float | str | None
    goal: float | str
    holds: bool


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the command line; `facts` takes all other conditions of the run (sizes, splits).

    `inputs` maps the name of each file that is read to its SHA-256; `main` starts it with those of the data sets.
    Folders of music have a :func:`digest`.

    The other fields are for scripts that take them. `library` is the folder of a library to measure instead of the
    script's own. `music` is a folder of music, and `sets` are several. `labels` is a table of the music's labels,
    `cache` a folder for results of earlier runs. `processes` is the number of serving processes. With `resume`,
    finished parts are stored, and stored parts are not measured again
    (:func:`benchmarks.support.parts.kept_parts`).
    """

    seed: int = 0
    full: bool = False
    library: Path | None = None
    music: Path | None = None
    sets: tuple[Path, ...] = ()
    labels: Path | None = None
    resume: bool = False
    cache: Path | None = None
    processes: int = 0
    facts: dict[str, Any] = field(default_factory=dict)
    inputs: dict[str, str] = field(default_factory=dict)


class Skipped(SystemExit):
    """A requirement of the script is missing; the message says what to do. The report has the message only."""


def at_least(claim: str, value: float | None, goal: float) -> Claim:
    """Claim that `value` reaches `goal`; a value that could not be measured (None) fails."""
    return Claim(claim, value, goal, value is not None and bool(value >= goal))


def at_most(claim: str, value: float | None, goal: float) -> Claim:
    """Claim that `value` stays at or below `goal`; a value that could not be measured (None) fails."""
    return Claim(claim, value, goal, value is not None and bool(value <= goal))


def format_lead(mean: float, low: float, high: float) -> str:
    """Return a mean difference with its interval, for a table."""
    return f"{mean:+.3f} ({low:+.3f} to {high:+.3f})"


def race(
    rivals: Mapping[str, Callable[[], object]], repeats: int = 5, clock: Callable[[], float] = time.process_time
) -> dict[str, float]:
    """Return the minimum seconds of each function over `repeats` rounds, after one warm-up round.

    The functions alternate within each round, so that a slow period of the machine affects all of them. The clock
    counts the CPU seconds of all threads; pass ``time.perf_counter`` if threads should count as a gain. A call to a
    :class:`RivalProcess` is timed in that process, in CPU seconds.
    """
    for function in rivals.values():
        function()
    seconds = dict.fromkeys(rivals, math.inf)
    for _ in range(repeats):
        for name, function in rivals.items():
            seconds[name] = min(seconds[name], timed(function, clock=clock).seconds)
    return seconds


def load_found(
    loaders: Mapping[str, Callable[[], Loaded]], settings: Settings, progress: Progress, fact: str = "data"
) -> dict[str, Loaded]:
    """Load the data sets that are on this machine; the report's `fact` says how to get the absent ones."""
    found: dict[str, Loaded] = {}
    absent: dict[str, None] = {}
    for name, load in loaders.items():
        try:
            found[name] = load()
        except DataSetAbsentError as error:
            progress(f"{name} is left out: {error}")
            absent[str(error)] = None
    if absent:
        settings.facts[fact] = " ".join(absent)
    return found


def hash_inputs(data: Iterable[str | Sequence[str]]) -> dict[str, str]:
    """Return the SHA-256 of each file of the data sets; of alternatives, the first that is on this machine counts."""
    hashes: dict[str, str] = {}
    for alternatives in data:
        names = [alternatives] if isinstance(alternatives, str) else alternatives
        found = [datasets.hash_files(name) for name in names]
        hashes |= next((files for files in found if "absent" not in files.values()), found[0])
    return hashes


def digest(path: Path) -> str:
    """Return the SHA-256 of a file, or of the names and digests of all files of a folder; else "absent"."""
    if path.is_file():
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    files = sorted(file for file in path.rglob("*") if file.is_file())
    lines = (f"{digest(file)}  {file.relative_to(path).as_posix()}\n" for file in files)
    return hashlib.sha256("".join(lines).encode()).hexdigest() if files else "absent"


def version(distribution: str) -> str | None:
    """Return the version of an installed distribution, or None."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def main(
    name: str,
    description: str,
    run: Callable[[Settings, Progress], tuple[Sequence[Row], Sequence[Claim]]],
    *,
    data: Iterable[str | Sequence[str]] = (),
    rivals: Iterable[str] = (),
    takes_library: bool = False,
    takes_music: bool = False,
    takes_sets: bool = False,
    has_parts: bool = False,
    takes_processes: bool = False,
    short: str = "",
    differs: Mapping[str, str] | None = None,
    arguments: Sequence[str] | None = None,
) -> None:
    """Read the command line, run, and print the report.

    Parameters
    ----------
    run : callable
        Called with a :class:`Settings` and a function that writes a line to stderr.
    data : iterable of str or sequence of str
        Data sets that the script reads (:mod:`musicsim.datasets`); the report states the hashes of their files. A
        sequence has alternatives: the first that is on this machine is read.
    rivals : iterable of str
        Distributions whose versions the report should state, besides numpy, scipy and numba: each one that it compares
        with or that makes its data.
    takes_library : bool
        Whether there is an option ``--library PATH``.
    takes_music : bool
        Whether there are options ``--music PATH``, ``--labels PATH`` and ``--cache PATH``.
    takes_sets : bool
        The same, but ``--music PATH`` can be given several times, for `sets` instead of `music`.
    has_parts : bool
        Whether there is an option ``--resume``.
    takes_processes : bool
        Whether there is an option ``--processes N``.
    short : str
        How the short form differs from the full one, for the line below each table. If there is a kept result, it also
        says why the short form is final, or why the full form is worth running. Without `short`, there is no option
        ``--full``, and the only protocol is the full one.
    differs : mapping of str to str, optional
        For a script that repeats a paper's table or figure. "of" names it. "splits", "grid" and "size" each say how the
        full protocol differs from the paper's. docs/research/figures.md has a table of these.
    arguments : sequence of str
        Used instead of the command line.
    """
    parser = argparse.ArgumentParser(prog=name, description=description)
    parser.add_argument("--json", action="store_true", help="end with one JSON object on stdout")
    if short:
        parser.add_argument("--full", action="store_true", help="the whole protocol instead of the short one")
    parser.add_argument("--seed", type=int, default=0, help="seed of everything that is drawn (0)")
    if takes_library:
        parser.add_argument("--library", type=Path, metavar="PATH", help="a library instead of the demo")
    if takes_music:
        parser.add_argument("--music", type=Path, metavar="PATH", help="a folder of music")
    if takes_sets:
        parser.add_argument(
            "--music", type=Path, metavar="PATH", action="append", default=[], dest="sets",
            help="a folder of music; give it again for another one",
        )  # fmt: skip
    if takes_music or takes_sets:
        parser.add_argument("--labels", type=Path, metavar="PATH", help="a CSV of what is in it")
        parser.add_argument("--cache", type=Path, metavar="PATH", help="a folder to keep what was computed")
    if has_parts:
        parser.add_argument("--resume", action="store_true", help="keep finished parts, and skip those kept before")
    if takes_processes:
        parser.add_argument(
            "--processes", type=int, default=0, metavar="N", help="so many on a snapshot file, behind nginx"
        )
    given = vars(parser.parse_args(arguments))
    as_json = given.pop("json")
    if takes_sets:
        given["sets"] = tuple(given["sets"])
    settings = Settings(**{"full": True} | given)
    if _NEIGHBOR.is_dir():
        os.environ.setdefault("MUSICSIM_SHARED_DATA", str(_NEIGHBOR))
    settings.inputs.update(hash_inputs(data))
    commit = from_git(Path(__file__).parents[2])  # before a commit during the run can change it
    protocol = "full" if settings.full else "short"
    watch = Stopwatch(PARTS / name / f"seconds-{protocol}-{settings.seed}.txt" if settings.resume else None)

    def progress(line: str) -> None:
        print(f"[{watch.seconds:6.1f} s] {line}", file=sys.stderr, flush=True)
        watch.save()

    try:
        rows, claims = run(settings, progress)
    except (Skipped, DataSetAbsentError) as absent:
        settings.facts["data"] = str(absent)
        rows, claims = [], []
    watch.save()
    settings.facts["seconds"] = round(watch.total, 1)
    report = {
        "name": name,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit,
        "machine": _machine(rivals),
        "inputs": settings.inputs,
        "settings": {"seed": settings.seed, "protocol": protocol, **settings.facts},
        "differs": dict(differs or {}),
        "rows": [dict(row) for row in rows],
        "claims": [asdict(claim) for claim in claims],
    }
    plain = _plain(report)
    if as_json:
        print(json.dumps(plain, allow_nan=False, ensure_ascii=False))
    else:
        _print_tables(plain, description)


def _recorded_version(distribution: str) -> str:
    """Return the version of a distribution, here or in the environment of `make rivals`."""
    if found := version(distribution):
        return found
    folders = [str(path) for path in ENVIRONMENT.glob("lib/python*/site-packages")]
    in_rivals = metadata.distributions(name=distribution, path=folders) if folders else ()
    return next((one.version for one in in_rivals), "not installed")


def _machine(rivals: Iterable[str]) -> dict[str, Any]:
    names = dict.fromkeys(["numpy", "scipy", "numba", *rivals])
    return {
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "cpu": _cpu_name(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {name: _recorded_version(name) for name in names},
    }


def _cpu_name() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass  # not Linux: use the platform's own name
    return platform.processor() or platform.machine()


def _plain(value: Any) -> Any:
    """Convert numpy scalars and arrays to JSON types; values that are not finite become null."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "NO"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _print_tables(report: Mapping[str, Any], description: str) -> None:
    wide = None if sys.stdout.isatty() else 160  # a file or a pipe does not have a width
    console = Console(width=wide, highlight=False, markup=False)
    console.print(f"{report['name']}: {description}")
    for part in ("machine", "inputs", "settings"):
        console.print(f"{part}: " + ", ".join(f"{key} {_text(value)}" for key, value in report[part].items()))
    for title in ("rows", "claims"):
        lines = report[title]
        if not lines:
            continue
        columns = list(dict.fromkeys(key for line in lines for key in line))
        table = Table(title=title)
        for column in columns:
            numeric = any(isinstance(line.get(column), int | float) for line in lines)
            table.add_column(column, justify="right" if numeric else "left")
        for line in lines:
            table.add_row(*(_text(line.get(column)) for column in columns))
        console.print(table)
