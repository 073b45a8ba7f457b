"""One-slack cutting planes (thesis, algorithm 4.1), with the two inner solvers of the thesis."""

from collections.abc import Callable

import numpy as np

from musicsim._arrays import Float64Array
from musicsim.metric._planes import Planes
from musicsim.metric._problem import Problem, Search
from musicsim.metric._qp import solve_dual
from musicsim.metric.cone import Projection

_KEPT = 50
"""Rounds that planes without weight are kept."""
_ETA = 10.0
_QP_TOL = 1e-8
"""Of the small programme, relative to C."""
_HIGH = 0.1
"""The rho that a call begins with at least, relative to the scale of the first plane."""
_REACH = 1e6
"""How far (4.15) takes rho from there: with W inside the cone it would halve for ever, until W is rounding over rho."""
_PROMISE = 0.1
"""A call has to promise this share of what lies between the best objective and the bound."""
_GROWTH = 1.5
"""Of the length of a stage over that of the last one."""
_MAX_STEPS = 10_000
"""Of a call, about."""


Inner = Callable[[Planes, Float64Array], tuple[Projection, Float64Array, Float64Array | None]]
"""Step 3 of algorithm 4.1: the best metric for the planes so far, warm from the last call.

Returns the metric, weights of the planes for the lower bound, and what helps to bound it (``dual_scale``), or None.
"""


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


class ADMM:
    """Alternating directions for the planes that are held: algorithm 4.2 in calls of `n_steps` steps.

    Z, U and rho go on where the last call ended.

    Printed is a rho of 1 at first, whatever the scale of the data. With a large C that leaves W far from Z after a few
    steps, and the cutting planes wander: on the task of CAL10K's shape the objective stood at twice the optimum after
    30 s. Here every call begins with a rho of the problem's own scale, from which (4.15) takes it down: 1.17 times.

    Where few rankings are possible, that alone can stand still for ever: W ends where it was, the oracle gives a plane
    that is held, and the next call repeats the last. There the iterates circle around the solution, and the model is
    above its minimum by C times the radius, which is the wider the lower (4.15) takes rho. So a call goes on until the
    model at its metric is below the best objective by a share of the gap: in stages, each from the mean of the iterates
    of the last (the middle of the circle) and longer than it. From the first such call on, rho is fixed.

    With the trace W is split from Z, which lies in the cone. With the L2,1 norm there is a second Z, which
    the penalty shrinks row by row; the small programme is then the same for the mean of both and 2 rho.
    """

    def __init__(self, problem: Problem, n_steps: int) -> None:
        self.problem, self.n_steps = problem, n_steps
        self.rho = self.high = 0.0
        n_splits = 1 if problem.penalty.is_linear else 2
        self.Z = [np.zeros(problem.cone.size) for _ in range(n_splits)]
        self.U = [np.zeros(problem.cone.size) for _ in range(n_splits)]
        self._W = np.zeros(problem.cone.size)
        self._best, self._bound = np.inf, 0.0
        self._is_fixed = False

    def __call__(self, planes: Planes, weights: Float64Array) -> tuple[Projection, Float64Array, Float64Array | None]:
        problem = self.problem
        if self.high == 0.0:
            self.high = self.rho = _HIGH * problem.scale(planes.loss[0], planes.psi[0]) or 1.0
        self._best = min(self._best, self._model(planes, self._W))  # with the plane that was cut at W
        if not self._is_fixed:
            self._set_rho(max(self.rho, self.high))
            for _ in range(self.n_steps):
                W, weights, ended = self._step(planes, weights)
                if ended:
                    break
                self._adapt_rho()
            found = problem.project(W)
            self._is_fixed = not (ended or self._promises(planes, weights, found))
            if self._is_fixed:
                self._set_rho(self.high)
        if self._is_fixed:
            found, weights = self._stages(planes, weights)
        self._W = found.point
        return found, weights, -self.rho * self.U[0]

    def _model(self, planes: Planes, W: Float64Array) -> float:
        """What the planes make of the objective."""
        slack = float(planes.slacks(W).max())
        return self.problem.penalty.value(W) + self.problem.C * max(0.0, slack)

    def _promises(self, planes: Planes, weights: Float64Array, found: Projection) -> bool:
        bound = self.problem.lower_bound(planes, weights, -self.rho * self.U[0])
        self._bound = max(self._bound, bound)
        return self._model(planes, found.point) <= self._best - _PROMISE * (self._best - self._bound)

    def _stages(self, planes: Planes, weights: Float64Array) -> tuple[Projection, Float64Array]:
        """Steps with a fixed rho, from mean to mean, until they promise a lower objective."""
        length, taken = self.n_steps, 0
        while True:
            length = int(np.ceil(_GROWTH * length))
            taken += length
            sums = [0.0 * each for each in (self._W, weights, *self.Z, *self.U)]
            for _ in range(length):
                W, weights, ended = self._step(planes, weights)
                here = (W, weights, *self.Z, *self.U)
                sums = [total + each for total, each in zip(sums, here, strict=True)]
            W, weights, *split = (total / length for total in sums)
            self.Z, self.U = split[: len(self.Z)], split[len(self.Z) :]
            found = self.problem.project(W)
            if ended or taken >= _MAX_STEPS or self._promises(planes, weights, found):
                return found, weights

    def _step(self, planes: Planes, weights: Float64Array) -> tuple[Float64Array, Float64Array, bool]:
        """W, the weights of the planes, and whether nothing moves any more."""
        problem, n = self.problem, len(self.Z)
        linear = problem.penalty.slope if problem.penalty.is_linear else 0.0
        rho = n * self.rho
        R = sum(Z - U for Z, U in zip(self.Z, self.U, strict=True)) / n
        b = planes.psi @ (rho * R - linear) - rho * planes.loss  # (4.13)
        with problem.timed("qp"):
            # (4.11) is 1 / rho times this programme
            weights = solve_dual(planes.gram, b, problem.C, weights, _QP_TOL * problem.C * rho)
        W = R + (planes.combine(weights) - linear) / rho  # (4.10)
        moved = apart = 0.0
        for i, (Z, U) in enumerate(zip(self.Z, self.U, strict=True)):  # (4.6, 4.7)
            near = W + U
            new = problem.project(near).point if i == 0 else problem.penalty.shrink(near, 1.0 / self.rho)
            self.U[i] = near - new
            moved += float(((new - Z) ** 2).sum())
            apart += float(((W - new) ** 2).sum())
            self.Z[i] = new
        self._moved, self._apart = self.rho * np.sqrt(moved), np.sqrt(apart)
        least = 1e-9 * float(np.linalg.norm(W))
        return W, weights, self._apart <= least and self._moved <= self.rho * least

    def _adapt_rho(self) -> None:
        """(4.15)."""
        if self._moved > _ETA * self._apart:
            self._set_rho(max(0.5 * self.rho, self.high / _REACH))
        elif self._apart > _ETA * self._moved:
            self._set_rho(min(2.0 * self.rho, self.high * _REACH))

    def _set_rho(self, rho: float) -> None:
        self.U = [U * (self.rho / rho) for U in self.U]  # U is the multiplier over rho
        self.rho = rho


class Subgradient:
    """Projected sub-gradients for the planes that are held (thesis 3.3, the baseline of thesis 4).

    A call takes `n_steps` steps at most, from where the last one ended. The step is Polyak's, (f(W) - target) /
    ||g||^2, for a target that lies `reach` below the best value; reach is halved when `patience` steps have not come
    half way (Brännlund, 1993). The weights of the lower bound are those of the planes that were active, averaged over
    the steps after the last halving.
    """

    def __init__(self, problem: Problem, tol: float, n_steps: int = 300, patience: int = 20) -> None:
        self.problem, self.tol, self.n_steps, self.patience = problem, tol, n_steps, patience
        self.W = problem.project(np.zeros(problem.cone.size))

    def __call__(self, planes: Planes, weights: Float64Array) -> tuple[Projection, Float64Array, Float64Array | None]:
        problem, penalty = self.problem, self.problem.penalty
        W = best = self.W
        value = np.inf
        reach, since = 0.0, 0
        active, total = np.zeros(len(planes)), 0.0
        for step in range(self.n_steps + 1):
            slacks = planes.slacks(W.point)
            worst = int(slacks.argmax())
            here = penalty.value(W.point) + problem.C * max(0.0, float(slacks[worst]))
            if step == 0:
                reach = 0.1 * here
            if here < value - 0.5 * reach:
                since = 0
            if here < value:
                value, best = here, W
            if since >= self.patience:
                reach, since, W = 0.5 * reach, 0, best
                active[:], total = 0.0, 0.0
                if reach < 0.1 * self.tol * value:
                    break
                continue
            if step == self.n_steps:
                break
            gradient = penalty.gradient(W.point)
            if slacks[worst] > 0:
                gradient = gradient - problem.C * planes.psi[worst]
            length = (here - value + reach) / max(float(gradient @ gradient), 1e-300)
            if slacks[worst] > 0:
                active[worst] += length
            total += length
            W = problem.project(W.point - length * gradient)
            since += 1
        self.W = best
        if total > 0:
            weights = problem.C * active / total
        return best, weights, None
