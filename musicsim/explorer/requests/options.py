"""Options: fields of a request with help, limits and names for the command line, HTTP interface and forms."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from types import GenericAlias, NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from musicsim.public import is_public

T = TypeVar("T")


class OptionError(ValueError):
    """Error for an invalid value of `option`; `shortfall` describes valid values."""

    def __init__(self, option: "Option", value: Any, shortfall: str) -> None:
        super().__init__(f"{option.field}={value!r} must be {shortfall}.")
        self.option, self.value, self.shortfall = option, value, shortfall


@dataclass(frozen=True)
class Option:
    """Description of a field of a request."""

    help: str
    label: str = ""  # label of its widget in a form; empty if there is no widget
    name: str = ""  # name on the command line and over HTTP; by default the name of the field
    flags: tuple[str, ...] = ()  # flags on the command line; `--name` by default
    min: float | None = None
    max: float | None = None
    above: float | None = None  # exclusive minimum
    max_asked: int | None = None  # limit for users; musicsim may exceed it, for example to regenerate a long playlist
    max_of_visitors: float | None = None  # limit for visitors of a public demonstration
    choices: tuple[str, ...] = ()
    field: str = ""
    default: Any = None
    element: type = str  # type of one value
    many: type | None = None  # frozenset or tuple if the option takes any number of values, which are passed as a list
    n_values: int = 1  # 2 for a range

    @property
    def annotation(self) -> Any:
        """Type of a parameter for this option."""
        kind: Any = self.element
        if self.many:
            kind = GenericAlias(list, kind)
        elif self.n_values > 1:
            kind = GenericAlias(tuple, (kind,) * self.n_values)
        return kind | None if self.default is None else kind

    @property
    def default_given(self) -> Any:
        """Default value; a list if the option takes any number of values."""
        return list(self.default) if self.many else self.default

    @property
    def limits_of_owner(self) -> tuple[float | None, float | None]:
        """Smallest and largest number that the owner may enter; None means unlimited."""
        if self.n_values > 1:  # only `shortfall` checks ranges
            return None, None
        return self.min, self.max if self.max_asked is None else self.max_asked

    @property
    def limits(self) -> tuple[float | None, float | None]:
        """Smallest and largest number that users of this app may enter; None means unlimited."""
        low, high = self.limits_of_owner
        return low, self.max_of_visitors if is_public() and self.max_of_visitors is not None else high

    def shortfall(self, value: Any) -> str:
        """Return a phrase that describes valid values; empty if the value is valid."""
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
    """Return a dataclass field for an option; `facts` are attributes of :class:`Option`."""
    return field(default=default, metadata={"help": help} | facts)


def options_of(request: type[Any]) -> dict[str, Option]:
    """Return the options of a request, keyed by field, in the order in which pages show them."""
    hashable: Any = request  # `cache` requires a type that is declared hashable
    return _read_options(hashable)


@cache
def _read_options(request: Any) -> dict[str, Option]:
    hints, options = get_type_hints(request), {}
    for f in fields(request):
        if "help" in f.metadata:
            facts: dict[str, Any] = {"name": f.name, **f.metadata, **_shape(hints[f.name])}
            options[f.name] = Option(field=f.name, default=f.default, **facts)
    return options


def _shape(hint: Any) -> dict[str, Any]:
    if isinstance(hint, UnionType):
        (hint,) = (part for part in get_args(hint) if part is not NoneType)
    origin, parts = get_origin(hint), get_args(hint)
    if origin is None:
        return {"element": hint}
    if origin is tuple and ... not in parts:
        return {"element": parts[0], "n_values": len(parts)}
    return {"element": parts[0], "many": origin}


def list_changes(request: Any) -> dict[str, Any]:
    """Return the JSON values of a request's options that differ from their defaults, keyed by field."""
    values = {name: (getattr(request, name), option.default) for name, option in options_of(type(request)).items()}
    return {
        name: sorted(value) if isinstance(value, frozenset) else value
        for name, (value, default) in values.items()
        if value != default
    }


def read_changes(kind: type[T], changes: Mapping[str, Any]) -> T:
    """Return a request from the values that :func:`list_changes` returned for it.

    Raises ValueError for unknown options and invalid values.
    """
    options = options_of(kind)
    if unknown := changes.keys() - options.keys():
        raise ValueError(f"there is no option {', '.join(sorted(unknown))}")
    try:
        return kind(**{name: tuple(v) if options[name].n_values > 1 else v for name, v in changes.items()})
    except TypeError as error:
        raise ValueError(str(error)) from error


def settle(request: Any) -> None:
    """Convert lists to the types of their fields, and check all values; raises OptionError for an invalid one."""
    for name, option in options_of(type(request)).items():
        value = getattr(request, name)
        if option.many:
            object.__setattr__(request, name, option.many(value))
        shortfall = option.shortfall(value)
        if shortfall:
            raise OptionError(option, value, shortfall)
