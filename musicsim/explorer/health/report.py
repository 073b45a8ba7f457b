"""Bug reports about a library and its machine, without titles, artists, paths or tokens."""

import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from musicsim import logs
from musicsim.explorer.health.doctor import Finding
from musicsim.explorer.health.machine import memory_bytes, n_cores, versions
from musicsim.explorer.rendering import render_fields
from musicsim.library import Library, atomic_path

_N_LINES = 300


def bug_report(findings: Iterable[Finding], folder: Path, library: Library | None) -> dict[str, Any]:
    """Return findings, versions, sizes, settings and the end of the log as JSON values."""
    return {
        "made_at": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "versions": versions(),
        "machine": {"cores": n_cores(), "memory_bytes": memory_bytes()},
        "findings": [render_fields(one, "what", "level", "words", "remedy") for one in findings],
        "library": None if library is None else _library_facts(library),
        "log": [logs.redact_private(line) for line in logs.last_lines(folder, _N_LINES)],
    }


def write_report(report: dict[str, Any], target: Path) -> None:
    """Write a report as JSON or text, depending on the file name; raises the same errors as :func:`atomic_path`."""
    text = json.dumps(report, indent=1) if target.suffix.lower() == ".json" else "\n".join(_lines(report))
    with atomic_path(target) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")


def _library_facts(library: Library) -> dict[str, Any]:
    return {
        "counts": library.counts(),
        "settings": library.settings,
        "revision": library.revision,
        "bytes": _sizes(library.folder),
        "models": [
            render_fields(
                record,
                "id",
                "kind",
                "is_active",
                songs="n_songs_fitted",
                features="n_features",
                dimensions="n_dimensions",
            )
            for record in library.models.all()
        ],
        "jobs": [render_fields(job, "id", "kind", "state", "done", "total") for job in library.jobs.recent()],
    }


_PARTS = ("frames", "models", "cache", "uploads", "embeddings", "jobs", "logs", "scratch", "music")


def _sizes(folder: Path) -> dict[str, int]:
    """Return the sizes in bytes of the database and of the folders that musicsim creates, but not of other folders."""
    sizes = {file.name: file.stat().st_size for file in sorted(folder.glob("library.sqlite*"))}
    for part in _PARTS:
        if (folder / part).is_dir():
            sizes[part] = sum(path.stat().st_size for path in (folder / part).rglob("*") if path.is_file())
    return sizes


def _lines(report: dict[str, Any]) -> Iterable[str]:
    for name, value in report.items():
        yield f"== {name}"
        if name == "findings":
            yield from (f"{f['level']}: {f['what']}: {f['words']} {f['remedy']}".rstrip() for f in value)
        elif name == "log":
            yield from value
        elif isinstance(value, dict):
            yield from (f"{key}: {json.dumps(fact)}" for key, fact in value.items())
        else:
            yield str(value)
