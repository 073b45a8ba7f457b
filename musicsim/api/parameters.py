"""Parameters of requests in the query string, from the options of a request class."""

import inspect
from collections.abc import Callable, Collection
from typing import Annotated, Any, TypeVar

from fastapi import HTTPException, Path, Query

from musicsim.explorer import options_of
from musicsim.explorer.requests.options import Option

T = TypeVar("T")

LibraryQuery = Annotated[
    str | None, Query(description="name of a library; by default, the first one of `GET /api/libraries`")
]
ModelQuery = Annotated[str | None, Query(description="name of a model; by default, the one in use")]
SongPath = Annotated[int, Path(description="id of the song")]


def read_query(request: type[T], only: Collection[str] | None = None) -> Callable[..., T]:
    """Return a FastAPI dependency that builds a request of this class from the query string.

    With `only`, the query string has only these options, and the others keep their defaults.
    """

    options = [option for name, option in options_of(request).items() if only is None or name in only]

    def read(**values: Any) -> T:
        for option in options:
            check_limit(option, values[option.field])
        try:
            return request(**values)
        except ValueError as error:
            raise HTTPException(422, str(error)) from error

    parameters = [_parameter(option) for option in options]
    read.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return read


def check_limit(option: Option, value: Any) -> None:
    """Refuse a number that is too large for visitors; this module may have been imported before it served them."""
    low, high = option.limits
    if high is not None and isinstance(value, int | float) and value > high:
        raise HTTPException(422, f"{option.name} must be between {low:g} and {high:g}.")


def _parameter(option: Option) -> inspect.Parameter:
    low, high = option.limits
    limits: Any = {"ge": low, "le": high, "gt": option.above}
    extra = {"enum": list(option.choices)} if option.choices else None
    query: Any = Query(
        option.default_given, alias=option.name, description=option.help, json_schema_extra=extra, **limits
    )
    return inspect.Parameter(option.field, inspect.Parameter.KEYWORD_ONLY, default=query, annotation=option.annotation)
