"""One-slack cutting planes (thesis, algorithm 4.1) with the thesis's two inner solvers."""

from collections.abc import Callable

import numpy as np

from musicsim._arrays import Float64Array
from musicsim.metric._problem import Problem, Search
from musicsim.metric.cone import ConeProjection
from musicsim.metric.planes import Planes
from musicsim.metric.qp import solve_dual

_KEPT = 50  # Number of rounds that planes without weight are kept
_ETA = 10.0
_QP_TOL = 1e-8  # Tolerance of the small quadratic program, relative to C
_HIGH = 0.1  # Minimum rho at the start of a call, relative to the scale of the first plane
_REACH = 1e6  # Limit on the change of rho by (4.15), which would halve rho forever while W is inside the cone
_PROMISE = 0.1  # A result promises progress if the model there is below the best objective by this share of the gap
_GROWTH = 1.5  # Ratio between the lengths of successive stages
_MAX_STEPS = 10_000  # Approximate maximum number of steps per call
_SUBGRADIENT_STEPS, _PATIENCE = 300, 20


Inner = Callable[[Planes, Float64Array], tuple[ConeProjection, Float64Array, Float64Array | None]]
"""Solver for step 3 of algorithm 4.1: finds the best metric for the planes, starting from the previous call.

Returns the metric, the weights of the planes (for the lower bound), and the P for ``dual_scale``, or None.
"""


def solve_cutting_plane(problem: Problem, search: Search, inner: Inner) -> None:
    """Alternate between the inner solver and the oracle until the gap is closed."""
    planes, weights = Planes(problem.cone.size), np.empty(0)
    W = problem.start
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
    """Alternating directions for the current planes (algorithm 4.2): `n_steps` steps per call; Z, U and rho are kept.

    The paper starts with rho = 1, whatever the scale of the data. If C is large, W is then far from Z after a few
    steps, and progress is slow. Here, rho starts each call at the scale of the problem, and (4.15) lowers it. For a
    task of CAL10K's size, this reduced the objective after 30 s from 2 to 1.17 times the optimum.

    If few rankings are possible, the method may stagnate: W does not change, the oracle returns a known plane, and the
    next call repeats the last call. The iterates then circle around the solution. The model exceeds its minimum by C
    times the radius, which grows as (4.15) lowers rho. Therefore, if a result does not promise progress (`_PROMISE`),
    the call continues in stages of growing length. Each stage starts from the mean iterate of the previous stage, which
    is the center of the circle. Once a call has continued in stages, rho is fixed.

    With a fixed slope, W is split from Z, which is in the cone. With the L2,1 norm, there is a second Z, which the
    penalty shrinks row by row. The small program then has the same form, with the mean of both Z and with 2 rho.
    """

    def __init__(self, problem: Problem, n_steps: int) -> None:
        self.problem, self.n_steps = problem, n_steps
        self.rho = self.high = 0.0
        n_splits = 1 if problem.penalty.has_fixed_slope else 2
        self.Z = [problem.penalty.start.copy() for _ in range(n_splits)]
        self.U = [np.zeros(problem.cone.size) for _ in range(n_splits)]
        self._W = problem.penalty.start
        self._best, self._bound = np.inf, 0.0
        self._is_fixed = False

    def __call__(
        self, planes: Planes, weights: Float64Array
    ) -> tuple[ConeProjection, Float64Array, Float64Array | None]:
        problem = self.problem
        if self.high == 0.0:
            self.high = self.rho = _HIGH * problem.scale(planes.loss[0], planes.psi[0]) or 1.0
        self._best = min(self._best, self._model(planes, self._W))  # includes the plane that was cut at W
        if not self._is_fixed:
            self._set_rho(max(self.rho, self.high))
            for _ in range(self.n_steps):
                W, weights, is_over = self._step(planes, weights)
                if is_over:
                    break
                self._adapt_rho()
            result = problem.project(W)
            self._is_fixed = not (is_over or self._promises_progress(planes, weights, result))
            if self._is_fixed:
                self._set_rho(self.high)
        if self._is_fixed:
            result, weights = self._run_stages(planes, weights)
        self._W = result.point
        return result, weights, -self.rho * self.U[0]

    def _model(self, planes: Planes, W: Float64Array) -> float:
        slack = float(planes.slacks(W).max())
        return self.problem.penalty.value(W) + self.problem.C * max(0.0, slack)

    def _promises_progress(self, planes: Planes, weights: Float64Array, result: ConeProjection) -> bool:
        bound = self.problem.lower_bound(planes, weights, -self.rho * self.U[0])
        self._bound = max(self._bound, bound)
        return self._model(planes, result.point) <= self._best - _PROMISE * (self._best - self._bound)

    def _run_stages(self, planes: Planes, weights: Float64Array) -> tuple[ConeProjection, Float64Array]:
        """Run stages with a fixed rho until one promises a lower objective."""
        length, n_steps_done = self.n_steps, 0
        while True:
            length = int(np.ceil(_GROWTH * length))
            n_steps_done += length
            sums = [0.0 * each for each in (self._W, weights, *self.Z, *self.U)]
            for _ in range(length):
                W, weights, is_over = self._step(planes, weights)
                values = (W, weights, *self.Z, *self.U)
                sums = [total + each for total, each in zip(sums, values, strict=True)]
            W, weights, *split = (total / length for total in sums)
            self.Z, self.U = split[: len(self.Z)], split[len(self.Z) :]
            result = self.problem.project(W)
            if is_over or n_steps_done >= _MAX_STEPS or self._promises_progress(planes, weights, result):
                return result, weights

    def _step(self, planes: Planes, weights: Float64Array) -> tuple[Float64Array, Float64Array, bool]:
        """Return W, the weights of the planes, and whether the iterates have converged."""
        problem, n = self.problem, len(self.Z)
        linear = problem.penalty.slope if problem.penalty.has_fixed_slope else 0.0
        rho = n * self.rho
        total = rho + problem.penalty.curvature
        R = sum(Z - U for Z, U in zip(self.Z, self.U, strict=True)) / n
        b = planes.psi @ (rho * R - linear) - total * planes.loss  # (4.13)
        with problem.measure("qp"):
            # (4.11) is 1 / total times this program
            weights = solve_dual(planes.gram, b, problem.C, weights, _QP_TOL * problem.C * total)
        W = (rho * R + planes.combine(weights) - linear) / total  # (4.10)
        change = residual = 0.0
        for i, (Z, U) in enumerate(zip(self.Z, self.U, strict=True)):  # (4.6, 4.7)
            shifted = W + U
            new = problem.project(shifted).point if i == 0 else problem.penalty.shrink(shifted, 1.0 / self.rho)
            self.U[i] = shifted - new
            change += float(((new - Z) ** 2).sum())
            residual += float(((W - new) ** 2).sum())
            self.Z[i] = new
        self._change, self._residual = self.rho * np.sqrt(change), np.sqrt(residual)
        least = 1e-9 * float(np.linalg.norm(W))
        return W, weights, self._residual <= least and self._change <= self.rho * least

    def _adapt_rho(self) -> None:
        """Adapt rho to the residuals by equation 4.15."""
        if self._change > _ETA * self._residual:
            self._set_rho(max(0.5 * self.rho, self.high / _REACH))
        elif self._residual > _ETA * self._change:
            self._set_rho(min(2.0 * self.rho, self.high * _REACH))

    def _set_rho(self, rho: float) -> None:
        self.U = [U * (self.rho / rho) for U in self.U]  # U is the multiplier divided by rho
        self.rho = rho


class Subgradient:
    """Projected subgradients for the current planes (thesis 3.3, the baseline of thesis 4).

    A call starts where the last call ended. It uses Polyak's step, (f(W) - target) / ||g||^2, with a target that is
    `reach` below the best value. If `_PATIENCE` steps have not gained half of `reach`, it is halved (Brännlund, 1993).
    The weights for the lower bound are those of the active planes, averaged over the steps since `reach` was last
    halved.
    """

    def __init__(self, problem: Problem, tol: float) -> None:
        self.problem, self.tol = problem, tol
        self.W = problem.start

    def __call__(
        self, planes: Planes, weights: Float64Array
    ) -> tuple[ConeProjection, Float64Array, Float64Array | None]:
        problem, penalty = self.problem, self.problem.penalty
        W = best = self.W
        value = np.inf
        reach, since = 0.0, 0
        active, total = np.zeros(len(planes)), 0.0
        for step in range(_SUBGRADIENT_STEPS + 1):
            slacks = planes.slacks(W.point)
            worst = int(slacks.argmax())
            here = penalty.value(W.point) + problem.C * max(0.0, float(slacks[worst]))
            if step == 0:
                reach = 0.1 * here
            if here < value - 0.5 * reach:
                since = 0
            if here < value:
                value, best = here, W
            if since >= _PATIENCE:
                reach, since, W = 0.5 * reach, 0, best
                active[:], total = 0.0, 0.0
                if reach < 0.1 * self.tol * value:
                    break
                continue
            if step == _SUBGRADIENT_STEPS:
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
