"""Projected sub-gradients for the planes that are held (thesis 3.3, the baseline of thesis 4)."""

import numpy as np

from musicsim._arrays import Float64Array
from musicsim.metric._planes import Planes
from musicsim.metric._problem import Problem
from musicsim.metric.cone import Projection


class Subgradient:
    """At most `n_steps` projected steps a call, from where the last one ended.

    The step is Polyak's, (f(W) - target) / ||g||^2, for a target that lies `reach` below the best value; reach
    is halved when `patience` steps have not come half way (Brännlund, 1993). The weights of the lower bound are
    those of the planes that were active, averaged over the steps after the last halving.
    """

    def __init__(self, problem: Problem, tol: float, n_steps: int = 300, patience: int = 20) -> None:
        self.problem, self.tol, self.n_steps, self.patience = problem, tol, n_steps, patience
        self.W = problem.project(np.zeros(problem.cone.size))

    def __call__(
        self, planes: Planes, weights: Float64Array
    ) -> tuple[Projection, Float64Array, Float64Array | None]:
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
