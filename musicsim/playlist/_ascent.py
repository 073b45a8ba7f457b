"""Ascent on the simplex by minorise-maximise steps, accelerated by SQUAREM.

A plain step maximises the separable lower bound that `Likelihood.evaluate` gives, subject to the
floor of one weight, and cannot lower the objective. Two plain steps show where a leap along them would
lead: in the logs of the weights, with its length judged in the metric of the weights, so that
edges dying out (whose logs fall for ever) do not dictate it. On the yes.com lists, 202 edges, a tenth of
a nat from the optimum takes 64 evaluations, with plain steps alone 388, with the unweighted metric 138.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import optimize

from musicsim._arrays import Float64Array
from musicsim.playlist._likelihood import Likelihood

# exp(-600) is still a normal number: an edge that dies keeps a finite logarithm
_MIN_LOG = -600.0
_MIN_LEAP = 2.0
_LEAP_GROWTH = 2.0


@dataclass(frozen=True, slots=True)
class Floor:
    """The least share of the total weight that one edge (None: no edge) must keep."""

    edge: int | None
    share: float

    def project(self, w: Float64Array) -> Float64Array:
        """Scale w to sum 1, lifting the edge to its share at the cost of all others alike."""
        w = w / w.sum()
        if self.edge is not None and w[self.edge] < self.share:
            w[self.edge] = 0.0
            w *= (1.0 - self.share) / w.sum()
            w[self.edge] = self.share
        return w

    def maximise(self, gain: Float64Array, cost: Float64Array) -> Float64Array:
        """Maximise ``gain @ log(w) - cost @ w`` where the edge has its share; scale to sum 1."""
        w = gain / cost
        edge, share = self.edge, self.share
        if edge is None or w[edge] >= share * w.sum():
            return w / w.sum()
        # Stationarity with a multiplier mu >= 0: the edge's cost falls by mu (1 - share), all others'
        # rise by mu share. The slack grows with mu from below 0 towards a positive limit at `top`.
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
    """Weights, the objective there, and the lower bound that touches it there."""

    w: Float64Array
    objective: float
    gain: Float64Array
    cost: Float64Array


@dataclass(frozen=True, slots=True)
class Outcome:
    """Weights, with the objective at the start and after every iteration."""

    weights: Float64Array
    history: list[float]
    converged: bool
    stopped: bool


class _Climber:
    """Plain and accelerated iterations; remembers how long a leap has lately paid."""

    def __init__(self, likelihood: Likelihood, floor: Floor) -> None:
        self.likelihood = likelihood
        self.floor = floor
        self.longest = 2 * _MIN_LEAP

    def at(self, w: Float64Array) -> _Point:
        return _Point(w, *self.likelihood.evaluate(w))

    def step(self, point: _Point) -> _Point:
        return self.at(self.floor.maximise(point.gain, point.cost))

    def accelerated(self, start: _Point) -> _Point:
        """Take two plain steps, then leap along them if that is no worse than the first.

        The next iteration begins with a plain step from where the leap landed; a further one here
        would cost a third more evaluations for each of the iterations it saves.
        """
        first = self.step(start)
        w2 = self.floor.maximise(first.gain, first.cost)
        log0, log1, log2 = (np.log(np.maximum(w, np.exp(_MIN_LOG))) for w in (start.w, first.w, w2))
        r, v = log1 - log0, log2 - 2.0 * log1 + log0
        bend = np.sqrt(w2 @ (v * v))
        length = np.sqrt(w2 @ (r * r)) / bend if bend > 0 else 0.0
        if length <= 1.0:  # the two steps already went as far
            return self.at(w2)
        capped = length >= self.longest
        length = min(length, self.longest)
        leap = log0 + 2.0 * length * r + length * length * v
        landed = self.at(self.floor.project(np.exp(np.clip(leap - leap.max(), _MIN_LOG, 0.0))))
        if landed.objective >= first.objective:
            self.longest *= _LEAP_GROWTH if capped else 1.0
            return landed
        self.longest = max(self.longest / _LEAP_GROWTH, _MIN_LEAP)
        return self.at(w2)


def maximise(
    likelihood: Likelihood,
    start: Float64Array,
    floor: Floor,
    *,
    max_iter: int,
    tol: float,
    accelerate: bool,
    callback: Callable[[dict[str, Any]], bool | None] | None = None,
) -> Outcome:
    """Climb from `start` until an iteration gains no more than `tol` for each observation.

    An iteration is one plain step; with `accelerate` it is two and a leap along them.
    """
    climber = _Climber(likelihood, floor)
    point = climber.at(floor.project(start))
    history, converged, stopped = [point.objective], False, False
    for iteration in range(1, max_iter + 1):
        point = climber.accelerated(point) if accelerate else climber.step(point)
        gain = point.objective - history[-1]
        history.append(point.objective)
        if callback is not None:
            step = {"iteration": iteration, "objective": point.objective, "gain": gain}
            stopped = callback({**step, "weights": point.w.copy()}) is True
        converged = gain <= tol * likelihood.n_observations
        if converged or stopped:
            break
    return Outcome(point.w, history, converged, stopped)
