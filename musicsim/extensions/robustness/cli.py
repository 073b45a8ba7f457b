"""The option ``--robustness`` of ``musicsim evaluate``."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated, Any

import typer

from musicsim.cli import add_options, emit, open_library, progress_bar, show
from musicsim.explorer import take_snapshot
from musicsim.extensions.robustness.measuring import COLUMNS, measure_robustness
from musicsim.progress import add_prefix

_HELP = "Measure how results change if the query is compressed, noisy, shifted, stretched or cut, with this many songs."


@add_options
def evaluate_options(
    command: Callable[..., None],
    *,
    robustness: Annotated[int | None, typer.Option(help=_HELP, metavar="SONGS", min=2)] = None,
    **values: Any,
) -> None:
    if robustness is None:
        command(**values)
        return
    if any(values.get(name) for name in ("truth", "split", "search", "lists", "against", "contribute")):
        raise typer.BadParameter("can be combined only with --model and --json.", param_hint="--robustness")
    with open_library(values["library"]) as library, progress_bar() as progress:
        models = library.models
        records = [models.find(name) for name in values["model"]] if values["model"] else [models.get()]
        results = {}
        for record in records:
            shown = add_prefix(progress, f"{record.name}: ")
            results[record.name] = measure_robustness(take_snapshot(library, record.id), robustness, progress=shown)
    if values["as_json"]:
        emit({"models": [{"model": name} | asdict(result) for name, result in results.items()]})
        return
    for name, result in results.items():
        show(COLUMNS, (one.cells for one in result.results), title=name, caption=result.describe())
