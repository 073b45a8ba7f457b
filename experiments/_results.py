"""Where results of experiments are, and what is in them."""

import json
from pathlib import Path
from typing import Any

__all__ = ["KEPT", "OWN", "ROOT", "Report", "read"]

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "docs" / "results"
"""Kept with the program; tables of the documents are made of these."""
OWN = ROOT / "data" / "experiments" / "results"
"""Of this machine; the Evaluate page shows the newer of both."""

Report = dict[str, Any]


def read(name: str, folder: Path = KEPT) -> Report | None:
    """The report of an experiment, None where there is none."""
    path = folder / f"{name}.json"
    report: Report | None = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
    return report
