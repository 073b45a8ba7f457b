"""The command group ``musicsim libraries``."""

from pathlib import Path
from typing import Annotated

import typer

from musicsim.cli.console import JsonOption, echo, emit, show
from musicsim.explorer import libraries

group = typer.Typer(no_args_is_help=True)
_Name = Annotated[str, typer.Argument(help="Name of a library, which is the name of its folder.")]


def list_libraries(as_json: JsonOption = False) -> None:
    """List the default library, and the libraries next to it.

    Examples:
        musicsim libraries list
        musicsim libraries list --json
    """
    default = libraries.default_folder()
    folders = libraries.library_folders()
    if as_json:
        emit([{"name": one.name, "folder": str(one), "is_default": one == default} for one in folders])
    else:
        show(("", "name", "folder"), [("*" if one == default else "", one.name, one) for one in folders])


def create(name: _Name, as_json: JsonOption = False) -> None:
    """Create an empty library next to the default one.

    Examples:
        musicsim libraries create Jazz
        musicsim libraries create "My music" --json
    """
    _report(libraries.create_library(name), "was created", as_json=as_json)


def use(name: _Name, as_json: JsonOption = False) -> None:
    """Make a library the default one for all commands and the app. MUSICSIM_LIBRARY takes precedence.

    Examples:
        musicsim libraries use Jazz
        musicsim libraries use library
    """
    _report(libraries.use_library(name), "is the default library now", as_json=as_json)


def _report(folder: Path, outcome: str, *, as_json: bool) -> None:
    if as_json:
        emit({"name": folder.name, "folder": str(folder)})
    else:
        echo(f"{folder.name} {outcome}: {folder}")


group.command("list")(list_libraries)
group.command()(create)
group.command()(use)
