"""Options of commands, made from the request that a command takes."""

import inspect
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from pathlib import Path
from types import GenericAlias
from typing import Any, TypeVar

import typer

from musicsim.explorer.requests.filters import Filters
from musicsim.explorer.requests.options import Option, OptionError, options_of

__all__ = ["flag_of", "taking"]

T = TypeVar("T")


def flag_of(option: Option) -> str:
    """How an option is spelt, such as ``--no-tag``."""
    return option.flags[0] if option.flags else f"--{option.name.replace('_', '-')}"


def taking(request: type[T]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Let a command whose parameter `request` is one of this type take each of its options.

    A value out of its limits is wrong usage, in one sentence that names the option.
    """
    options = options_of(request)

    def decorated(command: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(command, eval_str=True)
        parameters = [
            taken
            for own in signature.parameters.values()
            for taken in (
                [_parameter(option) for option in options.values()]
                if own.name == "request"
                else [own.replace(kind=inspect.Parameter.KEYWORD_ONLY)]
            )
        ]

        @wraps(command)
        def run(**values: Any) -> None:
            given = {
                field: option.many(values.pop(field) or ()) if option.many else values.pop(field)
                for field, option in options.items()
            }
            try:
                asked = request(**given)
            except OptionError as error:
                raise typer.BadParameter(
                    f"{flag_of(error.option)} should be {error.shortfall}, not {error.value!r}."
                ) from error
            except ValueError as error:
                raise typer.BadParameter(str(error)) from error
            if isinstance(asked, Filters):  # a library knows folders by their whole path
                folders = frozenset(str(Path(f).expanduser().absolute()) for f in asked.folders)
                asked = replace(asked, folders=folders)
            command(**values, request=asked)

        run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run

    return decorated


def _parameter(option: Option) -> inspect.Parameter:
    kind: Any = option.element
    if option.many:
        kind = GenericAlias(list, kind)
    elif option.n_values > 1:
        kind = GenericAlias(tuple, (kind,) * option.n_values)
    default = None if option.many else option.default
    flags = option.flags or (flag_of(option),)
    if option.element is bool:
        flags = (f"{flags[0]}/{flags[0].replace('--', '--no-')}",)
    facts: dict[str, Any] = {"help": option.help}
    if option.element in (int, float) and not option.many and option.n_values == 1:
        facts |= {"min": option.min, "max": option.max if option.max_asked is None else option.max_asked}
    kind = kind | None if default is None else kind
    return inspect.Parameter(
        option.field,
        inspect.Parameter.KEYWORD_ONLY,
        default=typer.Option(default, *flags, **facts),
        annotation=kind,
    )
