"""Query parameters of routes, made from the request that a route takes."""

import inspect
from collections.abc import Callable
from types import GenericAlias
from typing import Any, TypeVar

from fastapi import HTTPException, Query

from musicsim.explorer.requests.options import Option, options_of

__all__ = ["asked_for"]

T = TypeVar("T")


def asked_for(request: type[T]) -> Callable[..., T]:
    """A dependency that reads a request of this type from the query."""

    def read(**values: Any) -> T:
        try:
            return request(**values)
        except ValueError as error:
            raise HTTPException(422, str(error)) from error

    parameters = [_parameter(option) for option in options_of(request).values()]
    read.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return read


def _parameter(option: Option) -> inspect.Parameter:
    kind: Any = option.element
    if option.many:
        kind = GenericAlias(option.many, (kind, ...) if option.many is tuple else kind)
    elif option.n_values > 1:
        kind = GenericAlias(tuple, (kind,) * option.n_values)
    facts: dict[str, Any] = {"alias": option.name, "description": option.help}
    if option.element in (int, float) and not option.many and option.n_values == 1:
        most = option.max if option.max_asked is None else option.max_asked
        facts |= {"ge": option.min, "le": most, "gt": option.above}
    if option.choices:
        facts["json_schema_extra"] = {"enum": list(option.choices)}
    kind = kind | None if option.default is None else kind
    return inspect.Parameter(
        option.field, inspect.Parameter.KEYWORD_ONLY, default=Query(option.default, **facts), annotation=kind
    )
