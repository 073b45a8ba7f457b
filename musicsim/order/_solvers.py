"""Solvers for partial order embedding: an accelerated method on a smoothed hinge, and projected sub-gradients (thesis).

Both solvers keep the best metric and the best lower bound so far, and stop when the gap is small enough.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from musicsim._arrays import Float64Array
from musicsim.metric.convergence import Convergence, next_momentum
from musicsim.order.objective import Objective

_BOUND_EVERY = 10  # Number of steps between lower bounds; computing a bound takes half as long as a step
_MAX_WIDTH = 0.5  # Initial width over which the hinge is smoothed, as a share of the margin
_STEP_GROWTH = 1.25
_MAX_ROUNDING = 0.5  # The width is halved if smoothing lowers the losses by more than this share of the gap


@dataclass
class Course(Convergence):
    max_iter: int
    callback: Callable[[dict[str, Any]], object] | None = None
    n_iter: int = field(default=0, init=False)

    @property
    def is_over(self) -> bool:
        return self.has_converged or self.must_stop

    @property
    def must_stop(self) -> bool:
        return self.is_stopped or self.n_iter >= self.max_iter

    @property
    def is_bound_due(self) -> bool:
        return self.n_iter % _BOUND_EVERY == 0 or self.must_stop

    def step(self) -> None:
        self.n_iter += 1
        step = self.record(iteration=self.n_iter, objective=self.objective, dual_bound=self.dual_bound, gap=self.gap)
        if self.callback is not None:
            self.is_stopped = bool(self.callback(step))


def _round_hinge(margins: Float64Array, mu: float) -> float:
    """Sum the hinge losses, smoothed over a width mu (Nesterov, 2005), which lowers each loss by at most mu / 2."""
    slack = np.maximum(1.0 - margins, 0.0)
    return float(np.where(slack < mu, slack * slack / (2.0 * mu), slack - 0.5 * mu).sum())


def solve_accelerated(objective: Objective, course: Course) -> None:
    """Run accelerated projected gradient descent with a line search; restart if the direction reverses.

    The method is from Beck and Teboulle (2009), and the restart is from O'Donoghue and Candès (2015). Margins are
    linear in the metric, so the margins of the extrapolated point need no extra work.
    """
    cone = objective.cone
    W = cone.project(np.zeros(cone.size))
    margins = objective.margins(W)
    mu = _MAX_WIDTH
    ahead, ahead_margins, momentum = W.point, margins, 1.0
    course.offer(W, objective.value(W, margins))
    length = 0.0
    while True:
        weights = objective.weight * np.clip((1.0 - ahead_margins) / mu, 0.0, 1.0)  # slopes of the losses
        combined = objective.combine(weights)
        slope = cone.unit - combined
        if course.is_bound_due:
            course.raise_bound(objective.lower_bound(weights, combined))
            if course.is_over:
                return
            value = objective.value(W, margins)
            rounding = value - objective.penalty(W.point) - objective.weight * _round_hinge(margins, mu)
            if rounding > _MAX_ROUNDING * max(value - course.dual_bound, 0.0):
                mu *= 0.5
                ahead, ahead_margins, momentum = W.point, margins, 1.0
                course.step()
                continue
        if length == 0.0:
            length = _first_length(objective, slope)
        loss = objective.weight * _round_hinge(ahead_margins, mu)
        length *= _STEP_GROWTH
        while True:
            new = cone.project(ahead - length * slope)
            new_margins = objective.margins(new)
            step = new.point - ahead
            rise = objective.weight * _round_hinge(new_margins, mu) - loss + float(combined @ step)
            if rise <= float(step @ step) / (2.0 * length) + 1e-12 * abs(loss):
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
    """Return the length of the step, from 0 along the projected slope, that raises the mean margin to 1."""
    step = objective.cone.project(-slope)
    margin = float(objective.margins(step).mean())
    return 1.0 / margin if margin > 0 else 1.0 / max(float(np.abs(slope).max()), 1e-300)


def solve_subgradient(objective: Objective, course: Course) -> None:
    """Run projected sub-gradient descent (thesis 2.B).

    The thesis does not give a step length. This step length is parameter-free (Ivgi, Hinder and Carmon, 2023): the
    largest distance from the start, divided by the square root of the sum of squared slopes. The lower bound is
    computed from the mean slopes since the last iteration whose number is a power of two.
    """
    cone = objective.cone
    W = cone.project(np.zeros(cone.size))
    squares, max_distance, start = 0.0, 0.0, W.point
    mean_weights, n_mean = np.zeros(objective.n_comparisons), 0
    while True:
        margins = objective.margins(W)
        course.offer(W, objective.value(W, margins))
        weights = np.where(margins < 1.0, objective.weight, 0.0)
        if course.n_iter and course.n_iter & (course.n_iter - 1) == 0:
            mean_weights, n_mean = np.zeros(objective.n_comparisons), 0
        mean_weights += weights
        n_mean += 1
        if course.is_bound_due:
            mean = np.asarray(mean_weights / n_mean, dtype=np.float64)
            course.raise_bound(objective.lower_bound(mean, objective.combine(mean)))
        if course.is_over:
            return
        slope = cone.unit - objective.combine(weights)
        squares += float(slope @ slope)
        if max_distance == 0.0:
            first = cone.project(-_first_length(objective, slope) * slope).point
            max_distance = 1e-2 * float(np.linalg.norm(first))
        if squares == 0.0:
            return
        W = cone.project(W.point - max_distance / np.sqrt(squares) * slope)
        max_distance = max(max_distance, float(np.linalg.norm(W.point - start)))
        course.step()
