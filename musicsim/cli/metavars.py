"""Names of values in help texts: FILE, NUMBER or ARTIST instead of a Python type."""

import inspect
from enum import Enum
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, get_args, get_origin

_OF_TYPES = {int: "NUMBER", float: "NUMBER", Path: "FILE", list[int]: "ID"}
_OF_PAIRS = {int: "FIRST LAST", float: "MIN MAX"}


def name_values(command: Any) -> None:
    """Name the values of a command's parameters, or of all commands in a group, and say which options can be repeated.

    Names that exist already are kept.
    """
    for subcommand in getattr(command, "commands", {}).values():
        name_values(subcommand)
    if command.callback is None:
        return
    given = inspect.signature(command.callback, eval_str=True).parameters
    for parameter in command.params:
        if getattr(parameter, "multiple", False) and "repeated" not in (parameter.help or ""):
            parameter.help = f"{parameter.help} Can be repeated."
        if parameter.metavar is None and parameter.name in given and not getattr(parameter, "is_flag", False):
            parameter.metavar = _name_value(parameter.name, given[parameter.name].annotation)


def _name_value(name: str, annotation: Any) -> str:
    kind = _strip(annotation)
    if kind in _OF_TYPES:
        return _OF_TYPES[kind]
    if get_origin(kind) is tuple:
        return _OF_PAIRS[get_args(kind)[0]]
    is_several = get_origin(kind) is list
    element = get_args(kind)[0] if is_several else kind
    if element in _OF_TYPES:
        return _OF_TYPES[element]
    if issubclass(element, Enum):
        return "|".join(choice.value for choice in element)
    return (name.removeprefix("no_").removesuffix("s") if is_several else name).upper()


def _strip(annotation: Any) -> Any:
    """Return a type without the parts that `Annotated` and `| None` add."""
    if get_origin(annotation) is Annotated:
        return _strip(get_args(annotation)[0])
    kinds = [kind for kind in get_args(annotation) if kind is not NoneType]
    return kinds[0] if NoneType in get_args(annotation) else annotation
