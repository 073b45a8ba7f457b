"""Commands that are imported only when they run, so that `musicsim --help` and other commands start quickly."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand

from musicsim.cli.metavars import name_values
from musicsim.hooks import Command, Extension
from musicsim.registry import extensions, load_each


class LazyCommand(TyperCommand):
    """A command or group that is imported only to run it, complete its arguments, or show its help."""

    def __init__(self, name: str, record: Command, load: Callable[[], Any]) -> None:
        super().__init__(name, help=record.help, rich_help_panel=record.panel)
        self.load, self.record = load, record

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Make the context of the real command, so that it runs instead of this one."""
        return self.load().make_context(info_name, args, parent=parent, **extra)


def _build(target: Any, name: str, record: Command) -> Any:
    """Make a command from a function, with the options that extensions add, or a group from a Typer app.

    The help text is `record.help`, followed by the function's docstring or the Typer app's help text.
    """
    if not isinstance(target, typer.Typer):
        for add_options in load_each(lambda extension: extension.command_options.get(name, "")):
            target = add_options(target)
        function, target = target, typer.Typer()
        target.command(name)(function)
    target._add_completion = False  # only the program itself has the options that install completion
    command = typer.main.get_command(target)
    name_values(command)
    command.help = f"{record.help}\n\n{command.help or ''}".strip()
    _show_examples(command)
    return command


def _show_examples(command: Any) -> None:
    """Move the part “Examples:” of the help texts of a command or group to the end of its help, one per line."""
    for subcommand in getattr(command, "commands", {}).values():
        _show_examples(subcommand)
    text, heading, examples = (command.help or "").partition("Examples:\n")
    if heading:
        command.help = text.strip()
        command.epilog = "\n\n".join([heading.strip(), *map(str.strip, examples.strip().splitlines())])


def _core_command(name: str, record: Command, subcommands: Mapping[str, LazyCommand]) -> LazyCommand:
    def load() -> Any:
        module, _, attribute = record.target.partition(":")
        command = _build(getattr(import_module(f"musicsim.cli.{module}"), attribute), name, record)
        for short_name, subcommand in subcommands.items():
            if short_name not in command.commands:
                command.add_command(subcommand, short_name)
        return command

    return LazyCommand(name, record, load)


def _extension_command(extension: Extension, name: str, record: Command) -> LazyCommand:
    return LazyCommand(name, record, lambda: _build(extension.load(record.target), name, record))


def lazy_commands(core: Mapping[str, Command]) -> dict[str, LazyCommand]:
    """Return all commands, keyed by name: core commands in the given order, then commands of extensions.

    An extension's command with a two-word name belongs to the core group named by the first word. It cannot replace a
    command of the core.
    """
    groups: dict[str, dict[str, LazyCommand]] = {}
    for extension in extensions():
        for full_name, record in extension.commands.items():
            group, _, name = full_name.rpartition(" ")
            groups.setdefault(group, {})[name] = _extension_command(extension, name, record)
    commands = {name: _core_command(name, record, groups.get(name, {})) for name, record in core.items()}
    return commands | {name: command for name, command in groups.get("", {}).items() if name not in core}
