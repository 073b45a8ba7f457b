"""The option ``--continue`` of ``musicsim evaluate``."""

from collections.abc import Callable
from typing import Annotated, Any

import typer
from rich.table import Column

from musicsim.cli._console import emit, open_library, progress_bar, show
from musicsim.cli._figures import format_figure
from musicsim.cli._options import adding_options
from musicsim.explorer.evaluation.quality import Figure
from musicsim.extensions.continuation.continuation import LISTS, MEASURES, continue_lists

_Lists = Annotated[
    str | None,
    typer.Option(
        "--continue",
        help="Instead: how well held-out lists are continued, playlists or sittings, by the walk and other ways.",
        metavar="LISTS",
    ),
]


def _evaluate(command: Callable[..., None], *, lists: _Lists = None, **values: Any) -> None:
    if lists is None:
        command(**values)
        return
    if values["model"] or values["by"] or values["split"]:
        raise typer.BadParameter("takes no --model, --by or --split.", param_hint="--continue")
    if lists not in LISTS:
        raise typer.BadParameter(f"{lists!r} should be one of {', '.join(LISTS)}.", param_hint="--continue")
    with open_library(values["library"]) as library, progress_bar() as progress:
        result = continue_lists(library, lists, progress)
    if values["as_json"]:
        emit(result.as_json())
        return
    rows = [
        (way, *(format_figure(Figure(*scores[name])) for name in MEASURES)) for way, scores in result.scores.items()
    ]
    columns = [Column(name, overflow="fold") for name in ("way", *MEASURES.values())]
    show(columns, rows, caption=f"{result.words} {result.method} In brackets the 95 % interval over lists.")


evaluate_options = adding_options(_evaluate)
