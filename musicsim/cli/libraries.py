"""The command group ``musicsim libraries``."""

from pathlib import Path
from typing import Annotated

import typer

from musicsim.cli.console import JsonOption, emit, report, show
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
        emit([_facts(folder) | {"is_default": folder == default} for folder in folders])
    else:
        show(("", "name", "folder"), [("*" if one == default else "", one.name, one) for one in folders])


def create(name: _Name, as_json: JsonOption = False) -> None:
    """Create an empty library next to the default one.

    Examples:
        musicsim libraries create Jazz
        musicsim libraries create "My music" --json
    """
    folder = libraries.create_library(name)
    report(_facts(folder), f"{folder.name} was created: {folder}", as_json=as_json)


def use(name: _Name, as_json: JsonOption = False) -> None:
    """Make a library the default one for all commands and the app. MUSICSIM_LIBRARY takes precedence.

    Examples:
        musicsim libraries use Jazz
        musicsim libraries use library
    """
    folder = libraries.use_library(name)
    report(_facts(folder), f"{folder.name} is now the default library: {folder}", as_json=as_json)


def _facts(folder: Path) -> dict[str, str]:
    return {"name": folder.name, "folder": str(folder)}


group.command("list")(list_libraries)
group.command()(create)
group.command()(use)
