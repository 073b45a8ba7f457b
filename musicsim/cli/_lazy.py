"""Commands that are imported only when they run, so that `musicsim --help` and other commands start quickly."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand

from musicsim.hooks import Command, Extension, extensions


class LazyCommand(TyperCommand):
    """A command, or a group of commands, that is imported to run it, complete its arguments or show its help."""

    def __init__(self, name: str, record: Command, load: Callable[[], Any]) -> None:
        super().__init__(name, help=record.help, rich_help_panel=record.panel)
        self.load = load

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Make the context of the real command, which runs in the place of this one."""
        return self.load().make_context(info_name, args, parent=parent, **extra)


def _build(target: Any, name: str, record: Command) -> Any:
    """Make a command of a function, or a group of a Typer.

    Its help is the sentence of the record, then the docstring of the function or the help of the Typer, if any.
    """
    if not isinstance(target, typer.Typer):
        function, target = target, typer.Typer()
        target.command(name)(function)
    target._add_completion = False  # the options that install completion belong to the program
    command = typer.main.get_command(target)
    command.help = f"{record.help}\n\n{command.help or ''}".strip()
    return command


def _load_core(record: Command, name: str) -> Any:
    module, _, attribute = record.target.partition(":")
    command = getattr(import_module(f"musicsim.cli.{module}"), attribute)
    for extension in extensions():
        if name in extension.command_options:
            command = extension.load(extension.command_options[name])(command)
    return _build(command, name, record)


def lazy_commands(core: Mapping[str, Command]) -> dict[str, LazyCommand]:
    """All commands by name: those of the core in their order, then those of the extensions."""
    commands = {
        name: LazyCommand(name, record, lambda record=record, name=name: _load_core(record, name))  # type: ignore[misc]
        for name, record in core.items()
    }
    for extension in extensions():
        for name, record in extension.commands.items():

            def load(extension: Extension = extension, record: Command = record, name: str = name) -> Any:
                return _build(extension.load(record.target), name, record)

            commands[name] = LazyCommand(name, record, load)
    return commands
