"""Solvers of partial order embedding: accelerated on a smoothed hinge, and the thesis's projected sub-gradients.

Both keep the best metric and the best lower bound that they have met, and stop when these are near enough.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from musicsim._arrays import Float64Array
from musicsim.metric.convergence import Convergence, next_momentum
from musicsim.order._objective import Objective

_BOUND_EVERY = 10
"""Steps between two looks at the lower bound, which costs half a step."""
_MAX_WIDTH = 0.5
"""Width of the rounding of the hinge to begin with, as a share of the margin."""
_LONGER = 1.25
"""A step is tried so much longer than the last one."""
_SHARE = 0.5
"""The hinge is made sharper when its rounding makes up so much of the gap."""


@dataclass
class Course(Convergence):
    """Convergence of a solver that counts iterations."""

    max_iter: int
    callback: Callable[[dict[str, Any]], object] | None = None
    n_iter: int = field(default=0, init=False)

    @property
    def is_over(self) -> bool:
        return self.has_converged or self.has_to_end

    @property
    def has_to_end(self) -> bool:
        return self.is_stopped or self.n_iter >= self.max_iter

    @property
    def bound_is_due(self) -> bool:
        return self.n_iter % _BOUND_EVERY == 0 or self.has_to_end

    def step(self) -> None:
        """Enter an iteration, and ask whether to go on."""
        self.n_iter += 1
        step = self.record(iteration=self.n_iter, objective=self.objective, dual_bound=self.dual_bound, gap=self.gap)
        if self.callback is not None:
            self.is_stopped = bool(self.callback(step))


class _Smoothed:
    """f with the corner of the hinge rounded over a width mu (Nesterov, 2005): within C mu / 2 below f."""

    def __init__(self, objective: Objective, mu: float) -> None:
        self.objective, self.mu = objective, mu

    def weights(self, margins: Float64Array) -> Float64Array:
        """The slope of each comparison's loss, between 0 and C / m."""
        return self.objective.weight * np.clip((1.0 - margins) / self.mu, 0.0, 1.0)

    def loss(self, margins: Float64Array) -> float:
        slack = np.maximum(1.0 - margins, 0.0)
        rounded = np.where(slack < self.mu, slack * slack / (2.0 * self.mu), slack - 0.5 * self.mu)
        return self.objective.weight * float(rounded.sum())


def solve_accelerated(objective: Objective, course: Course) -> None:
    """Accelerated projected gradients with a step found by trying, restarted where they turn back.

    Beck and Teboulle (2009); O'Donoghue and Candès (2015) for the restart. Margins are linear in the metric, so the
    point that runs ahead costs no look at the songs.
    """
    cone = objective.cone
    W = cone.project(np.zeros(cone.size))
    margins = objective.margins(W)
    smoothed = _Smoothed(objective, _MAX_WIDTH)
    ahead, ahead_margins, momentum = W.point, margins, 1.0
    course.offer(W, objective.value(W, margins))
    length = 0.0
    while True:
        weights = smoothed.weights(ahead_margins)
        combined = objective.combine(weights)
        slope = cone.unit - combined
        if course.bound_is_due:
            course.raise_bound(objective.lower_bound(weights, combined))
            if course.is_over:
                return
            here = objective.value(W, margins)
            rounding = here - objective.penalty(W.point) - smoothed.loss(margins)
            if rounding > _SHARE * max(here - course.dual_bound, 0.0):
                smoothed.mu *= 0.5
                ahead, ahead_margins, momentum = W.point, margins, 1.0
                course.step()
                continue
        if length == 0.0:
            length = _first_length(objective, slope)
        here = smoothed.loss(ahead_margins)
        length *= _LONGER
        while True:
            new = cone.project(ahead - length * slope)
            new_margins = objective.margins(new)
            moved = new.point - ahead
            rise = smoothed.loss(new_margins) - here + float(combined @ moved)
            if rise <= float(moved @ moved) / (2.0 * length) + 1e-12 * abs(here):
                break
            length *= 0.5
        turned = float((ahead - new.point) @ (new.point - W.point)) > 0.0
        momentum, share = (1.0, 0.0) if turned else next_momentum(momentum)
        ahead = new.point + share * (new.point - W.point)
        ahead_margins = new_margins + share * (new_margins - margins)
        W, margins = new, new_margins
        course.offer(W, objective.value(W, margins))
        course.step()


def _first_length(objective: Objective, slope: Float64Array) -> float:
    """A step from 0 along the projected slope that brings the mean margin to 1."""
    step = objective.cone.project(-slope)
    reached = float(objective.margins(step).mean())
    return 1.0 / reached if reached > 0 else 1.0 / max(float(np.abs(slope).max()), 1e-300)


def solve_subgradient(objective: Objective, course: Course) -> None:
    """Projected sub-gradients (2.B), each as long as the way come so far over the root of their squares' sum.

    The thesis gives no length; this one has nothing to set (Ivgi, Hinder and Carmon, 2023). The bound is that of the
    slopes' mean over the second half of the way.
    """
    cone = objective.cone
    W = cone.project(np.zeros(cone.size))
    squares, farthest, start = 0.0, 0.0, W.point
    mean_weights, n_mean = np.zeros(objective.n_comparisons), 0
    while True:
        margins = objective.margins(W)
        course.offer(W, objective.value(W, margins))
        weights = np.where(margins < 1.0, objective.weight, 0.0)
        if course.n_iter and course.n_iter & (course.n_iter - 1) == 0:
            mean_weights, n_mean = np.zeros(objective.n_comparisons), 0
        mean_weights += weights
        n_mean += 1
        if course.bound_is_due:
            mean = np.asarray(mean_weights / n_mean, dtype=np.float64)
            course.raise_bound(objective.lower_bound(mean, objective.combine(mean)))
        if course.is_over:
            return
        slope = cone.unit - objective.combine(weights)
        squares += float(slope @ slope)
        if farthest == 0.0:
            first = cone.project(-_first_length(objective, slope) * slope).point
            farthest = 1e-2 * float(np.linalg.norm(first))
        if squares == 0.0:
            return
        W = cone.project(W.point - farthest / np.sqrt(squares) * slope)
        farthest = max(farthest, float(np.linalg.norm(W.point - start)))
        course.step()
