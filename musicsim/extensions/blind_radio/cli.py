"""The ``musicsim radio`` commands."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from musicsim.cli import JsonOption, LibraryOption, echo, emit, open_library, report
from musicsim.extensions.blind_radio.results import describe, export_csv, results_of
from musicsim.extensions.blind_radio.store import RadioStore
from musicsim.library import Library, atomic_path

group = typer.Typer(no_args_is_help=True)

_Name = Annotated[str, typer.Argument(help="Name of a model, as shown by `musicsim models list`.", metavar="MODEL")]
_Seed = Annotated[int | None, typer.Option(min=0, help="Seed of the coin; random by default.")]
_Reveal = Annotated[bool, typer.Option("--reveal", help="Show which model is A and which is B.")]


@group.command()
def start(
    first: _Name, second: _Name, seed: _Seed = None, library: LibraryOption = None, as_json: JsonOption = False
) -> None:
    """Start a trial: from now on, two models take turns in the queue.

    Examples:
        musicsim radio start Sound Mine
        musicsim radio start Sound Mine --seed 7
    """
    with open_library(library) as lib:
        RadioStore(lib).start(first, second, seed)
        _report(lib, as_json=as_json)


@group.command()
def status(library: LibraryOption = None, as_json: JsonOption = False) -> None:
    """Show the result of the newest trial so far. You may look at any time.

    Examples:
        musicsim radio status
        musicsim radio status --json
    """
    with open_library(library) as lib:
        _report(lib, as_json=as_json)


@group.command()
def stop(reveal: _Reveal = False, library: LibraryOption = None, as_json: JsonOption = False) -> None:
    """End the newest trial.

    Examples:
        musicsim radio stop
        musicsim radio stop --reveal
    """
    with open_library(library) as lib:
        RadioStore(lib).end(RadioStore(lib).get_latest(), reveal=reveal)
        _report(lib, as_json=as_json)


@group.command()
def export(
    file: Annotated[Path, typer.Argument(help="CSV file to write.")],
    library: LibraryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write the songs of the newest trial, with their outcomes, to a CSV file.

    Examples:
        musicsim radio export trial.csv
        musicsim radio export ~/trial.csv --library ~/jazz
    """
    target = file.expanduser().absolute()
    with open_library(library) as lib, atomic_path(target) as temporary:
        temporary.write_bytes(export_csv(lib))
    report({"file": str(target)}, f"Written to {target}.", as_json=as_json)


def _report(library: Library, *, as_json: bool) -> None:
    results = results_of(library)
    if as_json:
        emit(asdict(results))
    else:
        echo("\n".join(describe(results)))
