"""Tables of the documents, built from the saved results: between ``<!-- results: NAME -->`` and ``<!-- end -->``.

NAME is an experiment or a benchmark, followed by a colon and another word if a document has several of its tables. The
script declares its tables in ``TABLES``, next to its ``run`` (:mod:`benchmarks.support.columns`). The line below each
table describes its protocol. :mod:`experiments.support.comparisons` says who is first in the saved results of all
benchmarks, with a table for each topic.
"""

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from benchmarks.support.columns import Table
from experiments.support.comparisons import TOPICS, first_where
from experiments.support.leaders import tabulate_leaders
from experiments.support.quality import COMBINED, tabulate_quality
from experiments.support.results import ROOT, Report, read
from musicsim.datasets import list_datasets
from musicsim.extensions.paper_tables.paper_tables import short_form

__all__ = ["BLOCK", "documents", "experiments_of", "tables", "updated"]

BLOCK = re.compile(r"<!-- results: (?P<name>[^>]*?) -->\n.*?<!-- end -->", re.DOTALL)

_FIRST = {f"benchmarks: {topic}": tuple(compared) for topic, compared in TOPICS.items()}
"""By name of a table of who is first: its benchmarks."""
_QUALITY = "quality"
"""Name of the only table of several experiments."""
_DATA_SETS, _LEADERS, _PROTOCOLS = "data sets", "leaders", "protocols"
"""Names of the tables that are not of one result."""


def documents() -> list[Path]:
    """Return the paths of README and the pages of docs."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def updated(page: str) -> str:
    """Return a page with its tables updated from the saved results."""
    return BLOCK.sub(lambda block: _block(block["name"]), page)


def tables() -> list[str]:
    """Return the names of all tables."""
    scripts = (path for package in ("experiments", "benchmarks") for path in sorted((ROOT / package).glob("*.py")))
    # most benchmarks have no table of their own, and some need packages that only they use
    declaring = [path.stem for path in scripts if "\nTABLES" in path.read_text(encoding="utf-8")]
    return [_QUALITY, *_DECLARED, *(name for script in declaring for name in _declared(script)), *_FIRST]


def experiments_of(table: str) -> tuple[str, ...]:
    """Return the experiments behind a table, with benchmarks as "benchmarks/NAME"."""
    if table in _DECLARED:
        return ()
    if table in _FIRST:
        return tuple(f"benchmarks/{name}" for name in _FIRST[table])
    return COMBINED if table == _QUALITY else (_place(table.partition(":")[0]),)


def _place(script: str) -> str:
    return f"benchmarks/{script}" if (ROOT / "benchmarks" / f"{script}.py").is_file() else script


def _declared(script: str) -> dict[str, Table]:
    place = _place(script)
    module = import_module(place.replace("/", ".") if "/" in place else f"experiments.{place}")
    declared: dict[str, Table] = module.TABLES
    return declared


def _block(name: str) -> str:
    if name in _DECLARED:
        lines, below = _DECLARED[name](), ""
    elif name in _FIRST:
        reports = [report for result in experiments_of(name) if (report := read(result))]
        lines = first_where(reports)
        below = f"{_made_by(reports, 'benchmarks')}\n\n{_not_run(name, reports)}".strip()
    else:
        tabulate = tabulate_quality if name == _QUALITY else _declared(name.partition(":")[0])[name]
        experiments = experiments_of(name)
        reports = [_kept(experiment, name) for experiment in experiments]
        lines = tabulate([row for report in reports for row in report["rows"]])
        below = _made_by(reports, "benchmarks" if experiments[0].startswith("benchmarks/") else "experiments")
    head, *rest = lines
    table = [head, ["---"] * len(head), *rest]
    text = "\n".join(f"|{'|'.join(f' {cell} ' if cell else ' ' for cell in line)}|" for line in table)
    parts = (text, below) if below else (text,)
    return f"<!-- results: {name} -->\n" + "\n\n".join(parts) + "\n<!-- end -->"


def protocols() -> Iterator[tuple[str, ...]]:
    """Yield a row per experiment that repeats a paper's table or figure: how its full protocol differs."""
    yield "experiment", "paper", "splits", "grids and accuracy", "data and size"
    for path in sorted((ROOT / "experiments").glob("*.py")):
        if "\nDIFFERS" in path.read_text(encoding="utf-8"):
            differs = import_module(f"experiments.{path.stem}").DIFFERS
            yield f"`{path.stem}`", *(differs[key] for key in ("of", "splits", "grid", "size"))


def data_sets() -> Iterator[tuple[str, ...]]:
    """Yield a row per public data set."""
    ways = {"bundled": "comes with scikit-learn", "openml": "OpenML", "covtype": "scikit-learn", "rcv1": "scikit-learn"}
    yield "name", "data", "source", "license", "`fetch` gets it from", "layout", "read by"
    for one in list_datasets():
        has_addresses = bool(one.files) and all(file.address for file in one.files)
        places = [ways[one.fetcher]] if one.fetcher else []
        way = " or ".join([*places, *(["the source"] if has_addresses else [])]) or "a mirror only"
        read_by = ", ".join(f"`{reader}`" for reader in one.read_by)
        yield f"`{one.name}`", one.title, one.source, one.license, way, one.layout, read_by


_DECLARED = {_DATA_SETS: data_sets, _LEADERS: tabulate_leaders, _PROTOCOLS: protocols}


def _kept(experiment: str, table: str) -> Report:
    report = read(experiment)
    if report is None:
        raise ValueError(f"{table}: there is no kept result of experiments.{experiment} for this table.")
    return report


def _made_by(reports: list[Report], package: str) -> str:
    """Return the protocol of the results in italics: a line below the table."""
    full: list[str] = []
    short: list[str] = []
    for report in reports:
        settings = report["settings"]
        about = [f"seed {settings['seed']}", report["date"][:10]]
        if package == "benchmarks":  # their seconds depend on the machine
            about += [report["machine"]["cpu"], *_lacking(report)]
        run = f"`python -m {package}.{report['name']}` ({', '.join(about)})"
        if settings.get("protocol") == "full":
            full.append(run)
        else:
            short.append(f"{run}, short form: {short_form(report['name'], package)}.")
    sentences = [f"{', '.join(full)}: full protocol.", *short] if full else short
    return f"*{' '.join(sentences)}*"


def _lacking(report: Report) -> Iterator[str]:
    """Yield whatever a benchmark run lacked."""
    has = report["machine"]["versions"] | report["inputs"]
    absent = [name for name, what in has.items() if what in ("not installed", "absent")]
    if absent:
        yield f"without {', '.join(absent)}"
    if report["commit"].endswith("-dirty"):
        yield "with uncommitted changes"


def _not_run(table: str, reports: list[Report]) -> str:
    kept = {report["name"] for report in reports}
    left = ", ".join(f"`benchmarks.{name}`" for name in _FIRST[table] if name not in kept)
    return f"No results are stored for {left}." if left else ""
