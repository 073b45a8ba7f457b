"""The option ``--contribute`` of ``musicsim evaluate``, and the command ``musicsim pool``."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Column

from musicsim.cli import (
    MEASURES,
    JsonOption,
    add_options,
    emit,
    find_coverage,
    format_figure,
    open_library,
    plain,
    progress_bar,
    replace_nan,
    show,
    warn,
)
from musicsim.explorer import TRAINING_KINDS, Figure
from musicsim.extensions.pooling.disclosure import FAMILIES
from musicsim.extensions.pooling.measuring import contribute as measure
from musicsim.extensions.pooling.pooled import pool_contributions, read_files
from musicsim.library import atomic_path
from musicsim.wording import count

_FILE_HELP = "With --against: write the difference to a file for `musicsim pool`, without names, and print the file."
_NAME_HELP = "With --contribute: public name of the model, such as MERT-v1-95M."
_BY_HELP = f"Also group the libraries by their share of {', '.join(FAMILIES)}."
_File = Annotated[Path | None, typer.Option(help=_FILE_HELP, metavar="FILE")]
_Name = Annotated[str, typer.Option("--public-name", help=_NAME_HELP, metavar="NAME")]


@add_options
def evaluate_options(
    command: Callable[..., None], *, contribute: _File = None, public_name: _Name = "", **values: Any
) -> None:
    if contribute is None:
        command(**values)
        return
    if values.get("against") is None or any(values.get(name) for name in ("model", "split", "search", "lists")):
        raise typer.BadParameter(
            "needs --against MODEL, and allows only --public-name and --truth.", param_hint="--contribute"
        )
    with open_library(values["library"]) as library, progress_bar() as progress:
        covered = find_coverage(library, library.models.all(), values["truth"])
        text = measure(library, values["against"], covered.kind, public_name, progress).text
    target = contribute.expanduser().absolute()
    with atomic_path(target) as temporary:
        temporary.write_bytes(text.encode("ascii"))
    if values["as_json"]:
        emit({"file": str(target), "bytes": len(text), "text": text})
        return
    typer.echo(text)
    typer.echo(plain(f"These are all {len(text):,} bytes of {target}. musicsim does not send them anywhere."))


def pool(
    files: Annotated[list[Path], typer.Argument(help="Contributions of libraries.", metavar="FILE")],
    by: Annotated[str | None, typer.Option("--share", help=_BY_HELP, metavar="FAMILY")] = None,
    as_json: JsonOption = False,
) -> None:
    """Examples:
    musicsim pool anna.json ben.json
    musicsim pool anna.json ben.json --share classical
    """
    if by is not None and by not in FAMILIES:
        raise typer.BadParameter(f"{by!r} must be one of {', '.join(FAMILIES)}.", param_hint="--share")
    contributions, repeated = read_files(files)
    tables = pool_contributions(contributions, by or "")
    if as_json:
        emit(replace_nan({"tables": tables, "repeated": repeated}))
        return
    for sentence in repeated:
        warn("repeated", sentence)
    for table in tables:
        _show_table(table)


def _show_table(table: Mapping[str, Any]) -> None:
    first, second = table["models"]
    versions, rows = table["versions"], []
    for row in table["rows"]:
        name = ", ".join(filter(None, (MEASURES[row["measure"]], row["subgroup"])))
        mean = format_figure(Figure(row["mean"], row["low"], row["high"]))
        spread = (f"{row['tau']:.3f}", f"{row['i2']:.0%}") if row["n"] > 1 else ("-", "-")
        predicted = f"{row['predicted_low']:.3f} to {row['predicted_high']:.3f}" if row["n"] > 2 else "-"
        rows.append((name, row["n"], mean, *spread, predicted, row["n_behind"]))
    caption = (
        f"Ground truth: {TRAINING_KINDS[table['ground_truth']].words}. Difference: {second} minus {first}, with a 95% "
        "interval (random effects, REML, Hartung-Knapp). Next library: 95% prediction interval. Behind: number of "
        f"libraries in which {second} is behind. {count(len(versions), 'version')} of musicsim: {', '.join(versions)}."
    )
    names = ("measure", "libraries", "difference", "tau", "I²", "next library", "behind")
    show([Column(name, overflow="fold") for name in names], rows, title=f"{second} vs. {first}", caption=caption)
