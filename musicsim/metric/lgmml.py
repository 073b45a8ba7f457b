"""Learning to rank by local geometric mean metrics (Su, King, Lyu, SIGIR 2017)."""

import warnings
from collections.abc import Callable
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from musicsim._arrays import Float32Array, Float64Array, Int64Array
from musicsim._callbacks import StepCallback
from musicsim._checks import check_choice, check_positive, check_whole
from musicsim.evaluation.graded import check_groups, check_labels, score_groups
from musicsim.metric._geometric import check_mean_parameters, prior_metric
from musicsim.metric.local_metrics import QUANTILE, LocalMetrics, Queries, closeness, learn_local_metrics, sum_weighted
from musicsim.metric.warp import ndcg_steps, warp_steps

_CHOICES: dict[str, tuple[str | None, ...]] = {
    "loss": ("warp", "ndcg"),
    "structure": ("full", "diagonal"),
    "anchor": ("ideal", "document"),
    "standardize": (None, "column", "query"),
}
_COUNTS = ("n_metrics", "n_queries", "k", "n_epochs", "batch_size")
_NO_DEVIATION = 1e-9  # Deviation within a query, relative to the column's deviation, that is treated as 0
_FAR = 5.0  # Warn if the share of documents with t_r > 1 exceeds the share in training by this factor


class LGMML(BaseEstimator):
    """Rank documents for queries that have features per document only, as in web search.

    Rank documents by their distances to anchors in local metrics; queries do not need vectors. The score of a document
    is ``f = -sum_r phi_r t_r exp(-t_r)`` (equation 13), where t_r is its squared distance to anchor r in metric M_r.
    Each M_r is the geometric mean metric of some random queries, and its anchor is the candidate that ranks these
    queries best. The weights phi >= 0 minimize a ranking loss by projected stochastic gradients (algorithm 2).

    Parameters
    ----------
    n_metrics : int >= 1
        Number of local metrics, m.
    loss : "warp" or "ndcg"
        Weights of violated pairs: the estimated rank of equation 16, or the change in NDCG@k if the pair is swapped.
    n_queries : int >= 1
        Number of queries drawn for each metric.
    structure : "full" or "diagonal"
        Any metric, or only one weight per column, which suits many columns.
    anchor : "ideal" or "document"
        Anchors are points beyond the mean of the relevant documents, or relevant documents as in the paper.
    max_features : float in (0, 1]
        Share of the columns, drawn at random, that each metric uses; the paper uses all columns.
    standardize : None, "column" or "query"
        Use the features unchanged, z-scored over the training documents, or z-scored within each query.
    t, prior, reg : as in :class:`GMML`
    margin : float > 0
        zeta, in units of the score. At first, phi sums to 1, so the score is a mean of -t_r exp(-t_r).
    learning_rate : float > 0
        mu in the first epoch, in units of the initial weight 1 / m; it decreases as 1 / sqrt(epoch).
    n_epochs : int >= 1
        Number of epochs. An epoch draws one tuple per relevant document (warp), or one query per training query (ndcg).
    batch_size : int >= 1
        Number of tuples or queries per step.
    k : int >= 1
        k of NDCG@k in the loss "ndcg".
    per_query : bool
        Also learn one phi per training query, with which :meth:`predict` ranks other documents for that query.
    random_state : int, Generator or None

    Attributes
    ----------
    metrics_ : float64 ndarray of shape (m, d, d), or (m, d) if diagonal
        Scaled so that 95% of the training documents have t_r <= 1.
    anchors_ : float64 ndarray of shape (m, d), in standardized features
    weights_ : float64 ndarray of shape (m,)
        phi, shared by all queries: the mean over the second half of the steps.
    query_weights_ : float64 ndarray of shape (n_queries, m)
        phi of each training query, with `per_query`; the shared phi if all its documents are equally relevant.
    history_ : list of dict
        Per epoch: epoch, loss, and ndcg (mean NDCG@k of the training queries with the current phi).

    See Also
    --------
    LGMMLByExample : The same idea for songs, if the query is a song with a vector of its own.
    GMML : One metric for all queries.

    Notes
    -----
    Two signs in the paper are wrong. A violator is a p- with f(p-) + zeta > f(p+), unlike in equation 18 and algorithm
    2. Unlike equation 13, equation 22 has no minus sign. The function t exp(-t) increases only up to t = 1. Without
    scaling, distant documents would get scores like those of anchors. :meth:`predict` warns if many distances exceed 1.
    A phi_q exists only for training queries; other queries share one phi (the paper does not specify this).

    Time: O(m (n_drawn d^2 + d^3)) for the metrics, O(n m d^2) once for the distances, or O(n m d) if diagonal, and
    O(n m) per epoch. Memory: 4 n m + 8 m d^2 bytes, a few copies of X, and 8 n_queries m bytes with `per_query`.

    References
    ----------
    - Y. Su, I. King and M. Lyu, Learning to rank using localized geometric mean metrics, SIGIR 2017, section 3.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.metric import LGMML
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 4))  # 30 queries with ten documents each
    >>> y, group = (X[:, 0] + X[:, 1] > 1).astype(int), [10] * 30
    >>> ranker = LGMML(max_features=0.5, random_state=0).fit(X[:200], y[:200], group[:20])
    >>> ranker.predict(X[200:], group[20:]).shape
    (100,)
    >>> bool(ranker.score(X[200:], y[200:], group[20:]) > 0.8)  # mean NDCG@10 of ten queries that it has not seen
    True
    """

    def __init__(
        self,
        n_metrics: int = 100,
        loss: str = "warp",
        n_queries: int = 20,
        structure: str = "full",
        anchor: str = "ideal",
        max_features: float = 0.1,
        standardize: str | None = "query",
        t: float = 0.5,
        prior: Any = None,
        reg: float = 0.1,
        margin: float = 0.01,
        learning_rate: float = 1.0,
        n_epochs: int = 20,
        batch_size: int = 16,
        k: int = 10,
        per_query: bool = False,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.n_metrics, self.loss, self.n_queries = n_metrics, loss, n_queries
        self.structure, self.anchor, self.max_features = structure, anchor, max_features
        self.standardize, self.t, self.prior, self.reg = standardize, t, prior, reg
        self.margin, self.learning_rate, self.n_epochs = margin, learning_rate, n_epochs
        self.batch_size, self.k, self.per_query, self.random_state = batch_size, k, per_query, random_state

    def fit(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        group: npt.ArrayLike | None = None,
        callback: StepCallback | None = None,
    ) -> Self:
        """Learn metrics, anchors and weights.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Documents, grouped by query.
        y : array-like of shape (n,)
            Relevance, from 0 to 1000; the lowest label of a query means irrelevant.
        group : int array-like of shape (n_queries,), optional
            Number of documents of each query; by default all documents belong to one query.
        callback : callable, optional
            Gets ``stage`` ("metrics", "weights" or "queries") and its progress; in stage "weights", this is the newest
            entry of `history_`. The callback returns True to end the fit with the current result.

        Raises
        ------
        ValueError
            If no query has documents of different relevance, or all documents drawn for a metric are equal.
        """
        self._check_parameters()
        if y is None:
            raise ValueError("y is None; pass one label per document.")
        documents, relevance = validate_data(self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2)
        check_labels(relevance)
        starts = check_groups(_default_group(group, len(documents)), len(documents))
        rng = np.random.default_rng(self.random_state)
        if hasattr(self, "query_weights_"):  # left over from an earlier fit
            del self.query_weights_
        self.mean_, deviation = documents.mean(axis=0), documents.std(axis=0)
        varies = deviation > _rounding(len(documents), np.abs(documents).max(axis=0))
        self.deviation_ = np.where(varies, deviation, 0.0)
        queries = Queries.from_groups(self._standardize(documents, starts), relevance.astype(np.float64), starts)
        if not len(queries.usable):
            raise ValueError("y: no query has documents of different relevance; there is nothing to learn from.")
        is_stopped = False

        def progress(**step: Any) -> bool:
            nonlocal is_stopped
            is_stopped = is_stopped or bool(callback is not None and callback(step))
            return is_stopped

        local = learn_local_metrics(
            queries, int(self.n_metrics), int(self.n_queries), self.structure, self.anchor, float(self.t),
            prior_metric(self.prior, queries.X), float(self.reg),
            max(1, round(float(self.max_features) * documents.shape[1])), rng,
            lambda n: progress(stage="metrics", n_metrics=n),
        )  # fmt: skip
        self.metrics_, self.anchors_ = local.metrics, local.anchors
        table, _ = closeness(local, queries.X)
        self._learn_weights(queries, table, rng, progress)
        return self

    def predict(
        self, X: npt.ArrayLike, group: npt.ArrayLike | None = None, *, queries: npt.ArrayLike | None = None
    ) -> Float64Array:
        """Return scores of documents, higher for more relevant documents; scores are comparable only within a query.

        Parameters
        ----------
        X : array-like of shape (n, d)
        group : int array-like of shape (n_queries,), optional
            Number of documents of each query; by default all documents belong to one query.
        queries : int array-like of shape (n_queries,), optional
            The number that each query had in training, to use its own phi (with `per_query`); by default the shared
            phi.

        Returns
        -------
        float64 ndarray of shape (n,)

        Notes
        -----
        Time: O(n m d^2), or O(n m d) if diagonal. Memory: 4 n m bytes, and a few copies of X.
        """
        check_is_fitted(self)
        documents: Float64Array = validate_data(self, X, dtype=np.float64, reset=False)
        starts = check_groups(_default_group(group, len(documents)), len(documents))
        phi = self._select_weights(queries, len(starts) - 1)
        local = LocalMetrics(self.metrics_, self.anchors_)
        table, beyond = closeness(local, self._standardize(documents, starts))
        if beyond > _FAR * (1.0 - QUANTILE):
            warnings.warn(
                f"{beyond:.0%} of the distances are above 1 (5% in training), where scores increase again. These "
                f"documents differ from the training documents. Standardize the features as in training.",
                UserWarning,
                stacklevel=2,
            )
        if phi.ndim == 1:
            return -sum_weighted(table, phi)
        parts = zip(np.split(table, starts[1:-1]), phi, strict=True)
        return np.concatenate([-sum_weighted(part, own) for part, own in parts])

    def score(self, X: npt.ArrayLike, y: npt.ArrayLike, group: npt.ArrayLike | None = None) -> float:
        """Return the mean NDCG@k of the queries; a query without a relevant document counts as 0."""
        scores = self.predict(X, group)
        return float(
            score_groups(scores, y, _default_group(group, len(scores)), (int(self.k),))[f"ndcg@{self.k}"].mean()
        )

    def _check_parameters(self) -> None:
        for name, choices in _CHOICES.items():
            check_choice(name, getattr(self, name), choices)
        for name in _COUNTS:
            check_whole(name, getattr(self, name), 1)
        for name in ("margin", "learning_rate"):
            check_positive(name, getattr(self, name))
        check_positive("max_features", self.max_features, most=1)
        check_mean_parameters(self.t, self.reg)

    def _standardize(self, X: Float64Array, starts: Int64Array) -> Float64Array:
        if self.standardize == "column":
            return (X - self.mean_) / np.where(self.deviation_ > 0, self.deviation_, 1.0)
        if self.standardize == "query":
            sizes = np.diff(starts)[:, None]
            means = np.add.reduceat(X, starts[:-1]) / sizes
            centered = X - np.repeat(means, sizes[:, 0], axis=0)
            deviations = np.sqrt(np.add.reduceat(centered * centered, starts[:-1]) / sizes)
            largest = np.maximum.reduceat(np.abs(X), starts[:-1])
            least = np.maximum(_NO_DEVIATION * self.deviation_, _rounding(sizes, largest))
            # a column that is constant within the query becomes 0
            deviations[deviations <= least] = np.inf
            return centered / np.repeat(deviations, sizes[:, 0], axis=0)
        return X

    def _learn_weights(
        self, queries: Queries, table: Float32Array, rng: np.random.Generator, progress: Callable[..., bool]
    ) -> None:
        m, k, batch, n_epochs = table.shape[1], int(self.k), int(self.batch_size), int(self.n_epochs)
        state = rng.integers(1, 2**63, 1, dtype=np.uint64)
        # L in equation 16
        ranks = np.concatenate([[0.0], np.cumsum(1.0 / np.log2(np.arange(2.0, queries.lower.max() + 2.0)))])
        gains = queries.gains(k)

        def take_steps(chosen: Int64Array, n_steps: int, phi: Float64Array, rate: float, total: Float64Array) -> float:
            """Change `phi` in place, and add it to `total` after every step; return the mean loss."""
            common = table, queries.lower, queries.starts, chosen, phi, rate, float(self.margin), batch, n_steps
            if self.loss == "warp":
                return float(warp_steps(*common, ranks, state, total))
            return float(ndcg_steps(*common, gains, k, state, total))

        rate = float(self.learning_rate) / m
        phi, total, n_summed = np.full(m, 1.0 / m), np.zeros(m), 0
        self.history_: list[dict[str, Any]] = []
        group = np.diff(queries.starts)
        n_drawn = np.count_nonzero(queries.lower) if self.loss == "warp" else len(queries.usable)
        n_steps = -(-int(n_drawn) // batch)
        for epoch in range(1, n_epochs + 1):
            if epoch == n_epochs // 2 + 1:
                total[:], n_summed = 0.0, 0
            loss = take_steps(queries.usable, n_steps, phi, rate / np.sqrt(epoch), total)
            n_summed += n_steps
            self.weights_ = total / n_summed
            scores = score_groups(-sum_weighted(table, self.weights_), queries.y, group, (k,))
            self.history_.append({"epoch": epoch, "loss": loss, "ndcg": float(scores[f"ndcg@{self.k}"].mean())})
            if progress(stage="weights", **self.history_[-1]):
                break
        if not self.per_query:
            return
        self.query_weights_ = np.tile(self.weights_, (len(group), 1))
        for number, q in enumerate(queries.usable, 1):
            own, total = self.weights_.copy(), np.zeros(m)
            take_steps(queries.usable[number - 1 : number], n_epochs, own, rate / np.sqrt(n_epochs), total)
            self.query_weights_[q] = total / n_epochs
            if progress(stage="queries", n_queries=number):
                break

    def _select_weights(self, queries: npt.ArrayLike | None, n_queries: int) -> Float64Array:
        """Return the shared weights (m,), or the weights of training queries (n_queries, m)."""
        if queries is None:
            return self.weights_
        if not hasattr(self, "query_weights_"):
            raise ValueError("queries: weights of individual queries were not learned; fit with per_query=True.")
        numbers = np.asarray(queries)
        if numbers.shape != (n_queries,) or numbers.dtype.kind not in "iu":
            raise ValueError(f"queries has shape {numbers.shape}; it must be ({n_queries},), with one int per group.")
        if numbers.size and (numbers.min() < 0 or numbers.max() >= len(self.query_weights_)):
            raise ValueError(f"queries must be indices of training queries, from 0 to {len(self.query_weights_) - 1}.")
        return self.query_weights_[numbers]


def _default_group(group: npt.ArrayLike | None, n: int) -> npt.ArrayLike:
    """Return `group`, or a single query with all `n` documents."""
    return [n] if group is None else group


def _rounding(n: int | Int64Array, largest: Float64Array) -> Float64Array:
    """Return the largest deviation that n equal numbers can have because their mean is rounded."""
    return n * np.finfo(np.float64).eps * largest
