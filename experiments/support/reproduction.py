"""Run all experiments in parallel and report scores, claims, and skipped or failed experiments.

Results go to the folder of this machine, where the Research page reads them. Results of the current commit are not
measured again, so an interrupted run resumes.
"""

import os
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from experiments.support.game_music import CACHE
from experiments.support.results import KEPT, OWN, ROOT, Report, keep_report, read
from musicsim import datasets
from musicsim.commit import from_git
from musicsim.errors import DataSetAbsentError, LibraryError
from musicsim.extensions.paper_tables.paper_tables import (
    NothingMeasured,
    experiments,
    read_declared,
    run_experiment,
    short_form,
)
from musicsim.progress import Canceled

__all__ = ["THREADS", "absent_data", "fetch_data", "missing", "reproduce"]

_HOUR_LONG = {"families", "real_learning", "real_music"}
"""Run by name, or with all by their full protocol."""
_SAY_EVERY_S = 60.0
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


@dataclass(frozen=True, slots=True)
class _Outcome:
    """Outcome of an experiment: its report, or the reason for its absence."""

    name: str
    report: Report | None = None
    skipped: str = ""
    failed: str = ""

    @property
    def said(self) -> str:
        """The outcome in one line."""
        if self.report is None:
            return f"skipped: {self.skipped}" if self.skipped else f"FAILED: {self.failed}"
        absent = missing(self.report)
        return f"without {', '.join(absent)}" if absent else ""


def reproduce(names: Sequence[str], *, full: bool, keep: bool, jobs: int, fetch: bool = False) -> bool:
    """Run experiments and print their outcomes; with `keep`, complete results replace the saved ones.

    Absent data sets are listed before and after, with the way to get them. With `fetch`, those that have an address are
    downloaded first.

    Returns
    -------
    bool
        Whether none failed. A refuted claim or missing data is not a failure.
    """
    started = time.perf_counter()
    # other modules do not write a report
    known = {name for name in experiments() if "benchmarks.support.report" in _source(name)}
    if unknown := set(names) - known:
        raise SystemExit(f"{', '.join(sorted(unknown))}: no such experiment; there are {', '.join(sorted(known))}.")
    chosen = set(names) or (known if full else known - _HOUR_LONG)
    if fetch:
        fetch_data(chosen)
    _print_absent(chosen)
    # longest first keeps all cores busy to the end
    order = sorted(chosen, key=_seconds_before, reverse=True)
    print(f"{len(order)} experiments, {jobs} at once; about {_estimate(order, jobs)} by the kept results", flush=True)
    if jobs > 1:
        # inherited by the experiments, so that they do not compete for cores
        os.environ.update(dict.fromkeys(THREADS, "1"))
    stop = threading.Event()
    commit = from_git(ROOT)
    with ThreadPoolExecutor(jobs) as pool:
        futures = [pool.submit(_outcome, name, full, commit, stop) for name in order]
        try:
            outcomes = sorted((future.result() for future in futures), key=lambda outcome: outcome.name)
        except KeyboardInterrupt:
            stop.set()
            raise SystemExit("Stopped; what is done is kept, and the same command goes on.") from None
    _print(outcomes, time.perf_counter() - started)
    _print_absent(chosen)
    if keep:
        for outcome in outcomes:
            _keep(outcome)
    return not any(outcome.failed for outcome in outcomes)


def missing(report: Report) -> list[str]:
    """Return data and rivals that a run lacked: its result is incomplete."""
    absent = (name for name, digest in report.get("inputs", {}).items() if digest == "absent")
    inputs = list(dict.fromkeys(map(_data_set_of, absent)))
    rivals = [name for name, version in report["machine"]["versions"].items() if version == "not installed"]
    return inputs + rivals


def absent_data(names: Iterable[str]) -> dict[str, list[str]]:
    """Return the absent data sets of experiments, each with the experiments that read it.

    Of alternatives that are all absent, the first counts that can be fetched.
    """
    absent: dict[str, list[str]] = {}
    for experiment in sorted(names):
        for alternatives in read_declared(experiment, "data") or ():
            among = [alternatives] if isinstance(alternatives, str) else list(alternatives)
            if not any(map(datasets.is_present, among)):
                wanted = next(filter(_can_fetch, among), among[0])
                absent.setdefault(wanted, []).append(experiment)
    return absent


def _can_fetch(name: str) -> bool:
    data_set = datasets.get_dataset(name)
    return bool(data_set.files) if "MUSICSIM_DATA_URL" in os.environ else data_set.can_be_fetched


def fetch_data(names: Iterable[str]) -> None:
    """Download the absent data sets of experiments; print the reason if one cannot be had."""
    for name in absent_data(names):
        print(f"{name}: fetching", flush=True)
        try:
            datasets.fetch(name)
        except DataSetAbsentError as error:
            print(f"{name}: {error}", flush=True)


def _print_absent(names: Iterable[str]) -> None:
    for name, readers in absent_data(names).items():
        data_set = datasets.get_dataset(name)
        print(f"absent: {name}, {data_set.title}, for {', '.join(readers)}. {data_set.how_to_get}", flush=True)


def _data_set_of(file: str) -> str:
    """Return the name of the data set that has a file, as a report names it; else the file's own name."""
    for data_set in datasets.list_datasets():
        if file in (f"{data_set.folder}/{one.path}" for one in data_set.files):
            return data_set.name
    return file


def _source(name: str) -> str:
    return (ROOT / "experiments" / f"{name}.py").read_text(encoding="utf-8")


def _seconds(report: Report) -> float:
    settings = report["settings"]
    seconds: float = settings.get("seconds", settings.get("seconds of the last run", 0.0))  # older results
    return seconds


def _seconds_before(name: str) -> float:
    report = read(name, KEPT)
    return _seconds(report) if report else 0.0


def _estimate(names: Sequence[str], jobs: int) -> str:
    seconds = [_seconds_before(name) for name in names]
    return f"{max(sum(seconds) / jobs, *seconds, 0.0) / 60:.0f} minutes"


def _options(name: str, *, full: bool) -> list[str]:
    options = ["--full"] if full and short_form(name) else []
    if full and "has_parts=True" in _source(name):
        options.append("--resume")
    if name in ("albums", "several_examples") and (CACHE / "library").is_dir():  # built by experiments.real_music
        options += ["--library", str(CACHE / "library")]
    return options


def _outcome(name: str, full: bool, commit: str, stop: threading.Event) -> _Outcome:
    protocols = {"full"} if full else {"short", "full"}
    done = read(name, OWN)
    clean = commit and not commit.endswith("-dirty")
    if done and clean and done.get("commit") == commit and done["settings"].get("protocol") in protocols:
        print(f"{name}: measured before, by this commit", flush=True)
        return _Outcome(name, done)
    if stop.is_set():
        return _Outcome(name, skipped="stopped")
    print(f"{name}: started ({_seconds_before(name):,.0f} s in the kept result)", flush=True)
    said_at = time.monotonic()

    def progress(message: str, _done: int = 0, _total: int = 0, /, **_: Any) -> None:
        nonlocal said_at
        if message and time.monotonic() - said_at > _SAY_EVERY_S:
            said_at = time.monotonic()
            print(f"{name}: {message}", flush=True)
        if stop.is_set():
            raise Canceled

    try:
        if not run_experiment(name, progress, _options(name, full=full)):
            return _Outcome(name, skipped="stopped")
    except NothingMeasured as absent:
        outcome = _Outcome(name, skipped=str(absent).partition(": ")[2])
    except (LibraryError, OSError) as error:
        outcome = _Outcome(name, failed=str(error))
    else:
        outcome = _Outcome(name, read(name, OWN))
    print(f"{name}: {outcome.said or 'done'}", flush=True)
    return outcome


def _held(report: Report) -> str:
    claims = report["claims"]
    return f"{sum(claim['holds'] for claim in claims)} of {len(claims)}"


def _print(outcomes: Sequence[_Outcome], seconds: float) -> None:
    table = Table("experiment", "seconds", "claims that hold", "in the kept result", "")
    failed = Table("experiment", "claim that does not hold", "value", "goal", "in the kept result")
    for outcome in outcomes:
        kept, report = read(outcome.name, KEPT), outcome.report
        before = _held(kept) if kept else "none"
        if report is None:
            table.add_row(outcome.name, "", "", before, outcome.said)
            continue
        table.add_row(outcome.name, f"{_seconds(report):,.0f}", _held(report), before, outcome.said)
        held_before = {claim["claim"]: claim["holds"] for claim in kept["claims"]} if kept else {}
        for claim in report["claims"]:
            if not claim["holds"]:
                then = {True: "HELD", False: "no", None: ""}[held_before.get(claim["claim"])]
                failed.add_row(outcome.name, claim["claim"], _text(claim["value"]), _text(claim["goal"]), then)
    console = Console(width=None if sys.stdout.isatty() else 160, highlight=False, markup=False)
    console.print(table)
    if failed.row_count:
        console.print(failed)
    console.print(f"{seconds / 60:.1f} minutes; results in {OWN.relative_to(ROOT)}, shown on the Research page")


def _text(value: float | str | None) -> str:
    return "not measured" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def _keep(outcome: _Outcome) -> None:
    """Replace the saved result by a complete one."""
    if outcome.report is None:
        return
    absent = missing(outcome.report)
    why = f"it was run without {', '.join(absent)}" if absent else keep_report(outcome.report, outcome.name, KEPT)
    if why:
        print(f"{outcome.name}: not kept, for {why}")
