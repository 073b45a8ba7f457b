"""Local metrics of a ranker: geometric mean metrics of sampled queries, with anchors (SIGIR 2017, algorithm 2)."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from musicsim._arrays import Float32Array, Float64Array, Int64Array
from musicsim.metric._geometric import geometric_mean_metric, regularize
from musicsim.metric.scatter import scatter_across, scatter_within

QUANTILE = 0.95
"""Share of the documents within distance 1 of an anchor, on average over anchors."""
_MAX_CANDIDATES = 100  # Maximum number of documents that are tried as anchors
# Ideal documents are on the line from the mean of the irrelevant documents through the mean of the relevant ones. They
# are beyond the second mean by these multiples of the distance between the two.
_BEYOND = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0)
_NDCG_AT = 10
_BLOCK_ENTRIES = 65_536  # A block of this size fits into the cache of a core
_NO_CLOSER = 1e3  # Value of t for which exp(-t) and t exp(-t) are 0


@dataclass(frozen=True, slots=True, eq=False)
class Queries:
    """Documents grouped by query, and sorted by ascending label within a query."""

    X: Float64Array  # (n, d)
    y: Float64Array  # (n,)
    starts: Int64Array  # (n_queries + 1,)
    lower: Int64Array  # (n,): number of less relevant documents of the same query
    usable: Int64Array  # queries that have documents of different relevance

    @classmethod
    def from_groups(cls, X: Float64Array, y: Float64Array, starts: Int64Array) -> "Queries":
        query = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        order = np.lexsort((y, query))
        X, y = X[order], y[order]
        rows = np.arange(len(y))
        is_new = np.concatenate([[True], (y[1:] != y[:-1]) | (query[1:] != query[:-1])])
        first = np.maximum.accumulate(np.where(is_new, rows, 0))
        return cls(X, y, starts, first - starts[query], np.flatnonzero(y[starts[1:] - 1] > y[starts[:-1]]))

    def gains(self, k: int) -> Float64Array:
        """Return (2^label - 1) divided by the query's best DCG@k, (n,)."""
        gains: Float64Array = np.exp2(self.y) - 1.0
        last = np.repeat(self.starts[1:], np.diff(self.starts))
        rank = last - np.arange(len(gains))  # rank in the best order
        discounted = np.where(rank <= k, gains / np.log2(rank + 1.0), 0.0)
        best = np.add.reduceat(discounted, self.starts[:-1])
        return gains / np.repeat(np.where(best > 0, best, 1.0), np.diff(self.starts))


@dataclass(frozen=True, slots=True, eq=False)
class LocalMetrics:
    metrics: Float64Array  # (m, d, d), or diagonals (m, d)
    anchors: Float64Array  # (m, d)

    def squares(self, X: Float64Array, r: int) -> Float64Array:
        """Return t_r, the squared distances from documents to anchor r."""
        return compute_squared_lengths(self.metrics[r], X, self.anchors[r])


def compute_squared_lengths(metric: Float64Array, X: Float64Array, origin: Float64Array | float = 0.0) -> Float64Array:
    """Return the squared lengths of rows from an origin, (n,), in a metric (d, d) or a diagonal metric (d,).

    Columns that are 0 in the metric are skipped; temporary arrays are small.
    """
    used = np.flatnonzero(metric if metric.ndim == 1 else np.diag(metric))
    if len(used) < len(metric):
        X, metric = X[:, used], metric[used] if metric.ndim == 1 else metric[np.ix_(used, used)]
        origin = origin[used] if isinstance(origin, np.ndarray) else origin
    squares = np.empty(len(X))
    step = max(1, _BLOCK_ENTRIES // max(1, X.shape[1]))
    for start in range(0, len(X), step):
        difference = X[start : start + step] - origin
        product = difference * metric if metric.ndim == 1 else difference @ metric
        np.einsum("ij,ij->i", product, difference, out=squares[start : start + step])
    return np.maximum(squares, 0.0, out=squares)


def closeness(local: LocalMetrics, X: Float64Array) -> tuple[Float32Array, float]:
    """Return g_r = t_r exp(-t_r), (n, m), and the share of pairs with t_r > 1, where g_r decreases."""
    table = np.empty((len(X), len(local.metrics)), dtype=np.float32)
    beyond = 0.0
    for r in range(len(local.metrics)):
        # np.fmin also replaces NaN, which results if a square overflows
        t = np.fmin(local.squares(X, r), _NO_CLOSER)
        beyond += np.count_nonzero(t > 1.0)
        table[:, r] = t * np.exp(-t)
    return table, beyond / max(1, table.size)


def sum_weighted(table: Float32Array, phi: Float64Array) -> Float64Array:
    """Return ``table @ phi`` in float64 without copying the table to float64."""
    sums = np.empty(len(table))
    step = max(1, _BLOCK_ENTRIES // table.shape[1])
    for start in range(0, len(table), step):
        np.matmul(table[start : start + step], phi, out=sums[start : start + step])
    return sums


def learn_local_metrics(
    documents: Queries,
    n_metrics: int,
    n_queries: int,
    structure: str,
    anchor: str,
    t: float,
    prior: Float64Array,
    reg: float,
    n_columns: int,
    rng: np.random.Generator,
    progress: Callable[[int], bool],
) -> LocalMetrics:
    """Learn each metric from `n_queries` random queries; scale it so that 95% of documents are within 1 of its anchor.

    A similar pair consists of two documents above the lowest label of their query. A dissimilar pair consists of one
    such document and one with the lowest label. The anchor is the candidate with the best mean NDCG@10 over the drawn
    queries, except the query it comes from. Candidates are relevant documents ("document"), or points on the line from
    the mean of the irrelevant documents through the mean of the relevant ones ("ideal"). A metric uses `n_columns`
    random columns. `progress` gets the number of metrics learned so far; it returns True to stop.
    """
    metrics, anchors = [], []
    gains = documents.gains(_NDCG_AT)
    n_queries = min(n_queries, len(documents.usable))
    for number in range(1, n_metrics + 1):
        drawn = np.sort(rng.choice(documents.usable, n_queries, replace=False))
        rows = np.concatenate([np.arange(documents.starts[q], documents.starts[q + 1]) for q in drawn])
        is_up = documents.lower[rows] > 0
        ups, downs = documents.X[rows[is_up]], documents.X[rows[~is_up]]
        columns = np.sort(rng.choice(len(prior), n_columns, replace=False))
        metric = _learn_metric(ups, downs, columns, structure, t, prior, reg)
        sizes = documents.starts[drawn + 1] - documents.starts[drawn]
        if anchor == "ideal":
            middle = ups.mean(axis=0)
            candidates = middle + np.outer(_BEYOND, middle - downs.mean(axis=0))
            owners = np.full(len(candidates), -1)
        else:
            places = np.flatnonzero(is_up)
            if len(places) > _MAX_CANDIDATES:
                places = np.sort(rng.choice(places, _MAX_CANDIDATES, replace=False))
            candidates = documents.X[rows[places]]
            owners = np.repeat(np.arange(n_queries), sizes)[places]
        scores = _ndcg(documents.X[rows], gains[rows], sizes, candidates, metric)
        if n_queries > 1:
            has_owner = owners >= 0
            scores[has_owner, owners[has_owner]] = 0.0
        best = candidates[int(np.argmax(scores.sum(axis=1)))]
        scale = np.quantile(compute_squared_lengths(metric, documents.X, best), QUANTILE)
        metrics.append(metric / scale if scale > 0 else metric)
        anchors.append(best)
        if progress(number):
            break
    return LocalMetrics(np.stack(metrics), np.stack(anchors))


def _learn_metric(
    ups: Float64Array,
    downs: Float64Array,
    columns: Int64Array,
    structure: str,
    t: float,
    prior: Float64Array,
    reg: float,
) -> Float64Array:
    """Return the metric of the given columns; it is 0 in all other columns."""
    within = scatter_within(ups)
    # a single relevant document does not form a pair, so only the prior counts
    similar = within.mean() if within.n_pairs else np.eye(ups.shape[1])
    S, D = regularize(similar, scatter_across(ups, downs).mean(), prior, reg)
    if structure == "diagonal":
        s, e = np.diag(S)[columns], np.diag(D)[columns]
        if not ((s > 0).all() and (e > 0).all()):
            raise ValueError("A column is constant over all documents of a sample; set reg above 0.")
        metric = np.zeros(len(S))
        metric[columns] = s ** (t - 1.0) * e**t
        return metric
    part = np.ix_(columns, columns)
    metric = np.zeros(S.shape)
    metric[part] = geometric_mean_metric(S[part], D[part], t)
    return metric


def _ndcg(
    X: Float64Array, gains: Float64Array, sizes: Int64Array, candidates: Float64Array, metric: Float64Array
) -> Float64Array:
    """Return NDCG@10, (n_candidates, n_queries), by distance to the candidates; rows are sorted by label."""
    products = candidates * metric if metric.ndim == 1 else candidates @ metric
    D = compute_squared_lengths(metric, X) - 2.0 * products @ X.T  # a candidate's own length does not change the order
    ends = np.cumsum(sizes)
    scores = np.empty((len(candidates), len(sizes)))
    for q, (first, last) in enumerate(zip(ends - sizes, ends, strict=True)):
        # a stable sort: at equal distance, the less relevant document is first
        order = np.argsort(D[:, first:last], axis=1, kind="stable")[:, :_NDCG_AT]
        scores[:, q] = gains[first:last][order] @ (1.0 / np.log2(np.arange(2.0, order.shape[1] + 2.0)))
    return scores
