"""Learning on several models together: each is a kernel with its own block of the metric (thesis 2.4, 4.3.2).

The vectors are explicit feature maps of the kernels. A learned projection N of the kernel columns K_x = X x is the
linear map N X of the vectors x. New songs do not need kernels, so their cost does not depend on the training set.
"""

import copy
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np

from musicsim import metric
from musicsim._arrays import Float64Array


class SourceLearner:
    """Learns one linear map from several kernels, one per source.

    `blocks` are the columns of each source. `learner` is an unfitted :class:`musicsim.metric.MultipleKernelMLR` or
    :class:`musicsim.order.PartialOrderEmbedding`; its attributes, except `components_`, are also available on this
    object. `components_` (r, d) is L in block form. Memory per source: 8 n^2 bytes, for a kernel between all rows.
    """

    components_: Float64Array

    def __init__(self, blocks: Sequence[slice], learner: Any) -> None:
        self._blocks, self._learner = blocks, learner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._learner, name)

    def fit(self, X: Float64Array, y: Any, callback: Callable[..., object] | None = None) -> Self:
        """Learn from the relevance between rows of X, or from comparisons (m, 4) of them."""

        def on_step(step: dict[str, Any]) -> bool:
            joined = {"components": lambda: self._join_blocks(step["components"](), X)} if "components" in step else {}
            return bool(callback is not None and callback(step | joined))

        self._learner.fit([X[:, block] @ X[:, block].T for block in self._blocks], y, on_step)
        self.components_ = self._join_blocks(self._learner.components_, X)
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

            path.append(type(self)(self._blocks, copy.copy(self._learner).set_params(C=C)).fit(X, y, on_step))
            if is_over:
                break
        return path

    def _join_blocks(self, components: Sequence[Float64Array], X: Float64Array) -> Float64Array:
        """Return L in block form, float64 (r, d), from projections of the kernels between rows of X."""
        parts = []
        for N, block in zip(components, self._blocks, strict=True):
            if len(N):
                L = N @ X[:, block]
                narrow = L if L.shape[0] <= L.shape[1] else metric.factor(L.T @ L)
                part = np.zeros((len(narrow), X.shape[1]))
                part[:, block] = narrow
                parts.append(part)
        joined = np.concatenate(parts) if parts else np.zeros((1, X.shape[1]))
        return joined[joined.any(axis=1)] if joined.any() else joined[:1]


def source_shares(X: Float64Array, L: Float64Array, blocks: Sequence[slice]) -> list[float]:
    """Return each source's share of the mean squared distance of songs X (n_songs, d) under L (r, d).

    If the metric is not in block form, each source gets half of the contributions that it shares with another source.
    """
    covariance = np.cov(X, rowvar=False, ddof=0).reshape(X.shape[1], -1)
    M = L.T @ L
    of_columns = (M * covariance).sum(axis=1)
    total = max(float(of_columns.sum()), np.finfo(float).tiny)
    return [float(of_columns[block].sum()) / total for block in blocks]
