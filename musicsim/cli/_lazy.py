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
    """Make a command of a function, with the options that extensions add to it, or a group of a Typer.

    Its help is the sentence of the record, then the docstring of the function or the help of the Typer, if any.
    """
    if not isinstance(target, typer.Typer):
        for extension in extensions():
            if name in extension.command_options:
                target = extension.load(extension.command_options[name])(target)
        function, target = target, typer.Typer()
        target.command(name)(function)
    target._add_completion = False  # the options that install completion belong to the program
    command = typer.main.get_command(target)
    command.help = f"{record.help}\n\n{command.help or ''}".strip()
    return command


def _load_core(record: Command, name: str) -> Any:
    module, _, attribute = record.target.partition(":")
    built = _build(getattr(import_module(f"musicsim.cli.{module}"), attribute), name, record)
    for full_name, lazy in _extension_commands().items():
        group, _, short_name = full_name.rpartition(" ")
        if group == name:
            built.add_command(lazy, short_name)
    return built


def _extension_commands() -> dict[str, LazyCommand]:
    commands = {}
    for extension in extensions():
        for name, record in extension.commands.items():

            def load(extension: Extension = extension, record: Command = record, name: str = name) -> Any:
                return _build(extension.load(record.target), name.rpartition(" ")[2], record)

            commands[name] = LazyCommand(name.rpartition(" ")[2], record, load)
    return commands


def lazy_commands(core: Mapping[str, Command]) -> dict[str, LazyCommand]:
    """All commands by name: those of the core in their order, then those of the extensions."""
    commands = {
        name: LazyCommand(name, record, lambda record=record, name=name: _load_core(record, name))  # type: ignore[misc]
        for name, record in core.items()
    }
    return commands | {name: command for name, command in _extension_commands().items() if " " not in name}
