"""L-GMML as printed (Su, King, Lyu, SIGIR 2017, algorithms 1 and 2), except for the signs and equation 12.

This follows the paper where :class:`musicsim.metric.LGMML` departs from it:

- Features are divided by their 2-norm (4.5), and nothing else is scaled.
- Each metric has one query; documents with label 0 are irrelevant.
- Sums of outer products get lambda I.
- An anchor is the relevant document with the best NDCG of its own query, itself included, over all ranks.
- t_r is the distance, not its square (11, 13).
- Each step of fixed size uses one tuple, and the last phi counts.

One phi is learned from the tuples of all training queries, because a query's own phi does not apply to test queries.
"""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np

from experiments.support.letor import Fitted, Fold, Score, best_of
from experiments.support.letor_files import RankingRows
from musicsim._arrays import Float32Array, Float64Array
from musicsim.evaluation.graded import score_groups
from musicsim.metric._geometric import geometric_mean_metric
from musicsim.metric.local_metrics import LocalMetrics, Queries
from musicsim.metric.warp import warp_steps

__all__ = ["as_printed", "closeness", "local_metrics"]

STEP_SIZE = 0.01
"""mu, which the paper does not give."""


def local_metrics(
    X: Float64Array, y: Float64Array, group: Any, n_metrics: int, reg: float, rng: np.random.Generator
) -> LocalMetrics:
    """Return the metrics and anchors from the first loop of algorithm 2."""
    starts = np.concatenate([[0], np.cumsum(group)])
    both = [q for q in range(len(group)) if 0 < np.count_nonzero(y[starts[q] : starts[q + 1]]) < group[q]]
    metrics, anchors = [], []
    for q in rng.choice(both, n_metrics):
        here = slice(starts[q], starts[q + 1])
        ups, downs = X[here][y[here] > 0], X[here][y[here] == 0]
        similar, dissimilar = (
            reg * np.eye(X.shape[1]) + np.einsum("ijk,ijl->kl", away, away)
            for away in (ups[:, None] - ups, ups[:, None] - downs)
        )
        metric = geometric_mean_metric(similar, dissimilar)  # (9)
        scores = [-np.einsum("ij,jk,ik->i", X[here] - p, metric, X[here] - p) for p in ups]
        size = int(group[q])
        found = [score_groups(f, y[here], [size], (size,))[f"ndcg@{size}"][0] for f in scores]
        metrics.append(metric)
        anchors.append(ups[int(np.argmax(found))])
    return LocalMetrics(np.array(metrics), np.array(anchors))


def closeness(local: LocalMetrics, X: Float64Array) -> Float32Array:
    """Return t_r exp(-t_r) of equation 13, (n, m)."""
    table = np.empty((len(X), len(local.metrics)), dtype=np.float32)
    for r in range(len(local.metrics)):
        t = np.sqrt(local.squares(X, r))
        table[:, r] = t * np.exp(-t)
    return table


def as_printed(fold: Fold, grid: list[dict[str, Any]], seed: int, *, n_metrics: int, n_epochs: int) -> Fitted:
    """Fit each setting of the grid and return the one that validation chooses.

    `reg` is lambda, `phi` the initial weights and `margin` zeta. An epoch has one tuple per relevant document.
    """
    norms = np.linalg.norm(fold.train.X.astype(np.float64), axis=0)

    def features(rows: RankingRows) -> Float64Array:
        return rows.X / np.where(norms > 0, norms, 1.0)

    starts = np.concatenate([[0], np.cumsum(fold.train.group)])
    queries = Queries.from_groups(features(fold.train), (fold.train.y > 0).astype(np.float64), starts)

    @cache
    def learned(reg: float) -> tuple[LocalMetrics, Float32Array]:
        rng = np.random.default_rng(seed)
        local = local_metrics(
            features(fold.train), fold.train.y.astype(np.float64), fold.train.group, n_metrics, reg, rng
        )
        return local, closeness(local, queries.X)

    def fits() -> Iterator[tuple[str, Callable[[], Score]]]:
        for setting in grid:

            def fit(setting: dict[str, Any] = setting) -> Score:
                local, table = learned(setting["reg"])
                phi = np.full(n_metrics, float(setting["phi"]))
                ranks = np.concatenate([[0.0], np.cumsum(1.0 / np.log2(np.arange(2.0, queries.lower.max() + 2.0)))])
                warp_steps(
                    table, queries.lower, queries.starts, queries.usable, phi, STEP_SIZE, setting["margin"], 1,
                    n_epochs * np.count_nonzero(queries.lower), ranks, np.array([seed + 1], np.uint64),
                    np.zeros(n_metrics),
                )  # fmt: skip
                return lambda rows: -closeness(local, features(rows)) @ phi

            yield ", ".join(f"{name} {value:g}" for name, value in setting.items()), fit

    return best_of(fits(), fold)
