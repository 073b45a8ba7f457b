"""Filter of routes by permission."""

from collections.abc import Sequence

from starlette.routing import BaseRoute

from musicsim.public import is_allowed


def filter_routes(routes: Sequence[BaseRoute]) -> list[BaseRoute]:
    """Return the routes that the current user may call; for visitors, those marked with `visitor_may`."""
    return [route for route in routes if is_allowed(getattr(route, "endpoint", None) or getattr(route, "app", None))]
