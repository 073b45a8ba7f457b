"""The options of a search as data, from which a client draws a form."""

from functools import lru_cache
from typing import Any

from musicsim.errors import NotFoundError
from musicsim.explorer.requests.filters import Filters
from musicsim.explorer.requests.options import Option, options_of
from musicsim.explorer.requests.search import SearchRequest
from musicsim.explorer.search.matches import FEW, name_matches
from musicsim.explorer.snapshot.factors import list_factors
from musicsim.explorer.snapshot.filtering import FilterChoices, filter_choices
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.public import is_public

_OPTIONS = {option.name: option for option in options_of(SearchRequest).values()}


def describe_options(snapshot: Snapshot) -> list[dict[str, Any]]:
    """Return each option of a search as JSON, with the values that the songs of a snapshot have."""
    return [_describe(snapshot, option) for option in _OPTIONS.values()]


def find_choices(snapshot: Snapshot, name: str, text: str) -> list[str]:
    """Return at most twenty values of an option that contain `text`; raise NotFoundError if it has no names."""
    option = _OPTIONS.get(name)
    if option is None or _kind_of(option) != "names":
        raise NotFoundError(f"{name} is not an option with names: see `GET /api/options`.")
    names = _choices_of(snapshot, is_public()).names.get(option.field, [])
    return [match.value for match in name_matches(names, text)]


@lru_cache(maxsize=4)
def _choices_of(snapshot: Snapshot, _public: bool) -> FilterChoices:
    """Return the available filter values; visitors get fewer."""
    return filter_choices(snapshot)


def _describe(snapshot: Snapshot, option: Option) -> dict[str, Any]:
    known = _choices_of(snapshot, is_public())
    names = ["", *list_factors(snapshot)] if option.field == "by" else known.names.get(option.field, [])
    low, high = (option.min, option.max) if option.n_values > 1 else option.limits
    return {
        "name": option.name,
        "label": option.label,
        "help": option.help,
        "kind": _kind_of(option),
        "is_filter": option.field in options_of(Filters),
        "default": option.default_given,
        "min": low,
        "max": high,
        "choices": names if len(names) <= FEW else None,
        "n_choices": len(names),
        "bounds": known.ranges.get(option.field),
    }


def _kind_of(option: Option) -> str:
    """Return the kind of value that an option takes, and so the control that a form needs."""
    if option.many:
        return "songs" if option.element is int else "names"
    if option.n_values > 1:
        return "range"
    if option.field == "by" or option.choices:
        return "choice"
    return {bool: "switch", str: "text"}.get(option.element, "number")
