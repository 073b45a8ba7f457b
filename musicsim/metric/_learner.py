"""Base class of the estimators for metric learning to rank: parameters, solvers, results."""

import warnings
from collections.abc import Callable
from itertools import count, pairwise
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin

from musicsim._arrays import Float64Array, Int64Array
from musicsim._callbacks import StepCallback
from musicsim._checks import check_choice, check_positive, check_whole
from musicsim.blas import one_blas_thread
from musicsim.metric._bundle import BundleState, solve_bundle
from musicsim.metric._cutting_plane import ADMM, Subgradient, solve_cutting_plane
from musicsim.metric._problem import Problem, Search
from musicsim.metric.cone import Cone, PlainDistance, Regularizer, RowNorms, Trace
from musicsim.metric.oracles import LOSSES, Oracle
from musicsim.metric.stochastic import solve_stochastic
from musicsim.relevance import Relevance

_CHOICES = {
    "loss": LOSSES,
    "structure": ("full", "diagonal"),
    "regularizer": ("trace", "l21", "plain"),
    "solver": ("bundle", "admm", "subgradient"),
}

_LEAST_FALL = 1e-9  # least fall of the mean loss, at most 1, for which the plain metric is doubled; above rounding


def as_relevance(y: Any, n: int) -> Relevance:
    """Return y, or a Relevance built from labels; raise ValueError unless query i is song i for all `n` songs."""
    relevance = y if isinstance(y, Relevance) else Relevance.from_labels(y)
    if len(relevance) != n or relevance.n_items != n:
        raise ValueError(
            f"y has {len(relevance)} queries and {relevance.n_items} songs, but X has {n} rows; each row of X must be "
            "a query and a song. Use an empty list for a row that is not a query."
        )
    if not np.array_equal(relevance.own, np.arange(n)):
        raise ValueError("the queries of y are not the rows of X in order; query i must be row i of X.")
    return relevance


def check_query_weights(sample_weight: Any, n: int) -> Float64Array | None:
    """Return the weights of `n` queries, or None; raise ValueError if one is negative or not finite, or all are 0."""
    if sample_weight is None:
        return None
    weights: Float64Array = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n,):
        raise ValueError(f"sample_weight has shape {weights.shape}; it must be ({n},), with one weight per row of X.")
    if not (np.isfinite(weights).all() and weights.min() >= 0 and weights.any()):
        raise ValueError("sample_weight must contain finite numbers of at least 0; not all weights can be zero.")
    return weights


class RankingLearner(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Parameters and results of :class:`MLR` and :class:`MultipleKernelMLR`."""

    regularizer = "trace"

    def __init__(
        self,
        loss: str = "auc",
        k: int = 10,
        C: float = 1.0,
        structure: str = "full",
        solver: str = "bundle",
        admm_steps: int = 10,
        tol: float = 1e-3,
        max_cuts: int = 200,
        n_queries: int | None = None,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.loss, self.k, self.C, self.structure = loss, k, C, structure
        self.solver, self.admm_steps, self.tol, self.max_cuts = solver, admm_steps, tol, max_cuts
        self.n_queries, self.random_state = n_queries, random_state

    def _check_parameters(self) -> None:
        for name, choices in _CHOICES.items():
            check_choice(name, getattr(self, name), choices)
        for name in ("k", "admm_steps", "max_cuts"):
            check_whole(name, getattr(self, name), 1)
        if self.n_queries is not None and (self.n_queries < 1 or self.solver != "bundle" or self.max_cuts < 2):
            raise ValueError(
                f"n_queries={self.n_queries!r} must be None, or at least 1 with solver='bundle' and max_cuts >= 2."
            )
        for name in ("C", "tol"):
            check_positive(name, getattr(self, name))

    def _warn_if_zero(self, metric: Float64Array, source: str) -> None:
        """Warn the caller of `fit` if a metric of 0 is optimal, usually because C is too small."""
        is_optimal = self.objective_ - self.dual_bound_ <= self.tol * self.objective_
        if is_optimal and not metric.any():
            advice = (
                "large: lower C."
                if self.regularizer == "plain"
                else f"small for the scale of {source}: raise C or scale {source}."
            )
            warnings.warn(
                f"The best metric is 0, which maps all songs to the same point. C={self.C:g} is probably too {advice}",
                UserWarning,
                stacklevel=3,
            )

    def _solve(
        self,
        songs: Float64Array,
        relevance: Relevance,
        cone: Cone,
        callback: StepCallback | None,
        components: Callable[[Float64Array], Any],
        state: BundleState | None = None,
        stacklevel: int = 3,
        query_weights: Float64Array | None = None,
    ) -> tuple[Float64Array, BundleState | None]:
        """Return a flat metric of `cone`, set the attributes of the fit, and warn if a gap remains.

        The callback also gets a function that returns the `components` of the best metric so far. The warning points
        to the line `stacklevel` frames up.
        """

        def watch(step: dict[str, Any], best: Float64Array | None) -> bool:
            W = np.zeros(cone.size) if best is None else best
            return bool(callback is not None and callback({**step, "components": lambda: components(W)}))

        oracle = Oracle(songs, relevance, self.loss, int(self.k), self.structure, cone.widths, query_weights)
        rng = np.random.default_rng(self.random_state)
        problem = Problem(oracle, cone, self._penalty(oracle, cone, rng), float(self.C))
        search = Search(float(self.tol), problem, int(self.max_cuts), watch)
        end_state = None
        with one_blas_thread():  # the matrices are small; two threads were four times slower
            if self.n_queries is not None and self.n_queries < oracle.n_queries:
                solve_stochastic(problem, search, int(self.n_queries), rng)
            elif self.solver == "bundle":
                end_state = solve_bundle(problem, search, state)
            elif self.solver == "admm":
                solve_cutting_plane(problem, search, ADMM(problem, self.admm_steps))
            else:
                solve_cutting_plane(problem, search, Subgradient(problem, self.tol))
        assert search.best is not None
        self.objective_, self.dual_bound_ = search.objective, search.dual_bound
        self.n_cuts_, self.n_projections_, self.n_queries_ = search.n_cuts, cone.n_projections, oracle.n_queries
        self.history_, self.seconds_ = search.history, problem.seconds
        search.warn_if_open(f"{search.n_cuts} cuts", f"Raise max_cuts, or lower C, which is {self.C:g}.", stacklevel)
        return search.best.point, end_state

    def _penalty(self, oracle: Oracle, cone: Cone, rng: np.random.Generator) -> Regularizer:
        if self.regularizer == "plain":
            slots = None
            if self.n_queries is not None and self.n_queries < oracle.n_queries:
                slots = rng.permutation(oracle.n_queries)[: int(self.n_queries)]
            return PlainDistance(cone, _plain_multiple(oracle, cone, slots))
        return RowNorms(cone) if self.regularizer == "l21" and self.structure == "full" else Trace(cone)


def _plain_multiple(oracle: Oracle, cone: Cone, slots: Int64Array | None) -> float:
    """Return the first m of 1, 2, 4, ... for which the metric 2 m I has no smaller mean loss than m I."""
    with one_blas_thread():
        slacks = (oracle.cut(2.0**power * cone.unit, slots=slots).slack for power in count())
        return 2.0 ** next(power for power, (a, b) in enumerate(pairwise(slacks)) if a - b <= _LEAST_FALL)
