"""The option ``--against`` of ``musicsim evaluate``."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.table import Column

from musicsim.cli import (
    MEASURES,
    add_options,
    emit,
    find_coverage,
    format_figure,
    open_library,
    plain,
    progress_bar,
    replace_nan,
    show,
)
from musicsim.explorer import TRAINING_KINDS
from musicsim.extensions.model_comparison.comparison import compare_with

_HELP = "Compare a model (for example, your own vectors) with the model Sound, each before and after training."
_Against = Annotated[str | None, typer.Option(help=_HELP, metavar="MODEL")]


@add_options
def evaluate_options(command: Callable[..., None], *, against: _Against = None, **values: Any) -> None:
    if against is None:
        command(**values)
        return
    if values["model"] or values["split"] is not None or values.get("lists"):
        raise typer.BadParameter("cannot be combined with --model, --split or --continue.", param_hint="--against")
    with open_library(values["library"]) as library, progress_bar() as progress:
        covered = find_coverage(library, library.models.all(), values["truth"])
        result = compare_with(library, against, covered.kind, progress)
    if values["as_json"]:
        differences = [asdict(one) | {"words": one.summary} for one in result.differences]
        emit(replace_nan(asdict(result) | {"differences": differences}))
        return
    columns = [Column(name, overflow="fold") for name in ("model", *MEASURES.values())]
    rows = [(row.name, *(format_figure(row.figures[name]) for name in MEASURES)) for row in result.rows]
    show(
        columns, rows, caption=f"Ground truth: {TRAINING_KINDS[result.kind].words} ({result.detail}). {result.summary}"
    )
    for row in result.rows:
        if row.note:
            typer.echo(plain(f"{row.name}: {row.note}."))
    for difference in result.differences:
        typer.echo(plain(difference.summary))
