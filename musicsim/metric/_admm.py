"""Alternating directions for the planes that are held (thesis, algorithm 4.2)."""

import numpy as np

from musicsim._arrays import Float64Array
from musicsim.metric._planes import Planes
from musicsim.metric._problem import Problem
from musicsim.metric._qp import solve_dual
from musicsim.metric.cone import Projection

__all__ = ["ADMM"]


_ETA = 10.0
_QP_TOL = 1e-8
"""Of the small programme, relative to C."""
_HIGH = 0.1
"""The rho that a call begins with at least, relative to the scale of the first plane."""


class ADMM:
    """At most `n_steps` rounds of algorithm 4.2 a call; W, Z, U and rho go on where the last call ended.

    Printed is a rho of 1 at first, whatever the scale of the data. With a large C that leaves W far from Z after a few
    steps, and the cutting planes wander: on the task of CAL10K's shape the objective stood at twice the optimum after
    30 s. Here every call begins with a rho of the problem's own scale, from which (4.15) takes it down: 1.17 times.

    With the trace W is split from Z, which lies in the cone. With the L2,1 norm there is a second Z, which
    the penalty shrinks row by row; the small programme is then the same for the mean of both and 2 rho.
    """

    def __init__(self, problem: Problem, n_steps: int) -> None:
        self.problem, self.n_steps = problem, n_steps
        self.rho = self.high = 0.0
        n_splits = 1 if problem.penalty.is_linear else 2
        self.Z = [np.zeros(problem.cone.size) for _ in range(n_splits)]
        self.U = [np.zeros(problem.cone.size) for _ in range(n_splits)]

    def __call__(
        self, planes: Planes, weights: Float64Array
    ) -> tuple[Projection, Float64Array, Float64Array | None]:
        problem, n = self.problem, len(self.Z)
        if self.high == 0.0:
            self.high = _HIGH * problem.scale(planes.loss[0], planes.psi[0]) or 1.0
        self._set_rho(max(self.rho, self.high))
        linear = problem.penalty.slope if problem.penalty.is_linear else 0.0
        H = planes.gram
        for _ in range(self.n_steps):
            rho = n * self.rho
            R = sum(Z - U for Z, U in zip(self.Z, self.U, strict=True)) / n
            b = planes.psi @ (rho * R - linear) - rho * planes.loss  # (4.13)
            with problem.timed("qp"):
                # (4.11) is 1 / rho times this programme
                weights = solve_dual(H, b, problem.C, weights, _QP_TOL * problem.C * rho)
            W = R + (planes.combine(weights) - linear) / rho  # (4.10)
            ended = self._split(W)
            if ended:
                break
        return problem.project(W), weights, -self.rho * self.U[0]

    def _split(self, W: Float64Array) -> bool:
        """The steps in Z and U (4.6, 4.7), and rho by (4.15); True when nothing moves any more."""
        problem = self.problem
        moved = apart = 0.0
        for i, (Z, U) in enumerate(zip(self.Z, self.U, strict=True)):
            near = W + U
            new = problem.project(near).point if i == 0 else problem.penalty.shrink(near, 1.0 / self.rho)
            self.U[i] = U + W - new
            moved += float(((new - Z) ** 2).sum())
            apart += float(((W - new) ** 2).sum())
            self.Z[i] = new
        moved, apart = self.rho * np.sqrt(moved), np.sqrt(apart)
        if moved > _ETA * apart:
            factor = 0.5
        elif apart > _ETA * moved:
            factor = 2.0
        else:
            factor = 1.0
        self._set_rho(self.rho * factor)
        size = float(np.linalg.norm(W))
        return apart <= 1e-9 * size and moved <= 1e-9 * self.rho * size

    def _set_rho(self, rho: float) -> None:
        self.U = [U * (self.rho / rho) for U in self.U]  # U is the multiplier over rho
        self.rho = rho
