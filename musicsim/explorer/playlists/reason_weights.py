"""Reasons that a user wants less often: factors of edge weights, stored in the library and undone one by one."""

import json
from collections.abc import Callable, Sequence

import numpy as np

from musicsim import playlist
from musicsim._arrays import Float64Array
from musicsim.library import Library

_KEY = "reason_weights"
_LOWER = 0.25
# The names of clusters change when they are computed again, so factors of their edges would apply to other songs.
_UNSTABLE = frozenset({"audio", "company", "listeners", "lyrics"})


def is_stable(name: str) -> bool:
    """Return whether the name of an edge keeps its meaning when models are fitted again."""
    (families,) = playlist.edge_families([name])
    return _UNSTABLE.isdisjoint(families) and name != playlist.UNIFORM


def read_factors(library: Library) -> dict[str, float]:
    """Return the factors below 1, keyed by the edge's name."""
    return _parse(library.text(_KEY))


def lower_reason(library: Library, name: str) -> None:
    """Multiply the weight of an edge by 1/4; raises ValueError if its name is not stable."""
    if not is_stable(name):
        raise ValueError(f"the reason {name!r} cannot be lowered permanently: leave it out of one playlist instead.")
    _update(library, lambda factors: factors | {name: factors.get(name, 1.0) * _LOWER})


def restore_reason(library: Library, name: str) -> None:
    """Give an edge its own weight again."""
    _update(library, lambda factors: {other: factor for other, factor in factors.items() if other != name})


def _update(library: Library, change: Callable[[dict[str, float]], dict[str, float]]) -> None:
    with library.stay_refreshed():
        library.update_text(_KEY, lambda text: json.dumps(change(_parse(text))), is_change=True)


def _parse(text: str | None) -> dict[str, float]:
    factors: dict[str, float] = json.loads(text or "{}")
    return factors


def factors_of(library: Library, names: Sequence[str]) -> Float64Array:
    """Return the factor of each edge, (n_edges,)."""
    factors = read_factors(library)
    return np.array([factors.get(name, 1.0) for name in names], dtype=np.float64)
