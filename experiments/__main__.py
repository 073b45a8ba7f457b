"""``python -m experiments`` writes the tables of the documents, ``python -m experiments reproduce`` runs it all.

``python -m benchmarks.NAME --json | python -m experiments keep`` keeps what a benchmark has measured.

The tables are made of the kept results: those of :mod:`experiments._tables`, and which results are kept, at the end of
this folder's README.
"""

import argparse
import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

from experiments._reproduce import reproduce
from experiments._results import KEPT, ROOT, keep_report, read
from experiments._tables import documents, updated
from musicsim.extensions.paper_tables.paper_tables import experiments

README = ROOT / "experiments" / "README.md"
_HEADING = "## Kept results\n"


def _lines() -> Iterator[str]:
    reports = {experiment: read(experiment.name) for experiment in experiments()}
    full = [e.name for e, r in reports.items() if r and r["settings"].get("protocol") == "full"]
    yield f"Run by their full protocol: {', '.join(full) or 'none'}. Of the others the short form, or nothing."
    yield ""
    yield "| experiment | what it measures | kept result |"
    yield "|---|---|---|"
    for experiment, report in reports.items():
        told = "none"
        if report:
            settings, claims = report["settings"], report["claims"]
            held = sum(claim["holds"] for claim in claims)
            told = f"{settings.get('protocol', 'short')}, {report['date'][:10]}, {held} of {len(claims)} claims hold"
        yield f"| `{experiment.name}` | {experiment.title} | {told} |"


def with_kept(page: str) -> str:
    """The README of this folder with the table of the results as they are."""
    return page.partition(_HEADING)[0] + _HEADING + "\n" + "\n".join(_lines()) + "\n"


def write_tables() -> None:
    """Bring the documents up to date with the kept results."""
    README.write_text(with_kept(README.read_text(encoding="utf-8")), encoding="utf-8")
    for path in documents():
        page = path.read_text(encoding="utf-8")
        if (now := updated(page)) != page:
            path.write_text(now, encoding="utf-8")
            print(f"{path.relative_to(ROOT)}: new tables")


def keep_printed(printed: str, folder: Path = KEPT) -> None:
    """Keep what benchmarks printed with ``--json``, each a line; other lines are passed over.

    Raises SystemExit, with what to do, where there is no such line.
    """
    reports = [json.loads(line) for line in printed.splitlines() if line.startswith('{"name"')]
    if not reports:
        raise SystemExit(
            "Nothing is kept: no benchmark has printed its JSON object. "
            "Run `python -m benchmarks.NAME --json | python -m experiments keep`."
        )
    for report in reports:
        name = report["name"]
        if not (ROOT / "benchmarks" / f"{name}.py").is_file():
            why = f"there is no benchmarks/{name}.py"
        elif not report["rows"]:
            why = "it has no rows"
        else:
            why = keep_report(report, f"benchmarks/{name}", folder)
        print(f"{name}: not kept, for {why}" if why else f"{name}: kept")


def main() -> None:
    """Read the command line and do as it says."""
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="command")
    run = commands.add_parser("reproduce", help="run the experiments and say which claims hold")
    run.add_argument("names", nargs="*", metavar="NAME", help="only these (all but those that take an hour)")
    run.add_argument("--full", action="store_true", help="the papers' protocols; takes days, goes on when stopped")
    run.add_argument("--keep", action="store_true", help="put the results in place of the kept ones in docs/results")
    run.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="so many at once (cores)")
    commands.add_parser("keep", help="keep the JSON objects of benchmarks that come in by stdin")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # experiments end with it
    failed = False
    if given.command == "reproduce":
        failed = not reproduce(given.names, full=given.full, keep=given.keep, jobs=given.jobs)
    if given.command == "keep":
        keep_printed(sys.stdin.read())
    if given.command != "reproduce" or given.keep:
        write_tables()
    if failed:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
