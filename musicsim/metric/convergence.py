"""Progress of iterative solvers of convex problems: best point, lower bound, momentum."""

import time
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from musicsim.metric.cone import ConeProjection


@dataclass
class Convergence:
    """The best metric and the best lower bound of a fit so far, and the history of the fit."""

    tol: float
    best: ConeProjection | None = field(default=None, init=False)
    objective: float = field(default=np.inf, init=False)
    dual_bound: float = field(default=0.0, init=False)
    is_stopped: bool = field(default=False, init=False)
    history: list[dict[str, Any]] = field(default_factory=list, init=False)
    _started: float = field(default_factory=time.perf_counter, init=False)

    @property
    def gap(self) -> float:
        """Relative gap, (objective - bound) / objective; 0 if the objective is 0."""
        return max(0.0, self.objective - self.dual_bound) / self.objective if self.objective > 0 else 0.0

    @property
    def has_converged(self) -> bool:
        return self.gap <= self.tol

    def offer(self, W: ConeProjection, objective: float) -> None:
        if objective < self.objective:
            self.best, self.objective = W, objective

    def raise_bound(self, bound: float) -> None:
        self.dual_bound = max(self.dual_bound, bound)

    def record(self, **values: float) -> dict[str, Any]:
        """Append a step and its time to the history; return a copy for a callback."""
        step = {**values, "seconds": time.perf_counter() - self._started}
        self.history.append(step)
        return dict(step)

    def warn_if_open(self, after: str, advice: str, stacklevel: int) -> None:
        """Warn that the gap is still open after these steps, unless a callback stopped the fit."""
        if not self.has_converged and not self.is_stopped:
            warnings.warn(
                f"The relative gap is {self.gap:.2g} after {after}, above tol={self.tol:g}: the objective is "
                f"{self.objective:.6g}, and the optimum is at least {self.dual_bound:.6g}. {advice}",
                ConvergenceWarning,
                stacklevel=stacklevel + 1,
            )


def next_momentum(momentum: float) -> tuple[float, float]:
    """Return Nesterov's next momentum, and the extrapolation as a share of a step."""
    faster = (1.0 + np.sqrt(1.0 + 4.0 * momentum * momentum)) / 2.0
    return faster, (momentum - 1.0) / faster
