"""Recall and time of each kind of search index: ``musicsim evaluate --search``."""

from dataclasses import asdict
from pathlib import Path

from rich.table import Column

from musicsim.cli.console import emit, open_library, progress_bar, show
from musicsim.explorer.evaluation.search_speed import K, measure_search
from musicsim.explorer.snapshot.snapshot import take_snapshot


def show_search_speed(library: Path | None, model: str | None, *, as_json: bool) -> None:
    """Measure and print all kinds of index, under a model or the active one."""
    with open_library(library) as lib, progress_bar() as progress:
        snapshot = take_snapshot(lib, lib.models.find(model).id if model else None)
        found = measure_search(snapshot, progress=progress)
    if as_json:
        emit(asdict(found))
        return
    columns = [Column("index", overflow="fold")]
    columns += [Column(name, justify="right") for name in (f"recall at {K}", "ms per query", "build s", "MB")]
    rows = [
        (
            f"{row.title} (in use)" if row.is_chosen else row.title,
            f"{row.recall:.3f}",
            f"{row.ms:.3f}",
            f"{row.build_s:.1f}",
            f"{row.mb:,.1f}",
        )
        for row in found.rows
    ]
    show(columns, rows, caption=found.caption)
