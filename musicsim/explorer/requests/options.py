"""Options: a field of a request with all that command line, HTTP interface and form say of it."""

from dataclasses import dataclass, field, fields
from functools import cache
from types import GenericAlias, NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints


class OptionError(ValueError):
    """A value is not one that a field can have; `option` and `shortfall` say of which and what it should be."""

    def __init__(self, asked: "Option", value: Any, shortfall: str) -> None:
        super().__init__(f"{asked.field}={value!r} should be {shortfall}.")
        self.option, self.value, self.shortfall = asked, value, shortfall


@dataclass(frozen=True)
class Option:
    """What may be given for a field of a request."""

    help: str
    label: str = ""  # of its widget in a form; empty where it has none
    name: str = ""  # on the command line and over HTTP; that of the field by default
    flags: tuple[str, ...] = ()  # how it is spelt on the command line; `--name` by default
    # limits of the value: at least, at most, more than
    min: float | None = None
    max: float | None = None
    above: float | None = None
    # at most so much can be asked for; the program itself may go beyond, as when a long playlist is redrawn
    max_asked: int | None = None
    choices: tuple[str, ...] = ()  # its values, where they are few
    field: str = ""
    default: Any = None
    element: type = str  # of the value, or of one of several
    # frozenset or tuple where there may be any number of values; they are given as a list
    many: type | None = None
    n_values: int = 1  # 2 for a range, which is given as two values

    @property
    def annotation(self) -> Any:
        """The type of a parameter that takes it."""
        kind: Any = self.element
        if self.many:
            kind = GenericAlias(list, kind)
        elif self.n_values > 1:
            kind = GenericAlias(tuple, (kind,) * self.n_values)
        return kind | None if self.default is None else kind

    @property
    def default_given(self) -> Any:
        """The default, as it would be given."""
        return list(self.default) if self.many else self.default

    @property
    def limits(self) -> tuple[float | None, float | None]:
        """The smallest and the largest number that can be asked for; None for no limit, and for ranges."""
        if self.n_values > 1:  # only `shortfall` looks at both values
            return None, None
        return self.min, self.max if self.max_asked is None else self.max_asked

    def shortfall(self, value: Any) -> str:
        """What the value should be and is not, in words; empty where it is."""
        if value is None or self.many is not None:
            return ""
        if self.choices:
            return "" if value in self.choices else f"one of {', '.join(self.choices)}"
        if self.n_values > 1:
            return self._shortfall_of_range(*value)
        if self.above is not None:
            return "" if self.above < value < float("inf") else f"a number above {self.above:g}"
        if self.min is not None and self.max is not None:
            return "" if self.min <= value <= self.max else f"between {self.min:g} and {self.max:g}"
        return "" if self.min is None or value >= self.min else f"at least {self.min:g}"

    def _shortfall_of_range(self, low: float, high: float) -> str:
        if not low <= high:
            return "a lower and an upper bound"
        if self.min is None or self.max is None or self.min <= low <= high <= self.max:
            return ""
        return f"two numbers between {self.min:g} and {self.max:g}"


def option(default: Any, help: str, **facts: Any) -> Any:
    """A field of a dataclass that can be asked for; `facts` are those of :class:`Option`."""
    return field(default=default, metadata={"help": help} | facts)


def options_of(request: type[Any]) -> dict[str, Option]:
    """The options of a request by their field, in the order in which they are shown."""
    key: Any = request  # a type, which the cache can hold whatever its values are
    return _read_options(key)


@cache
def _read_options(request: Any) -> dict[str, Option]:
    hints, found = get_type_hints(request), {}
    for f in fields(request):
        if "help" in f.metadata:
            facts: dict[str, Any] = {"name": f.name, **f.metadata, **_shape(hints[f.name])}
            found[f.name] = Option(field=f.name, default=f.default, **facts)
    return found


def _shape(hint: Any) -> dict[str, Any]:
    """Element, collection and number of values of a type."""
    if get_origin(hint) in (Union, UnionType):
        (hint,) = (part for part in get_args(hint) if part is not NoneType)
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Literal:
        return {"element": str}
    if origin is None:
        return {"element": hint}
    if origin is tuple and ... not in parts:
        return {"element": parts[0], "n_values": len(parts)}
    return {"element": parts[0], "many": origin}


def changed(request: Any) -> dict[str, Any]:
    """The options of a request that are not as by default, by their field, as JSON keeps them."""
    values = {name: (getattr(request, name), asked.default) for name, asked in options_of(type(request)).items()}
    return {
        name: sorted(value) if isinstance(value, frozenset) else value
        for name, (value, default) in values.items()
        if value != default
    }


def settle(request: Any) -> None:
    """Make lists of values what the fields of a request hold; for the end of its ``__post_init__``.

    Raises OptionError for the first field that is out of its limits.
    """
    for name, asked in options_of(type(request)).items():
        value = getattr(request, name)
        if asked.many:
            object.__setattr__(request, name, asked.many(value))
        shortfall = asked.shortfall(value)
        if shortfall:
            raise OptionError(asked, value, shortfall)
