"""The ``musicsim help`` command."""

from typing import Annotated, Any

import typer

from musicsim.cli.console import JsonOption, emit, show


def show_help(
    context: typer.Context,
    words: Annotated[
        list[str] | None, typer.Argument(help="A command, such as `models use`, or a group.", metavar="COMMAND|GROUP")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Without a name, all commands are listed by group.

    Examples:
        musicsim help research
        musicsim help models use
    """
    program: Any = context.find_root().command
    groups, name = program.groups(), " ".join(words or ()).lower()
    if words and words[0] in program.commands:
        program.main([*words, "--help"], prog_name=context.find_root().info_name)
    if name and name not in groups:
        raise typer.BadParameter(f"{name!r} is neither a command nor a group: the groups are {', '.join(groups)}.")
    listed = {name: groups[name]} if name else groups
    if as_json:
        emit([
            {"name": command.name, "group": group, "help": command.help}
            for group, commands in listed.items() for command in commands
        ])  # fmt: skip
        return
    for group, commands in listed.items():
        show((), [(f"musicsim {command.name}", command.help) for command in commands], title=group.capitalize())
