"""Query parameters of routes, generated from request classes."""

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from fastapi import HTTPException, Query

from musicsim.explorer.requests.options import Option, options_of

T = TypeVar("T")


def from_query(request: type[T]) -> Callable[..., T]:
    """Return a FastAPI dependency that reads a request of this class from the query string."""

    def read(**values: Any) -> T:
        try:
            return request(**values)
        except ValueError as error:
            raise HTTPException(422, str(error)) from error

    parameters = [_parameter(option) for option in options_of(request).values()]
    read.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return read


def _parameter(option: Option) -> inspect.Parameter:
    least, most = option.limits
    query: Any = Query(
        option.default_given,
        alias=option.name,
        description=option.help,
        ge=least,
        le=most,
        gt=option.above,
        json_schema_extra={"enum": list(option.choices)} if option.choices else None,
    )
    return inspect.Parameter(option.field, inspect.Parameter.KEYWORD_ONLY, default=query, annotation=option.annotation)
