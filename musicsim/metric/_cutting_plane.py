"""One-slack cutting planes (thesis, algorithm 4.1), for the two solvers of the thesis."""

from collections.abc import Callable
from typing import Protocol

import numpy as np

from musicsim._arrays import Float64Array
from musicsim.metric._planes import Planes
from musicsim.metric._problem import Problem, Search
from musicsim.metric.cone import Projection

_KEPT = 50
"""Rounds that planes without weight are kept."""


class Inner(Protocol):
    """Step 3 of algorithm 4.1: the best metric for the planes so far, warm from the last call.

    Returns the metric, of the cone, weights of the planes for the lower bound, and what helps to bound it
    (``dual_scale``), or None.
    """

    def __call__(
        self, planes: Planes, weights: Float64Array, /
    ) -> tuple[Projection, Float64Array, Float64Array | None]: ...


def solve_cutting_plane(problem: Problem, search: Search, make_inner: Callable[[Problem], Inner]) -> None:
    """Alternate between the inner solver and the oracle until the gap is closed."""
    inner = make_inner(problem)
    planes, weights = Planes(problem.cone.size), np.empty(0)
    W = problem.project(np.zeros(problem.cone.size))
    bound = 0.0
    while True:
        cut, objective = problem.cut(W)
        planes.add(cut.loss, cut.dpsi)
        if search.note(W, objective, bound, len(planes)):
            return
        weights = np.append(weights, 0.0)
        if not weights.any():
            weights[-1] = problem.C
        W, weights, P = inner(planes, weights)
        bound = problem.lower_bound(planes, weights, P)
        weights = planes.retire(weights, _KEPT)
