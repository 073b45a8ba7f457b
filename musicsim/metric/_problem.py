"""The convex problem of metric learning to rank, and the progress of its solvers.

    minimize  f(W) = penalty(W) + C max(0, slack(W))  over the cone,                (4.1, 4.2)

where slack(W) is the mean structured hinge loss over the queries. The oracle returns the slack, and a plane below
it. Let a >= 0 be weights of planes with sum(a) <= C. The minimum of penalty(W) + sum a_i (loss_i - <W, psi_i>) is then
a lower bound on the optimum. A norm does not limit this minimum unless <sum a_i psi_i, W> <= penalty(W) on the cone.
The weights are therefore divided by a t >= 1 for which this holds, and the bound is sum(a_i loss_i) / t. All solvers
use this bound as their certificate.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from musicsim._arrays import Float64Array, Int64Array
from musicsim.metric.cone import Cone, ConeProjection, Regularizer
from musicsim.metric.convergence import Convergence
from musicsim.metric.oracles import Cut, Oracle
from musicsim.metric.planes import Planes

Watch = Callable[[dict[str, Any], Float64Array | None], object]
"""Callback that gets each step and the best flat metric so far (None before the first); returns True to stop."""


@dataclass
class Problem:
    """f with its oracle, cone and penalty; `seconds` contains the total wall time of each part."""

    oracle: Oracle
    cone: Cone
    penalty: Regularizer
    C: float
    slots: Int64Array | None = None  # indices of the queries to use; by default all queries
    seconds: dict[str, float] = field(default_factory=lambda: {"oracle": 0.0, "qp": 0.0, "projection": 0.0})

    @contextmanager
    def measure(self, part: str) -> Iterator[None]:
        started = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[part] += time.perf_counter() - started

    def project(self, flat: Float64Array) -> ConeProjection:
        with self.measure("projection"):
            return self.cone.project(flat)

    def cut(self, W: ConeProjection) -> tuple[Cut, float]:
        with self.measure("oracle"):
            # a low-rank factor saves time
            is_low_rank = W.factors is not None and sum(map(len, W.factors)) < sum(self.cone.widths)
            cut = self.oracle.cut(W.point, W.factors if is_low_rank else None, slots=self.slots)
        return cut, self.penalty.value(W.point) + self.C * max(0.0, cut.slack)

    @property
    def start(self) -> ConeProjection:
        """The metric with the least penalty."""
        return self.project(self.penalty.start)

    def scale(self, loss: float, psi: Float64Array) -> float:
        """Return the proximal weight with which a gradient step reduces a plane at the start to 0; 0 if none helps."""
        psi = psi.ravel()
        step = self.project(self.C * psi - self.penalty.gradient(self.penalty.start)).point
        return float(step @ psi) / loss if loss > 0 else 0.0

    def lower_bound(self, planes: Planes, weights: Float64Array, P: Float64Array | None = None) -> float:
        """Return the lower bound that the weights of planes give; for P, see ``dual_scale``."""
        return self.penalty.lower_bound(float(weights @ planes.loss), planes.combine(weights), P)


@dataclass
class Search(Convergence):
    problem: Problem
    max_cuts: int
    callback: Watch | None = None
    n_cuts: int = field(default=0, init=False)

    def note(self, W: ConeProjection, objective: float, dual_bound: float, n_planes: int) -> bool:
        """Record one cut; return whether the search is over."""
        self.offer(W, objective)
        self.raise_bound(dual_bound)
        self._report(n_planes, objective=self.objective, dual_bound=self.dual_bound, gap=self.gap)
        return self.is_stopped or self.has_converged or self.n_cuts >= self.max_cuts

    def note_sampled(self, estimate: float, n_planes: int) -> bool:
        """Record a cut on a sample, which gives only an estimate of the objective; return whether to stop."""
        self._report(n_planes, objective=estimate, dual_bound=0.0, gap=1.0)
        return self.is_stopped

    def _report(self, n_planes: int, **values: float) -> None:
        self.n_cuts += 1
        n_projections = self.problem.cone.n_projections
        step = self.record(cut=self.n_cuts, **values, n_planes=n_planes, n_projections=n_projections)
        if self.callback is not None:
            best = None if self.best is None else self.best.point
            self.is_stopped = bool(self.callback(step, best)) or self.is_stopped
