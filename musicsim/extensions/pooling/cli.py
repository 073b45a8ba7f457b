"""The option ``--contribute`` of ``musicsim evaluate``, and the command ``musicsim pool``."""

import math
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Column

from musicsim.cli.console import JsonOption, emit, open_library, plain, progress_bar, show, warn
from musicsim.cli.evaluate import MEASURES, find_coverage, format_figure, replace_nan
from musicsim.cli.options import add_options
from musicsim.explorer.evaluation.quality import Figure
from musicsim.explorer.requests.training import KINDS
from musicsim.extensions.pooling.disclosure import FAMILIES
from musicsim.extensions.pooling.measuring import contribute as measure
from musicsim.extensions.pooling.pooled import PooledTable, pool_contributions, read_files
from musicsim.library.disk.arrays import atomic_path
from musicsim.wording import count

_File = Annotated[
    Path | None,
    typer.Option(
        help="With --against: write the difference to this file for `musicsim pool`, without names, and print it.",
        metavar="FILE",
    ),
]
_Name = Annotated[
    str, typer.Option("--as", help="With --contribute: public name of the model, such as MERT-v1-95M.", metavar="NAME")
]


@add_options
def evaluate_options(
    command: Callable[..., None], *, contribute: _File = None, public_name: _Name = "", **values: Any
) -> None:
    if contribute is None:
        if public_name:
            raise typer.BadParameter("needs --contribute FILE.", param_hint="--as")
        command(**values)
        return
    kind, against = values["by"], values.get("against")
    if against is None:
        raise typer.BadParameter("needs --against MODEL.", param_hint="--contribute")
    if kind is not None and kind not in KINDS:
        raise typer.BadParameter(f"{kind!r} must be one of {', '.join(KINDS)}.", param_hint="--by")
    if any(values.get(name) for name in ("model", "split", "search", "lists")):
        raise typer.BadParameter("can be combined only with --against, --as and --by.", param_hint="--contribute")
    with open_library(values["library"]) as library, progress_bar() as progress:
        covered = find_coverage(library, library.models.all(), kind)
        contribution = measure(library, against, covered.kind, public_name, progress)
    data = contribution.text.encode("ascii")
    target = contribute.expanduser().absolute()
    with atomic_path(target) as temporary:
        temporary.write_bytes(data)
    if values["as_json"]:
        emit({"file": str(target), "bytes": len(data), "text": contribution.text})
        return
    typer.echo(contribution.text, nl=False)
    typer.echo(plain(f"These are all {len(data):,} bytes of {target}. musicsim does not send them anywhere."))


def pool(
    files: Annotated[list[Path], typer.Argument(help="Contributions of libraries.", metavar="FILE...")],
    by: Annotated[
        str | None, typer.Option(help=f"Also group libraries by their share of {', '.join(FAMILIES)}.", metavar="GENRE")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    if by is not None and by not in FAMILIES:
        raise typer.BadParameter(f"{by!r} must be one of {', '.join(FAMILIES)}.", param_hint="--by")
    contributions, repeated = read_files(files)
    tables = pool_contributions(contributions, by or "")
    if as_json:
        emit(replace_nan({"tables": [asdict(table) for table in tables], "repeated": repeated}))
        return
    for sentence in repeated:
        warn("repeated", sentence)
    for table in tables:
        _show_table(table)


def _show_table(table: PooledTable) -> None:
    first, second = table.models
    names = ("measure", "libraries", "difference", "tau", "I²", "next library", "behind")
    columns = [Column(name, overflow="fold") for name in names]
    rows = [
        (
            ", ".join(filter(None, (MEASURES[row.measure], row.subgroup))), row.combined.n,
            format_figure(Figure(row.combined.mean, row.combined.low, row.combined.high)),
            *(_format(value) for value in (row.combined.tau, row.combined.i2)),
            _format(row.combined.predicted_low, row.combined.predicted_high), row.n_behind,
        )
        for row in table.rows
    ]  # fmt: skip
    caption = (
        f"Ground truth: {KINDS[table.ground_truth].words}. Difference: {second} minus {first}, with the 95% interval "
        "of a random-effects model (REML, Hartung-Knapp). Next library: 95% prediction interval. Behind: libraries in "
        f"which {second} is behind. {count(len(table.versions), 'version')} of musicsim: {', '.join(table.versions)}."
    )
    show(columns, rows, title=f"{second} vs. {first}", caption=caption)


def _format(*values: float) -> str:
    return "-" if any(map(math.isnan, values)) else " to ".join(f"{value:.3f}" for value in values)
