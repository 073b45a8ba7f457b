"""The command group ``musicsim answers``."""

from pathlib import Path
from typing import Annotated

import typer

from musicsim.cli.console import SOME_FAILED, JsonOption, LibraryOption, echo, emit, open_library, warn
from musicsim.explorer import render_fields
from musicsim.library.importing.answers import export_answers, import_answers
from musicsim.wording import count

group = typer.Typer(no_args_is_help=True)
_OF_VOTES = {name: f"n_{name}" for name in ("used", "unmatched", "undecided")}


@group.command("export")
def _export(
    file: Annotated[Path, typer.Argument(help="The CSV file to write.")],
    library: LibraryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write all answers to a CSV file that can be imported into another library.

    The file contains listeners' names, song titles, and the last parts of the songs' paths.

    Examples:
        musicsim answers export answers.csv
        musicsim answers export ~/answers.csv --library ~/jazz
    """
    with open_library(library) as lib:
        n_answers = export_answers(lib, file.expanduser())
        listeners = lib.judgments.listeners()
    if as_json:
        emit({"file": str(file), "answers": n_answers, "listeners": listeners})
    else:
        echo(f"{count(n_answers, 'answer')} from {count(len(listeners), 'listener')} written to {file}.")


@group.command("import")
def _import(
    file: Annotated[
        Path,
        typer.Argument(
            help="An exported CSV file, one with columns song1,song2,song3,picked_song, or the votes in MagnaTagATune "
            "(comparisons_final.csv) or dim-sim (clean-dim-sim.csv)."
        ),
    ],
    library: LibraryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Import answers from a file; known answers are skipped.

    Exits with code 3 if rows were left out because they are invalid or their songs are not in the library.

    Examples:
        musicsim answers import answers.csv
        musicsim answers import comparisons_final.csv --json
    """
    with open_library(library) as lib:
        result = import_answers(lib, file.expanduser())
    n_left = result.n_read - result.n_added - result.n_known
    if as_json:
        counts = {name: f"n_{name}" for name in ("read", "added", "known", "unmatched")}
        votes = result.comparisons
        extra = {} if votes is None else {"comparisons": render_fields(votes, **_OF_VOTES)}
        emit(render_fields(result, "problems", **counts) | extra)
    else:
        typer.echo(f"{count(result.n_read, 'answer')} read: {result.n_added} added, {result.n_known} already known.")
        if result.comparisons is not None:
            typer.echo(f"{result.comparisons}.")
        for problem in result.problems:
            warn("left out", problem)
    if n_left:
        raise typer.Exit(SOME_FAILED)
