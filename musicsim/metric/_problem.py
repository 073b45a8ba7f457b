"""The convex problem of metric learning to rank, and the account a solver keeps of its search.

    minimise  f(W) = penalty(W) + C max(0, slack(W))  over the cone,                (4.1, 4.2)

slack(W) the mean structured hinge loss over the queries, which the oracle gives with a plane below it. For
any weights a >= 0 of planes with sum(a) <= C, and any t >= 1 with <sum a_i psi_i, W> <= t penalty(W) on the
cone, sum(a_i loss_i) / t is a lower bound of the optimum: that is the certificate of every solver here.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from musicsim._arrays import Float64Array
from musicsim.metric._oracles import Cut, Oracle, SampledOracle
from musicsim.metric._planes import Planes
from musicsim.metric._regularizers import Regularizer
from musicsim.metric.cone import Cone, Projection
from musicsim.metric.convergence import Convergence

Watch = Callable[[dict[str, Any], Float64Array | None], object]
"""Called with each step and the best flat metric so far, None before the first; returns True to stop."""


@dataclass
class Problem:
    """f, with its oracle, cone and penalty; `seconds` adds up the wall time of each part."""

    oracle: Oracle | SampledOracle
    cone: Cone
    penalty: Regularizer
    C: float
    seconds: dict[str, float] = field(default_factory=lambda: {"oracle": 0.0, "qp": 0.0, "projection": 0.0})

    @contextmanager
    def timed(self, part: str) -> Iterator[None]:
        started = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[part] += time.perf_counter() - started

    def project(self, flat: Float64Array) -> Projection:
        with self.timed("projection"):
            return self.cone.project(flat)

    def cut(self, W: Projection) -> tuple[Cut, float]:
        """The plane at W, and f(W)."""
        with self.timed("oracle"):
            # a factor saves time where its rank is below the full one
            is_low = W.factors is not None and sum(map(len, W.factors)) < sum(self.cone.widths)
            cut = self.oracle.cut(L=W.factors) if is_low else self.oracle.cut(W.point)
        return cut, self.penalty.value(W.point) + self.C * max(0.0, cut.slack)

    def scale(self, loss: float, psi: Float64Array) -> float:
        """The weight of a proximal term with which a step from 0, along the projected gradient, takes a plane to 0.

        0 where no step from 0 gains anything.
        """
        psi = psi.ravel()
        step = self.project(self.C * psi - self.penalty.gradient(np.zeros(psi.size))).point
        return float(step @ psi) / loss if loss > 0 else 0.0

    def lower_bound(self, planes: Planes, weights: Float64Array, P: Float64Array | None = None) -> float:
        """The bound of the weights; P, where the solver knows one, as of ``dual_scale``."""
        scale = self.penalty.dual_scale(planes.combine(weights), P)
        return float(weights @ planes.loss) / max(1.0, scale)


@dataclass
class Search(Convergence):
    """Convergence of a cutting-plane search."""

    problem: Problem
    max_cuts: int
    callback: Watch | None = None
    n_cuts: int = field(default=0, init=False)

    def note(self, W: Projection, objective: float, dual_bound: float, n_planes: int) -> bool:
        """Enter one cut; True when the search is over."""
        self.offer(W, objective)
        self.raise_bound(dual_bound)
        self._tell(n_planes, objective=self.objective, dual_bound=self.dual_bound, gap=self.gap)
        return self.is_stopped or self.has_converged or self.n_cuts >= self.max_cuts

    def note_sampled(self, estimate: float, n_planes: int) -> bool:
        """Enter a cut of a sample, whose objective is an estimate that certifies nothing; True to stop."""
        self._tell(n_planes, objective=estimate, dual_bound=0.0, gap=1.0)
        return self.is_stopped

    def _tell(self, n_planes: int, **facts: float) -> None:
        self.n_cuts += 1
        n_projections = self.problem.cone.n_projections
        step = self.record(cut=self.n_cuts, **facts, n_planes=n_planes, n_projections=n_projections)
        if self.callback is not None:
            best = None if self.best is None else self.best.point
            self.is_stopped = bool(self.callback(step, best)) or self.is_stopped
