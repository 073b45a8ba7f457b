"""What widgets say of the options of a request: label, help, limits and default."""

from typing import Any

from musicsim.explorer.requests.options import options_of
from musicsim.ui.base.state import Key

__all__ = ["labelled", "limits", "option_key"]


def labelled(request: type, field: str) -> dict[str, Any]:
    """Label and help of an option, as arguments of its widget."""
    option = options_of(request)[field]
    return {"label": option.label, "help": option.help}


def limits(request: type, field: str, max_value: int | None = None) -> dict[str, Any]:
    """The same with the smallest and largest value; the largest may be smaller here."""
    option = options_of(request)[field]
    most = next((m for m in (max_value, option.max, option.max_asked) if m is not None), None)
    return labelled(request, field) | {"min_value": _whole(option.min), "max_value": _whole(most)}


def _whole(number: float | None) -> int | None:
    return None if number is None else int(number)


def option_key(name: str, request: type, field: str) -> Key[Any]:
    """The entry of the session that holds an option, with its default; several values are a list."""
    option = options_of(request)[field]
    return Key(name, list if option.many else lambda: option.default, option.help)
