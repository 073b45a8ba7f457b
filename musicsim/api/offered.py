"""Which routes there are for who uses the app."""

from collections.abc import Sequence
from typing import Any

from starlette.routing import BaseRoute

from musicsim.public import is_open


def endpoint_of(route: BaseRoute) -> Any:
    """What answers at a route; it says whether visitors may ask it."""
    return getattr(route, "endpoint", None) or getattr(route, "app", None)


def offered(routes: Sequence[BaseRoute]) -> list[BaseRoute]:
    """Those of some routes that who uses the app may ask."""
    return [route for route in routes if is_open(endpoint_of(route))]
