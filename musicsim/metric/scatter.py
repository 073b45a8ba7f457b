"""Scatter of pairs of songs: the sum of (x - y)(x - y)^T over pairs, without storing a row per pair.

Let A hold the number of times each pair is counted, with row sums r and column sums c. The sum over pairs of queries Q
and songs X is ``Q^T diag(r) Q + X^T diag(c) X - Q^T A X - (Q^T A X)^T``. If all pairs of some classes or sets are
counted, A X is computed from sums of songs, and the scatter takes a single product of the songs with themselves. X
should be centered, because otherwise the terms nearly cancel.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from musicsim._arrays import Float64Array, Int64Array
from musicsim.relevance import Relevance

_BLOCK_ENTRIES = 2_000_000  # Maximum number of entries in a block of the array (queries, songs): 16 MB


@dataclass(frozen=True, slots=True)
class Scatter:
    """A sum of outer products (d, d), and the number of pairs."""

    total: Float64Array
    n_pairs: int

    def mean(self) -> Float64Array:
        """Return the mean outer product, which is exactly symmetric."""
        return (self.total + self.total.T) / (2.0 * self.n_pairs)


def scatter_within(X: Float64Array) -> Scatter:
    """Return the scatter of all ordered pairs of n songs: 2 n times the scatter around their mean."""
    n = len(X)
    centered = X - X.mean(axis=0)
    return Scatter(2.0 * n * (centered.T @ centered), n * (n - 1))


def scatter_across(A: Float64Array, B: Float64Array) -> Scatter:
    """Return the scatter of all pairs with one song from A and one song from B."""
    mean = (A.sum(axis=0) + B.sum(axis=0)) / (len(A) + len(B))
    A, B = A - mean, B - mean
    cross = np.outer(A.sum(axis=0), B.sum(axis=0))
    return Scatter(len(B) * (A.T @ A) + len(A) * (B.T @ B) - cross - cross.T, len(A) * len(B))


def label_scatters(X: Float64Array, codes: Int64Array) -> tuple[Scatter, Scatter]:
    """Return the scatter of all similar pairs and of all dissimilar pairs; `codes` are class labels, -1 if unknown.

    The pairs are those of :func:`relevance_scatters` on ``Relevance.from_labels``. A query is a song whose label is
    known, and is shared by some other songs, but not by all. Songs with unknown labels are dissimilar to the queries.
    """
    n = len(X)
    sizes = np.bincount(codes[codes >= 0], minlength=int(codes.max(initial=-1)) + 1)
    is_query = (codes >= 0) & (sizes[codes] >= 2) & (sizes[codes] < n) if len(sizes) else np.zeros(n, np.bool_)
    X = X - X.mean(axis=0)
    rows = np.flatnonzero(is_query)
    members = sparse.csr_array((np.ones(len(rows)), (codes[rows], rows)), shape=(len(sizes), n))
    sums = members @ X
    sums_scatter = sums.T @ sums
    own = np.where(is_query, sizes[codes], 0.0) if len(sizes) else np.zeros(n)
    similar = 2.0 * (X.T @ (own[:, None] * X) - sums_scatter)
    # the songs are centered, so their sum is 0
    weights = np.where(is_query, n - 2.0 * own, 0.0) + len(rows)
    dissimilar = X.T @ (weights[:, None] * X) + 2.0 * sums_scatter
    n_dissimilar = int(np.where(is_query, n - own, 0.0).sum())
    return Scatter(similar, int((own - is_query).sum())), Scatter(dissimilar, n_dissimilar)


def pair_scatter(X: Float64Array, pairs: Int64Array) -> Scatter:
    """Return the scatter of the given pairs of rows of X; this needs 16 bytes per pair."""
    n = len(X)
    X = X - X.mean(axis=0)
    counts = sparse.csr_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(n, n))
    degrees = np.bincount(pairs.ravel(), minlength=n).astype(np.float64)
    cross = X.T @ (counts @ X)
    return Scatter(X.T @ (degrees[:, None] * X) - cross - cross.T, len(pairs))


def relevance_scatters(
    X: Float64Array, relevance: Relevance, queries: Int64Array | None = None
) -> tuple[Scatter, Scatter]:
    """Return the scatters of (query, relevant) and (query, irrelevant) pairs for queries with both kinds of songs.

    Queries are processed in blocks. The time is O(n_queries n_songs d).
    """
    n, d = X.shape
    queries = np.arange(n) if queries is None else queries
    X = X - X.mean(axis=0)
    block = max(1, _BLOCK_ENTRIES // n)
    totals = np.zeros((2, d, d))
    counts = [0, 0]
    columns = np.zeros((2, n))
    for start in range(0, len(queries), block):
        rows = queries[start : start + block]
        judgments = relevance.judgments(rows)
        judgments[~((judgments == 1).any(axis=1) & (judgments == 0).any(axis=1))] = -1
        Q = X[rows]
        for kind in (0, 1):
            table = (judgments == 1 - kind).astype(np.float64)
            sizes = table.sum(axis=1)
            columns[kind] += table.sum(axis=0)
            counts[kind] += int(sizes.sum())
            cross = Q.T @ (table @ X)
            totals[kind] += Q.T @ (sizes[:, None] * Q) - cross - cross.T
    for kind in (0, 1):
        totals[kind] += X.T @ (columns[kind][:, None] * X)
    return Scatter(totals[0], counts[0]), Scatter(totals[1], counts[1])


def sample_pairs(relevance: Relevance, n_pairs: int, rng: np.random.Generator) -> tuple[Int64Array, Int64Array]:
    """Draw similar and dissimilar pairs, (n_pairs, 2) each, uniformly with replacement.

    Only queries with both relevant and irrelevant songs are used. The result is empty if no query has both.
    """
    sizes = np.array([(len(relevance.relevant(i)), len(relevance.irrelevant(i))) for i in range(len(relevance))])
    sizes[(sizes == 0).any(axis=1)] = 0
    if not sizes.any():
        return np.empty((0, 2), np.int64), np.empty((0, 2), np.int64)
    pairs = []
    for kind, partners in enumerate((relevance.relevant, relevance.irrelevant)):
        shares = rng.multinomial(n_pairs, sizes[:, kind] / sizes[:, kind].sum())
        rows = np.flatnonzero(shares)
        drawn = [np.column_stack([np.full(shares[i], i), rng.choice(partners(int(i)), shares[i])]) for i in rows]
        pairs.append(np.concatenate(drawn))
    return pairs[0], pairs[1]


def require_pairs(similar: Scatter) -> None:
    """Raise ValueError unless some song has both a similar and a dissimilar song."""
    if not similar.n_pairs:
        raise ValueError("y: no song has both a similar and a dissimilar song; there is nothing to learn from.")
