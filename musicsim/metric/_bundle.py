"""An accelerated proximal bundle method for metric learning to rank, with a certificate of optimality.

Each round solves

    minimize  penalty(W) + C max(0, max_i (loss_i - <W, psi_i>)) + mu/2 ||W - Y||^2  over the cone    (*)

over the current planes, calls the oracle at the solution, and adds the oracle's plane. In plain bundle methods, Y is
the best metric so far. The mean over many queries is nearly smooth, so this proximal step is hardly better than a
gradient step. Therefore, Y is extrapolated as in Nesterov's method, and reset when the objective rises. Every plane is
a lower bound on the slack, so the gap of :class:`~musicsim.metric._problem.Search` is valid for any sequence of steps.

Far from the optimum, mu follows the ratio of the true decrease to the predicted one (Kiwiel, 1990). If the objective
stagnates before the bound closes the gap, mu is lowered and planes are kept longer, because the bound needs planes on
all sides of the optimum. Then (*) is also solved with a smaller mu for the bound alone, which needs no extra cut.
"""

from dataclasses import dataclass

import numpy as np

from musicsim._arrays import Float64Array
from musicsim.metric._problem import Problem, Search
from musicsim.metric.cone import ConeProjection
from musicsim.metric.convergence import next_momentum
from musicsim.metric.planes import Planes
from musicsim.metric.qp import solve_dual

_MASTER_STEPS = {True: 60, False: 300}  # maximum number of steps for a penalty with a fixed slope (True) or any other
_MASTER_SHARE = 0.1  # (*) is solved until its gap is this share of the predicted decrease
# Number of rounds that planes without weight are kept: at first, and after the objective has stagnated.
_KEPT, _KEPT_LATE = 40, 150
# The objective stagnates if it falls by less than tol (relative) within _WINDOW cuts. Then mu is lowered, every
# _PATIENCE cuts.
_WINDOW, _PATIENCE = 8, 5
_BOUND_FALL = 16.0  # Factor by which mu is divided when (*) is solved for the bound alone
_BOUND_GAIN = 0.05  # If a bound closes less than this share of the gap, the wait for the next one is doubled
_NULLS = 10  # Number of steps without gain after which mu is doubled
_SLOWEST = 64.0  # Factor by which mu may fall below its value at the first stagnation
_RANGE = 1e12  # Factor by which mu may change in total; beyond it, rounding hides the step or the proximal term


@dataclass
class BundleState:
    """State from which a solver can continue, even with a different C, because planes stay valid."""

    planes: Planes
    weights: Float64Array
    center: ConeProjection
    mu: float
    C: float


@dataclass(frozen=True, slots=True)
class BundleTrial:
    """An approximate solution of (*)."""

    W: ConeProjection
    model: float  # objective according to the planes
    weights: Float64Array  # dual variables: weights of the planes
    slope: Float64Array  # slope of the penalty
    P: Float64Array | None  # multiplier of the cone; None if no dual value was finite


def solve_bundle(problem: Problem, search: Search, state: BundleState | None = None) -> BundleState:
    """Continue from `state` until the gap is closed, all cuts are used, or the callback stops the search."""
    penalty, C = problem.penalty, problem.C
    if state is None:
        center = problem.start
        planes, weights, mu = Planes(problem.cone.size), np.empty(0), 0.0
    else:
        # mu scales with the curvature, which is proportional to C
        ratio = C / state.C
        center, planes, weights, mu = state.center, state.planes, state.weights * ratio, state.mu * ratio
    cut, best = problem.cut(center)
    planes.add(cut.loss, cut.dpsi)
    weights = np.append(weights, 0.0)
    if mu == 0.0:
        mu = problem.scale(cut.loss, cut.dpsi)
    if not weights.any():
        weights[-1] = C  # if C is so small that the start is optimal, the plane there proves it
    bound = problem.lower_bound(planes, weights)
    is_over = search.note(center, best, bound, len(planes))
    slope = penalty.slope
    Y, momentum = center.point, 1.0
    steering, tighter = _Steering(mu, best, search.tol), _TighterBound(problem, search)
    while not is_over and steering.mu + penalty.curvature > 0:
        trial = solve_master(problem, planes, weights, slope, Y, steering.mu, best, search.tol)
        weights, slope = trial.weights, trial.slope
        bound = problem.lower_bound(planes, weights, trial.P)
        cut, objective = problem.cut(trial.W)
        planes.add(cut.loss, cut.dpsi)
        weights = planes.retire(np.append(weights, 0.0), steering.max_age)
        nearest = trial.W if objective <= best else center
        bound = tighter.bound(bound, planes, weights, slope, nearest, steering.mu, best, objective)
        is_over = search.note(trial.W, objective, bound, len(planes))
        ratio = (best - objective) / max(best - trial.model, 1e-300)
        if objective <= best:
            momentum, factor = next_momentum(momentum)
            Y = trial.W.point + factor * (trial.W.point - center.point)
            center, best = trial.W, objective
        else:
            Y, momentum = center.point, 1.0
        steering.step(ratio, best)
    return BundleState(planes, weights, center, steering.mu, C)


class _Steering:
    """Rules for mu, and for the number of rounds for which planes without weight are kept."""

    def __init__(self, mu: float, best: float, tol: float) -> None:
        self.mu, self.max_age = mu, _KEPT
        self._range = mu / _RANGE, mu * _RANGE
        self._tol = tol
        self._objectives = [best]
        self._n_null = self._last_stagnation = 0
        self._lowest = 0.0

    def step(self, ratio: float, best: float) -> None:
        """Update after a step that gained `ratio` times the predicted decrease; `best` is the best objective."""
        if ratio >= 0.0:
            self._n_null = 0
            if ratio > 0.5:
                self.mu = max(0.25 * self.mu, 2.0 * self.mu * (1.0 - ratio))
        else:
            self._n_null += 1
            if ratio < -1.0:
                self.mu, self._n_null = min(2.0 * self.mu * (1.0 - ratio), 4.0 * self.mu), 0
            elif self._n_null == _NULLS:
                self.mu, self._n_null = 2.0 * self.mu, 0
        past = self._objectives
        past.append(best)
        stagnates = len(past) > _WINDOW and past[-1 - _WINDOW] - best < self._tol * best
        if stagnates and len(past) - self._last_stagnation >= _PATIENCE and self.mu > self._lowest:
            if self._last_stagnation == 0:
                self._lowest, self.max_age = self.mu / _SLOWEST, _KEPT_LATE
            self.mu, self._last_stagnation = max(self.mu / 4.0, self._lowest), len(past)
        # without limits, mu would double forever if the objective cannot fall any further while the gap is open
        self.mu = min(max(self.mu, self._range[0]), self._range[1])


class _TighterBound:
    """Search for lower bounds that are tighter than the bounds of the steps."""

    def __init__(self, problem: Problem, search: Search) -> None:
        self._problem, self._search = problem, search
        self._wait = self._due = 1

    def bound(
        self,
        bound: float,
        planes: Planes,
        weights: Float64Array,
        slope: Float64Array,
        W: ConeProjection,
        mu: float,
        best: float,
        objective: float,
    ) -> float:
        """Return `bound`, or a higher bound if the last step (from `best` to `objective`) gained little."""
        tol, least = self._search.tol, min(best, objective)
        bound = max(bound, self._search.dual_bound)
        gap = least - bound
        if best - least >= tol * best or gap <= tol * least:
            return bound
        self._due -= 1
        if self._due > 0:
            return bound
        # a penalty with a curvature needs no proximal term, without which the bound is the best of these planes
        smaller = 0.0 if self._problem.penalty.curvature > 0 else mu / _BOUND_FALL
        trial = solve_master(self._problem, planes, weights, slope, W.point, smaller, least, tol)
        raised = max(bound, self._problem.lower_bound(planes, trial.weights, trial.P))
        self._wait = 1 if raised - bound >= _BOUND_GAIN * gap else 2 * self._wait
        self._due = self._wait
        return raised


def solve_master(
    problem: Problem,
    planes: Planes,
    weights: Float64Array,
    slope: Float64Array,
    Y: Float64Array,
    mu: float,
    best: float,
    tol: float,
) -> BundleTrial:
    """Solve (*) by its dual, in the weights a of the planes and the slope G of the penalty (unless G is fixed).

    Let m be mu plus the curvature of the penalty. Let W be the projection of V = (mu Y + sum a_i psi_i - G) / m. Then
    the dual value is

        sum a_i loss_i + penalty(0) + mu/2 ||Y||^2 - m/2 ||W||^2.

    This value is a smooth concave function; its gradient is loss_i - <W, psi_i> in a, and W in G. Projections are
    nonexpansive, so its curvature is at most the structure kernel / m (twice that if G is free). In this metric, each
    step of an accelerated proximal gradient method needs one small quadratic program and one projection.
    """
    penalty, C = problem.penalty, problem.C
    stretch = 1.0 if penalty.has_fixed_slope else 2.0
    m = mu + penalty.curvature
    H = planes.gram * (stretch / m)
    a = old_a = weights
    G = old_G = slope
    momentum, dual = 1.0, -np.inf
    offset = penalty.constant + 0.5 * mu * float(Y @ Y)
    least = np.inf
    best_weights, best_slope = weights, slope
    P: Float64Array | None = None
    for step in range(_MASTER_STEPS[penalty.has_fixed_slope]):
        V = (mu * Y + planes.combine(a) - G) / m
        W = problem.project(V)
        rise = planes.slacks(W.point)
        dual_value = float(a @ planes.loss) + offset - 0.5 * m * float(W.point @ W.point)
        step_taken = W.point - Y
        model = penalty.value(W.point) + C * max(0.0, float(rise.max()))
        value = model + 0.5 * mu * float(step_taken @ step_taken)
        if dual_value > dual:
            dual, best_weights, best_slope, P = dual_value, a, G, m * (W.point - V)
        if step == 0 or value < least:
            least, nearest, least_model = value, W, model
        gap = least - dual
        if gap <= _MASTER_SHARE * max(best - least, 1e-4 * tol * best):
            break
        with problem.measure("qp"):
            new_a = solve_dual(H, -(rise + H @ a), C, a, 1e-2 * max(gap, 1e-12 * best))
        new_G = G if penalty.has_fixed_slope else penalty.project_slope(G + (m / stretch) * W.point)
        if rise @ (new_a - old_a) + W.point @ (new_G - old_G) < 0.0:
            momentum = 1.0
        momentum, factor = next_momentum(momentum)
        a = np.maximum(new_a + factor * (new_a - old_a), 0.0)
        if a.sum() > C:
            a *= C / a.sum()
        if not penalty.has_fixed_slope:
            G = penalty.project_slope(new_G + factor * (new_G - old_G))
        old_a, old_G = new_a, new_G
    return BundleTrial(nearest, least_model, best_weights, best_slope, P)
