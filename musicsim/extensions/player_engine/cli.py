"""The command for players in other programs: token and rules."""

from typing import Annotated

import typer

from musicsim.cli import JsonOption, LibraryOption, emit, open_library, plain, take_request
from musicsim.explorer import list_changes, options_of
from musicsim.extensions.player_engine.access import PlayerRules, answer_players, player_access, refuse_players


@take_request(PlayerRules)
def players(
    request: PlayerRules,
    library: LibraryOption = None,
    as_json: JsonOption = False,
    show: Annotated[bool, typer.Option("--show", help="Show the token and the rules without changing them.")] = False,
    off: Annotated[bool, typer.Option("--off", help="Turn off access for players; the token becomes invalid.")] = False,
    new_token: Annotated[
        bool, typer.Option("--new-token", help="Create a new token; the old token becomes invalid.")
    ] = False,
) -> None:
    """Let players that send the token use the library while the app is running. New rules replace all earlier rules.

    Examples:
        musicsim players --show
        musicsim players --no-folder ~/Music/Christmas --per-artist 1
    """
    with open_library(library) as lib:
        if off:
            refuse_players(lib)
            access = None
        elif show:
            access = player_access(lib)
        else:
            access = answer_players(lib, request, new_token=new_token)
    names = {field: option.name for field, option in options_of(PlayerRules).items()}
    rules = {} if access is None else {names[field]: value for field, value in list_changes(access.rules).items()}
    if as_json:
        emit({"token": access and access.token, "rules": rules})
    elif access is None:
        typer.echo("Access for players is off.")
    else:
        typer.echo(f"token: {access.token}")
        for name, value in rules.items():
            typer.echo(f"{name}: {plain(', '.join(map(str, value)) if isinstance(value, list) else str(value))}")
        typer.echo("Enter the app's address and this token in the player or plugin.")
