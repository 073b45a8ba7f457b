"""The command group ``musicsim splits``."""

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from musicsim.cli.console import SOME_FAILED, JsonOption, LibraryOption, echo, emit, open_library, report, show, warn
from musicsim.library.importing.splits import import_split
from musicsim.library.stores.splits import PARTS
from musicsim.wording import count

group = typer.Typer(no_args_is_help=True)


@group.command("list")
def _list(library: LibraryOption = None, as_json: JsonOption = False) -> None:
    """List fixed splits, with the number of songs in each part.

    Examples:
        musicsim splits list
        musicsim splits list --json
    """
    with open_library(library) as lib:
        counts = {name: Counter(lib.splits.get(name).values()) for name in lib.splits.names()}
    if as_json:
        emit({name: {part: n[part] for part in PARTS} for name, n in counts.items()})
    else:
        rows = [(name, *(n[part] for part in PARTS)) for name, n in counts.items()]
        show(
            ("split", *PARTS), rows, empty="This library has no splits. Import one with `musicsim splits import FILE`."
        )


@group.command("import")
def _import(
    file: Annotated[
        Path, typer.Argument(help="CSV with a split column (train, validation, test) and a hash, path or id column.")
    ],
    library: LibraryOption = None,
    as_json: JsonOption = False,
    name: Annotated[str, typer.Option(help="Name of the split; the file's name by default.")] = "",
) -> None:
    """Import a split, such as an edited file from `musicsim export splits`. A split with the same name is replaced.

    Exits with code 3 if rows were left out.

    Examples:
        musicsim splits import split.csv
        musicsim splits import split.csv --name official
    """
    with open_library(library) as lib:
        done = import_split(lib, file, name)
    if as_json:
        emit({"name": done.name, "read": done.n_read, "songs": done.n_songs, "problems": done.problems})
    else:
        echo(f"{done.name}: {count(done.n_songs, 'song')} found in {count(done.n_read, 'row')}.")
        for problem in done.problems:
            warn("left out", problem)
    if done.problems:
        raise typer.Exit(SOME_FAILED)


@group.command("delete")
def _delete(
    name: Annotated[str, typer.Argument(help="Name of a split, as shown by `musicsim splits list`.")],
    library: LibraryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete a fixed split.

    Examples:
        musicsim splits delete official
        musicsim splits delete official --library ~/jazz
    """
    with open_library(library) as lib:
        lib.splits.delete(name)
    report({"name": name}, f"{name} was deleted.", as_json=as_json)
