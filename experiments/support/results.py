"""Location and format of the results of experiments and benchmarks."""

import json
from pathlib import Path
from typing import Any

from musicsim.library.disk.arrays import atomic_path

__all__ = ["KEPT", "OWN", "ROOT", "Report", "keep_report", "read"]

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "docs" / "results"
"""Kept with the program, those of benchmarks in a folder of theirs; tables of the documents are made of these."""
OWN = ROOT / "data" / "experiments" / "results"
"""Of this machine; the Research page shows the newer of both."""

Report = dict[str, Any]


def read(name: str, folder: Path = KEPT) -> Report | None:
    """Return the report of an experiment, or of "benchmarks/NAME", or None if it does not exist."""
    path = folder / f"{name}.json"
    report: Report | None = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
    return report


def keep_report(report: Report, name: str, folder: Path = KEPT) -> str:
    """Replace the saved report, unless only the saved one is of the full protocol or the new one lacks a commit.

    Returns
    -------
    str
        The reason if it was not saved, else empty.
    """
    kept = read(name, folder)
    if kept and kept["settings"].get("protocol") == "full" != report["settings"]["protocol"]:
        return "the kept result is of the full protocol"
    if report.get("commit", "").endswith("-dirty"):
        return "it was run with uncommitted changes, which nobody else has"
    with atomic_path(folder / f"{name}.json") as target:
        target.write_text(json.dumps(report, ensure_ascii=False) + "\n", encoding="utf-8")
    return ""
