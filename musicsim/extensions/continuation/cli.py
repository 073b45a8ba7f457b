"""The option ``--continue`` of ``musicsim evaluate``."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.table import Column

from musicsim.cli import add_options, emit, format_figure, open_library, progress_bar, show
from musicsim.explorer import Figure
from musicsim.extensions.continuation.continuation import LISTS, MEASURES, continue_lists

_HELP = "Evaluate how well the walk and other methods continue playlists or sittings (listening sessions)."
_Lists = Annotated[str | None, typer.Option("--continue", help=_HELP, metavar="LISTS")]


@add_options
def evaluate_options(command: Callable[..., None], *, lists: _Lists = None, **values: Any) -> None:
    if lists is None:
        command(**values)
        return
    if values["model"] or values["truth"] or values["split"]:
        raise typer.BadParameter("cannot be combined with --model, --truth or --split.", param_hint="--continue")
    if lists not in LISTS:
        raise typer.BadParameter(f"{lists!r} must be one of {', '.join(LISTS)}.", param_hint="--continue")
    with open_library(values["library"]) as library, progress_bar() as progress:
        result = continue_lists(library, lists, progress)
    if values["as_json"]:
        emit(asdict(result))
        return
    rows = [
        (way, *(format_figure(Figure(*scores[name])) for name in MEASURES)) for way, scores in result.scores.items()
    ]
    columns = [Column(name, overflow="fold") for name in ("way", *MEASURES.values())]
    show(columns, rows, caption=f"{result.summary} {result.method} The 95% interval over playlists is in parentheses.")
