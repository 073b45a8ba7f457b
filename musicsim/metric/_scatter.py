"""Scatter of pairs of songs: the sum of (x - y)(x - y)^T over pairs, never with a row a pair.

With A the table of how often each pair counts, r and c its row and column sums, the sum over pairs of queries Q and
songs X is ``Q^T diag(r) Q + X^T diag(c) X - Q^T A X - (Q^T A X)^T``. Where all pairs of classes or of sets count, A X
is known from sums, and the scatter costs one product of the songs with themselves. X should be centred, since the
parts nearly cancel otherwise.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from musicsim._arrays import Float64Array, Int64Array
from musicsim.relevance import Relevance

_BLOCK_ENTRIES = 2_000_000
"""Of a table of queries and songs that is held at once: 16 MB."""


@dataclass(frozen=True, slots=True)
class Scatter:
    """A sum of outer products (d, d), and of how many pairs."""

    total: Float64Array
    n_pairs: int

    def mean(self) -> Float64Array:
        """An average pair's outer product, exactly symmetric."""
        return (self.total + self.total.T) / (2.0 * self.n_pairs)


def within_scatter(X: Float64Array) -> Scatter:
    """All ordered pairs of a set of n songs: 2 n times the scatter around their mean."""
    n = len(X)
    centred = X - X.mean(axis=0)
    return Scatter(2.0 * n * (centred.T @ centred), n * (n - 1))


def cross_scatter(A: Float64Array, B: Float64Array) -> Scatter:
    """All pairs of a song of one set and a song of another."""
    middle = (A.sum(axis=0) + B.sum(axis=0)) / (len(A) + len(B))
    A, B = A - middle, B - middle
    across = np.outer(A.sum(axis=0), B.sum(axis=0))
    return Scatter(len(B) * (A.T @ A) + len(A) * (B.T @ B) - across - across.T, len(A) * len(B))


def label_scatters(X: Float64Array, codes: Int64Array) -> tuple[Scatter, Scatter]:
    """All similar and all dissimilar pairs of class labels, -1 being unknown.

    The pairs of :func:`relevance_scatters` on ``Relevance.from_labels``: songs of known label that have another of
    it and one without it ask; songs of unknown label are dissimilar to them, and ask nothing.
    """
    n = len(X)
    sizes = np.bincount(codes[codes >= 0], minlength=int(codes.max(initial=-1)) + 1)
    asks = (codes >= 0) & (sizes[codes] >= 2) & (sizes[codes] < n) if len(sizes) else np.zeros(n, np.bool_)
    X = X - X.mean(axis=0)
    members = sparse.csr_array((np.ones(int(asks.sum())), (codes[asks], np.flatnonzero(asks))), shape=(len(sizes), n))
    sums = members @ X
    of_sums = sums.T @ sums
    own = np.where(asks, sizes[codes], 0.0) if len(sizes) else np.zeros(n)
    similar = 2.0 * (X.T @ (own[:, None] * X) - of_sums)
    # the sum of all songs is 0
    weights = np.where(asks, n - 2.0 * own, 0.0) + np.count_nonzero(asks)
    dissimilar = X.T @ (weights[:, None] * X) + 2.0 * of_sums
    return (Scatter(similar, int((own - asks).sum())), Scatter(dissimilar, int((np.where(asks, n - own, 0.0)).sum())))


def pair_scatter(X: Float64Array, pairs: Int64Array) -> Scatter:
    """Pairs of rows of X, shape (m, 2); 16 bytes a pair besides them."""
    n = len(X)
    X = X - X.mean(axis=0)
    counts = sparse.csr_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(n, n))
    degrees = np.bincount(pairs.ravel(), minlength=n).astype(np.float64)
    across = X.T @ (counts @ X)
    return Scatter(X.T @ (degrees[:, None] * X) - across - across.T, len(pairs))


def relevance_scatters(
    X: Float64Array, relevance: Relevance, queries: Int64Array | None = None
) -> tuple[Scatter, Scatter]:
    """All (query, relevant) and (query, irrelevant) pairs of the queries that have both.

    O(n_queries n_songs d), in blocks of queries.
    """
    n, d = X.shape
    asked = np.arange(n) if queries is None else queries
    X = X - X.mean(axis=0)
    block = max(1, _BLOCK_ENTRIES // n)
    totals = np.zeros((2, d, d))
    counts = [0, 0]
    columns = np.zeros((2, n))
    for start in range(0, len(asked), block):
        rows = asked[start : start + block]
        judged = relevance.judgements(rows)
        judged[~((judged == 1).any(axis=1) & (judged == 0).any(axis=1))] = -1
        Q = X[rows]
        for kind in (0, 1):
            table = (judged == 1 - kind).astype(np.float64)
            of_query = table.sum(axis=1)
            columns[kind] += table.sum(axis=0)
            counts[kind] += int(of_query.sum())
            across = Q.T @ (table @ X)
            totals[kind] += Q.T @ (of_query[:, None] * Q) - across - across.T
    for kind in (0, 1):
        totals[kind] += X.T @ (columns[kind][:, None] * X)
    return Scatter(totals[0], counts[0]), Scatter(totals[1], counts[1])


def sample_pairs(relevance: Relevance, n_pairs: int, rng: np.random.Generator) -> tuple[Int64Array, Int64Array]:
    """Similar and dissimilar pairs, shape (n_pairs, 2) each, drawn with replacement, every pair as likely.

    Of queries that have both; none where no query has.
    """
    sizes = np.array([(len(relevance.relevant(i)), len(relevance.irrelevant(i))) for i in range(len(relevance))])
    sizes[(sizes == 0).any(axis=1)] = 0
    if not sizes.any():
        return np.empty((0, 2), np.int64), np.empty((0, 2), np.int64)
    found = []
    for kind, of in enumerate((relevance.relevant, relevance.irrelevant)):
        shares = rng.multinomial(n_pairs, sizes[:, kind] / sizes[:, kind].sum())
        drawn = [
            np.column_stack([np.full(shares[i], i), rng.choice(of(int(i)), shares[i])]) for i in np.flatnonzero(shares)
        ]
        found.append(np.concatenate(drawn))
    return found[0], found[1]


def require_pairs(similar: Scatter) -> None:
    """Raise ValueError where no song has both a similar and a dissimilar one."""
    if not similar.n_pairs:
        raise ValueError("y: no song has both a similar and a dissimilar one; there is nothing to learn from.")
