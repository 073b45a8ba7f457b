"""Ascent on the simplex by minorize-maximize steps, accelerated by SQUAREM.

A plain step maximizes the separable lower bound from `Likelihood.evaluate`, subject to the floor of one weight, and
cannot lower the objective. Two plain steps define a leap in the logs of the weights. Each edge contributes to the
length of the leap in proportion to its weight, so vanishing edges (whose logs fall forever) do not dominate. On the
yes.com playlists with 202 edges, 64 evaluations come within a tenth of a nat of the optimum. Plain steps need 388
evaluations, and leaps with an unweighted length need 138.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import optimize

from musicsim._arrays import Float64Array
from musicsim.playlist._likelihood import Likelihood

# exp(-600) is still a normal number, so a vanishing edge has a finite logarithm
_MIN_LOG = -600.0
_MIN_LEAP = 2.0
_LEAP_GROWTH = 2.0


@dataclass(frozen=True, slots=True)
class Floor:
    """Minimum share of one edge in the total weight; no floor if `edge` is None."""

    edge: int | None
    share: float

    def project(self, w: Float64Array) -> Float64Array:
        """Scale w to sum to 1; if the edge is below its share, raise it and scale all others down."""
        w = w / w.sum()
        if self.edge is not None and w[self.edge] < self.share:
            w[self.edge] = 0.0
            w *= (1.0 - self.share) / w.sum()
            w[self.edge] = self.share
        return w

    def maximize(self, gain: Float64Array, cost: Float64Array) -> Float64Array:
        """Maximize ``gain @ log(w) - cost @ w`` subject to the floor, and scale the result to sum to 1."""
        w = gain / cost
        edge, share = self.edge, self.share
        if edge is None or w[edge] >= share * w.sum():
            return w / w.sum()
        # Stationarity with a multiplier mu >= 0: the cost of the edge falls by mu (1 - share), and all other
        # costs rise by mu share. As mu grows, the slack rises from below 0 to a positive limit at `top`.
        top = cost[edge] / (1.0 - share)
        others = np.arange(len(gain)) != edge

        def slack(mu: float) -> float:
            rest = float(np.sum(gain[others] / (cost[others] + mu * share)))
            return (1.0 - share) * gain[edge] - share * rest * (cost[edge] - mu * (1.0 - share))

        mu = optimize.brentq(slack, 0.0, top, xtol=1e-14 * top, rtol=1e-14) if gain[edge] > 0 else top
        w = gain / (cost + mu * share)
        w[edge] = 0.0
        return self.project(w)


@dataclass(frozen=True, slots=True)
class _Point:
    """Weights, their objective, and the lower bound that touches the objective at these weights."""

    w: Float64Array
    objective: float
    gain: Float64Array
    cost: Float64Array


@dataclass(frozen=True, slots=True)
class Outcome:
    """Final weights, and the objective at the start and after every iteration."""

    weights: Float64Array
    history: list[float]
    converged: bool
    stopped: bool


class _Climber:
    """Plain and accelerated iterations, with an adaptive maximum length of leaps."""

    def __init__(self, likelihood: Likelihood, floor: Floor) -> None:
        self.likelihood = likelihood
        self.floor = floor
        self.max_length = 2 * _MIN_LEAP

    def evaluate(self, w: Float64Array) -> _Point:
        return _Point(w, *self.likelihood.evaluate(w))

    def step(self, point: _Point) -> _Point:
        return self.evaluate(self.floor.maximize(point.gain, point.cost))

    def leap(self, start: _Point) -> _Point:
        """Take two plain steps, then leap along them unless the leap ends below the first step."""
        first = self.step(start)
        w2 = self.floor.maximize(first.gain, first.cost)
        log0, log1, log2 = (np.log(np.maximum(w, np.exp(_MIN_LOG))) for w in (start.w, first.w, w2))
        r, v = log1 - log0, log2 - 2.0 * log1 + log0
        bend = np.sqrt(w2 @ (v * v))
        length = np.sqrt(w2 @ (r * r)) / bend if bend > 0 else 0.0
        if length <= 1.0:  # the two steps have gone at least as far as the leap would
            return self.evaluate(w2)
        capped = length >= self.max_length
        length = min(length, self.max_length)
        leap = log0 + 2.0 * length * r + length * length * v
        end = self.evaluate(self.floor.project(np.exp(np.clip(leap - leap.max(), _MIN_LOG, 0.0))))
        if end.objective >= first.objective:
            self.max_length *= _LEAP_GROWTH if capped else 1.0
            return end
        self.max_length = max(self.max_length / _LEAP_GROWTH, _MIN_LEAP)
        return self.evaluate(w2)


def maximize(
    likelihood: Likelihood,
    start: Float64Array,
    floor: Floor,
    *,
    max_iter: int,
    tol: float,
    accelerate: bool,
    callback: Callable[[dict[str, Any]], bool | None] | None = None,
) -> Outcome:
    """Climb from `start` until an iteration gains at most `tol` per observation.

    An iteration is one plain step or, with `accelerate`, two plain steps and a leap along them.
    """
    climber = _Climber(likelihood, floor)
    point = climber.evaluate(floor.project(start))
    history, converged, stopped = [point.objective], False, False
    for iteration in range(1, max_iter + 1):
        point = climber.leap(point) if accelerate else climber.step(point)
        gain = point.objective - history[-1]
        history.append(point.objective)
        if callback is not None:
            step = {"iteration": iteration, "objective": point.objective, "gain": gain}
            stopped = callback({**step, "weights": point.w.copy()}) is True
        converged = gain <= tol * likelihood.n_observations
        if converged or stopped:
            break
    return Outcome(point.w, history, converged, stopped)
