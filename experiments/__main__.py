"""Which results are kept, and of which protocol: ``python -m experiments`` writes it at the end of the README."""

import json
from collections.abc import Iterator
from pathlib import Path

from musicsim.explorer.evaluation.paper_tables import experiments

README = Path(__file__).parent / "README.md"
_HEADING = "## Kept results\n"


def _lines() -> Iterator[str]:
    reports = {}
    for experiment in experiments():
        path = README.parent / "results" / f"{experiment.name}.json"
        reports[experiment] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
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


def updated(page: str) -> str:
    """The README with the table of the results as they are."""
    return page.partition(_HEADING)[0] + _HEADING + "\n" + "\n".join(_lines()) + "\n"


if __name__ == "__main__":
    README.write_text(updated(README.read_text(encoding="utf-8")), encoding="utf-8")
