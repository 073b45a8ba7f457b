"""Learning on several models together: each is a kernel with its own block of the metric (thesis 2.4, 4.3.2).

The vectors are explicit maps of the kernels. A learned projection N of kernel columns K_x = X x is therefore the linear
map N X of the vectors x. So new songs need no kernel, and the cost per new song does not depend on the training set.
"""

import copy
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from musicsim import metric, order
from musicsim._arrays import Float64Array


class _OfSources:
    """Base of both learners; `blocks` are the columns of each source."""

    blocks: Sequence[slice]

    def _kernels(self, X: Float64Array) -> list[Float64Array]:
        return [X[:, block] @ X[:, block].T for block in self.blocks]

    def _join_blocks(self, components: Sequence[Float64Array], X: Float64Array) -> Float64Array:
        """Return L in block form, float64 (r, d), from projections of the kernels between rows of X."""
        parts = []
        for N, block in zip(components, self.blocks, strict=True):
            if len(N):
                L = N @ X[:, block]
                part = np.zeros((min(L.shape), X.shape[1]))
                narrow = L if L.shape[0] <= L.shape[1] else metric.factor(L.T @ L)
                part[: len(narrow), block] = narrow
                parts.append(part)
        joined = np.concatenate(parts) if parts else np.zeros((1, X.shape[1]))
        return joined[joined.any(axis=1)] if joined.any() else joined[:1]


class SourceEmbedding(_OfSources):
    """Partial order embedding with several kernels (algorithm 2.4), as a linear map.

    `blocks` are the columns of each source; the other parameters and the attributes are those of
    :class:`musicsim.order.PartialOrderEmbedding`, except `components_` (r, d), which is L in block form.
    """

    def __init__(self, blocks: Sequence[slice], C: float = 1.0, tol: float = 1e-2, max_iter: int = 2000) -> None:
        self.blocks, self.C, self.tol, self.max_iter = blocks, C, tol, max_iter

    def fit(self, X: Float64Array, comparisons: npt.ArrayLike, callback: Callable[..., object] | None = None) -> Self:
        """Learn from comparisons (m, 4) of rows of X."""
        model = order.PartialOrderEmbedding("full", self.C, tol=self.tol, max_iter=self.max_iter)
        model.fit(self._kernels(X), comparisons, callback)
        self.objective_, self.dual_bound_, self.n_iter_ = model.objective_, model.dual_bound_, model.n_iter_
        self.components_ = self._join_blocks(model.components_, X)
        return self


class SourceMLR(_OfSources):
    """Metric learning to rank with several kernels (equation 4.14), as a linear map.

    `blocks` are the columns of each source; the other parameters and the attributes are those of
    :class:`musicsim.metric.MultipleKernelMLR`, except `components_` (r, d), which is L in block form. For each
    source, the fit computes and decomposes a kernel between all rows of X, 8 n^2 bytes.
    """

    def __init__(self, blocks: Sequence[slice], loss: str = "auc", C: float = 1.0, **options: Any) -> None:
        self.blocks, self.loss, self.C, self._options = blocks, loss, C, options

    def fit(self, X: Float64Array, y: Any, callback: Callable[..., object] | None = None) -> Self:
        """Learn from a relevance between rows of X; see :meth:`musicsim.metric.MLR.fit` for the callback."""

        def on_step(step: dict[str, Any]) -> bool:
            joined = {"components": lambda: self._join_blocks(step["components"](), X)}
            return bool(callback is not None and callback(step | joined))

        model = metric.MultipleKernelMLR(self.loss, C=self.C, **self._options)
        model.fit(self._kernels(X), y, on_step)
        self.objective_, self.dual_bound_ = model.objective_, model.dual_bound_
        self.n_cuts_, self.history_ = model.n_cuts_, model.history_
        self.components_ = self._join_blocks(model.components_, X)
        return self

    def fit_path(
        self, X: Float64Array, y: Any, Cs: Sequence[float], callback: Callable[[dict[str, Any]], bool]
    ) -> list[Self]:
        """Fit once per C until the callback returns True, like :class:`musicsim.metric.MLR`."""
        path: list[Self] = []
        is_over = False
        for C in Cs:

            def on_step(step: dict[str, Any], C: float = C) -> bool:
                nonlocal is_over
                is_over = bool(callback({"C": C, **step}))
                return is_over

            learner = copy.copy(self)
            learner.C = C
            path.append(learner.fit(X, y, on_step))
            if is_over:
                break
        return path


def source_shares(X: Float64Array, L: Float64Array, blocks: Sequence[slice]) -> list[float]:
    """Return each source's share of the mean squared distance of songs X (n_songs, d) under L (r, d).

    If the metric is not in block form, the part that two sources contribute together counts half for each.
    """
    covariance = np.cov(X, rowvar=False, ddof=0).reshape(X.shape[1], -1)
    M = L.T @ L
    of_columns = (M * covariance).sum(axis=1)
    total = max(float(of_columns.sum()), np.finfo(float).tiny)
    return [float(of_columns[block].sum()) / total for block in blocks]
