"""Command options that come from a request type or from an extension."""

import inspect
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import typer

from musicsim.explorer import Filters, options_of
from musicsim.explorer.requests.options import Option, OptionError

T = TypeVar("T")


def take_request(request: type[T]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Replace a command's `request` parameter with the type's options; invalid values raise typer.BadParameter."""
    options = options_of(request)

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(command, eval_str=True)
        own = {
            name: parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for name, parameter in signature.parameters.items()
            if name != "request"
        }

        @wraps(command)
        def run(**values: Any) -> None:
            given = {field: values.pop(field) for field in options}
            try:
                parsed = request(**given)
            except OptionError as error:
                message = f"{flag_of(error.option)} should be {error.shortfall}, not {error.value!r}."
                raise typer.BadParameter(message) from error
            except ValueError as error:
                raise typer.BadParameter(str(error)) from error
            if isinstance(parsed, Filters):  # the library stores absolute paths
                parsed = replace(parsed, folders=_absolute(parsed.folders), no_folders=_absolute(parsed.no_folders))
            command(**values, request=parsed)

        return _set_parameters(run, [*map(_parameter, options.values()), *own.values()])

    return decorate


def add_options(function: Callable[..., None]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that adds the options of a function to a command.

    ``function(command, *, option, ..., **values)`` then runs instead, and calls ``command(**values)`` itself.
    """
    added = [p for p in inspect.signature(function, eval_str=True).parameters.values() if p.kind is p.KEYWORD_ONLY]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def run(**values: Any) -> None:
            function(command, **values)

        own = inspect.signature(command, eval_str=True).parameters.values()
        return _set_parameters(run, [*(p.replace(kind=p.KEYWORD_ONLY) for p in own), *added])

    return decorate


def _set_parameters(run: Callable[..., None], parameters: list[inspect.Parameter]) -> Callable[..., None]:
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _absolute(folders: Iterable[str]) -> frozenset[str]:
    return frozenset(str(Path(folder).expanduser().absolute()) for folder in folders)


def flag_of(option: Option) -> str:
    """Return the flag of an option on the command line."""
    return option.flags[0] if option.flags else f"--{option.name.replace('_', '-')}"


# names of values that neither the option's type nor its name suggests
_METAVARS = {
    "by": "FACTOR", "first": "ID", "jellyfin": "FOLDER", "on": "MODEL", "part": "START END", "sort": "VALUE",
    "supervision": "SOURCE", "words": "WORDS",
}  # fmt: skip
_MAX_CHOICES = 40  # characters


def _metavar(option: Option) -> str | None:
    choices = "|".join(option.choices)
    return _METAVARS.get(option.field) or (choices if 0 < len(choices) <= _MAX_CHOICES else None)


def _help(option: Option) -> str:
    """Return the help of an option, with its choices if neither the help nor the name of the value has them."""
    is_listed = _metavar(option) == "|".join(option.choices) or all(choice in option.help for choice in option.choices)
    return option.help if is_listed else f"{option.help} One of {', '.join(option.choices)}."


def _parameter(option: Option) -> inspect.Parameter:
    flags = option.flags or (flag_of(option),)
    if option.element is bool:
        flags = (f"{flags[0]}/{flags[0].replace('--', '--no-')}",)
    least, most = option.limits_of_owner  # visitors have no command line
    parameter = typer.Option(
        option.default_given, *flags, help=_help(option), metavar=_metavar(option), min=least, max=most,
        rich_help_panel="Filters" if option.field in options_of(Filters) else None,
    )  # fmt: skip
    return inspect.Parameter(
        option.field, inspect.Parameter.KEYWORD_ONLY, default=parameter, annotation=option.annotation
    )
