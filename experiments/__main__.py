"""``python -m experiments`` writes the tables of the documents, ``python -m experiments reproduce`` runs everything.

``python -m benchmarks.NAME --json | python -m experiments keep`` saves the results of a benchmark.

The tables are built from the saved results. :mod:`experiments.support.tables` builds them, and the end of this
folder's README lists the saved results.
"""

import argparse
import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

from experiments.support.reproduction import reproduce
from experiments.support.results import KEPT, ROOT, keep_report, read
from experiments.support.tables import documents, updated
from musicsim.extensions.paper_tables.paper_tables import experiments

README = ROOT / "experiments" / "README.md"
_HEADING = "## Kept results\n"


def _lines() -> Iterator[str]:
    titles = experiments()
    reports = {name: read(name) for name in titles}
    full = [name for name, r in reports.items() if r and r["settings"].get("protocol") == "full"]
    yield f"Kept results by the full protocol: {', '.join(full) or 'none'}. The other kept results are short runs."
    yield ""
    yield "| experiment | what it measures | kept result |"
    yield "|---|---|---|"
    for name, report in reports.items():
        told = "none"
        if report:
            settings, claims = report["settings"], report["claims"]
            held = sum(claim["holds"] for claim in claims)
            told = f"{settings.get('protocol', 'short')}, {report['date'][:10]}, {held} of {len(claims)} claims hold"
        yield f"| `{name}` | {titles[name]} | {told} |"


def with_kept(page: str) -> str:
    """Return the README of this folder with the table of saved results."""
    return page.partition(_HEADING)[0] + _HEADING + "\n" + "\n".join(_lines()) + "\n"


def write_tables() -> None:
    """Update the documents from the saved results."""
    README.write_text(with_kept(README.read_text(encoding="utf-8")), encoding="utf-8")
    for path in documents():
        page = path.read_text(encoding="utf-8")
        if (now := updated(page)) != page:
            path.write_text(now, encoding="utf-8")
            print(f"{path.relative_to(ROOT)}: new tables")


def keep_printed(printed: str, folder: Path = KEPT) -> None:
    """Save the reports that benchmarks printed with ``--json``, one per line; skip other lines.

    Raises SystemExit, with advice, if the text does not contain a report.
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
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="command")
    run = commands.add_parser("reproduce", help="run the experiments and say which claims hold")
    run.add_argument("names", nargs="*", metavar="NAME", help="only these (all but those that take an hour)")
    run.add_argument("--full", action="store_true", help="the full protocols; takes days, goes on when stopped")
    run.add_argument("--keep", action="store_true", help="put the results in place of the kept ones in docs/results")
    run.add_argument("--fetch", action="store_true", help="first download absent data that have an address")
    run.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="so many at once (cores)")
    commands.add_parser("keep", help="keep the JSON objects of benchmarks that come in by stdin")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # SIGTERM also stops the running experiments
    failed = False
    if given.command == "reproduce":
        failed = not reproduce(given.names, full=given.full, keep=given.keep, jobs=given.jobs, fetch=given.fetch)
    if given.command == "keep":
        keep_printed(sys.stdin.read())
    if given.command != "reproduce" or given.keep:
        write_tables()
    if failed:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
