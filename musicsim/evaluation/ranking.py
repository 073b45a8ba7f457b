"""Quality measures of nearest neighbors and of rankings.

Neighbors: rows are songs, and a song is never its own neighbor. With an artist filter, songs by the query's own artist
are not candidates. If distances are equal, the lower row comes first. A label of -1 means unknown: it never matches
another label, and queries with an unknown label are excluded from the mean.

Rankings (thesis, section 3.4): the database is ranked by Euclidean distance from the query, nearest first. Songs that
are neither relevant nor irrelevant are excluded. A tie between a relevant and an irrelevant song counts half for AUC;
for all other measures, the irrelevant song comes first. All measures are between 0 and 1, and higher is better. A query
without relevant songs or without irrelevant songs scores nan and is excluded from the mean.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from musicsim._arrays import Float64Array, FloatingArray, Int8Array, Int64Array
from musicsim._checks import check_dense, check_type, check_whole
from musicsim.relevance import Relevance, group_codes, label_codes

_MEASURES = ("auc", "map", "mrr", "ndcg", "precision")
_NEIGHBOR_ROWS, _QUERY_ROWS = 512, 128  # number of queries whose distances are in memory at the same time


def nearest_neighbors(X: FloatingArray, k: int = 10, *, groups: Int64Array | None = None) -> Int64Array:
    """Return the `k` songs nearest to each song by Euclidean distance, excluding the song itself.

    Parameters
    ----------
    X : ndarray of shape (n_songs, n_features)
    k : int, 1 <= k < n_songs
    groups : int ndarray of shape (n_songs,), optional
        Songs in the same group (by the same artist) are not neighbors of each other; -1 means a separate group.

    Returns
    -------
    ndarray of shape (n_songs, k), int64; -1 at the end of a row with fewer than `k` candidates

    Notes
    -----
    This needs 4 kB of memory per song (410 MB for 100,000 songs).

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.evaluation import nearest_neighbors
    >>> X = np.array([[0.0], [1.0], [3.0], [7.0]])
    >>> nearest_neighbors(X, 2)
    array([[1, 2],
           [0, 2],
           [1, 0],
           [2, 1]])
    >>> nearest_neighbors(X, 2, groups=np.array([0, 0, 1, 1]))  # only songs by other artists
    array([[2, 3],
           [2, 3],
           [1, 0],
           [1, 0]])
    """
    X = _check_vectors(X, "X")
    n = len(X)
    if not 1 <= k < n:
        raise ValueError(f"k={k} must be at least 1 and less than the number of songs, {n}.")
    squares = np.einsum("ij,ij->i", X, X)
    neighbors = np.full((n, k), -1, dtype=np.int64)
    for start in range(0, n, _NEIGHBOR_ROWS):
        rows = np.arange(start, min(start + _NEIGHBOR_ROWS, n))
        D = squares[None, :] - 2.0 * (X[rows] @ X.T)
        if groups is not None:
            D[(groups[rows][:, None] == groups[None, :]) & (groups[rows] >= 0)[:, None]] = np.inf
        D[np.arange(len(rows)), rows] = np.inf
        order = np.argsort(D, axis=1, kind="stable")[:, :k]
        reachable = np.isfinite(np.take_along_axis(D, order, axis=1))
        neighbors[rows] = np.where(reachable, order, -1)
    return neighbors


def k_occurrence(neighbors: npt.ArrayLike, n_songs: int | None = None) -> Int64Array:
    """Count how often each song is among the neighbors of other songs, int64 (n_songs,).

    `neighbors` has shape (n_queries, k), with -1 for none. By default, `n_songs` is n_queries.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.evaluation import k_occurrence
    >>> neighbors = np.array([[1, 2], [2, 3], [1, 3], [2, 1]])  # two neighbors of each of four songs
    >>> k_occurrence(neighbors)  # nobody's list has song 0: an orphan
    array([0, 3, 3, 2])
    """
    ids = _check_neighbors(neighbors)
    return np.bincount(ids[ids >= 0], minlength=n_songs or len(ids))


def _check_neighbors(neighbors: npt.ArrayLike) -> Int64Array:
    ids = np.asarray(neighbors)
    if ids.ndim != 2 or (ids.size and ids.dtype.kind not in "iu"):
        raise ValueError(f"neighbors has type {ids.dtype} and shape {ids.shape}; it must be integers, (n_queries, k).")
    return ids.astype(np.int64, copy=False)


def hubness(neighbors: npt.ArrayLike, n_songs: int | None = None) -> float:
    """Return the skewness of the k-occurrence: 0 without hubs, above 1 if a few songs are close to very many others.

    See Schnitzer et al., JMLR 2012. If all counts are equal, it is 0. Takes the arguments of :func:`k_occurrence`.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.evaluation import hubness, nearest_neighbors
    >>> rng = np.random.default_rng(0)
    >>> low, high = (nearest_neighbors(rng.normal(size=(500, d)), 10) for d in (2, 100))
    >>> hubness(low) < 0.5, hubness(high) > 1.5  # many dimensions make hubs
    (True, True)
    """
    from scipy.stats import skew  # this import takes 1.5 s

    counts = k_occurrence(neighbors, n_songs).astype(np.float64)
    return float(skew(counts)) if counts.std() > 0 else 0.0


def share_of_same(neighbors: npt.ArrayLike, labels: Any) -> tuple[float, Float64Array]:
    """Return the share of neighbors with the same label as the song: the mean, and the share per song (n_songs,).

    `neighbors` has shape (n_songs, k), with -1 for none; `labels` has shape (n_songs,). The share of a song without a
    label or without neighbors is nan; these songs are excluded from the mean.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.evaluation import share_of_same
    >>> neighbors = np.array([[1, 2], [0, 2], [3, 0], [2, 1]])
    >>> mean, per_song = share_of_same(neighbors, np.array([0, 0, 1, 1]))
    >>> mean, per_song
    (0.5, array([0.5, 0.5, 0.5, 0.5]))
    """
    ids, codes = _check_neighbors(neighbors), label_codes(labels)
    if len(codes) != len(ids) or ids.max(initial=-1) >= len(codes):
        raise ValueError(
            f"neighbors has {len(ids)} rows and songs up to {ids.max(initial=-1)}, but there are {len(codes)} labels."
        )
    is_neighbor = ids >= 0
    same = (codes[ids] == codes[:, None]) & is_neighbor
    counts = is_neighbor.sum(axis=1)
    shares = np.full(len(codes), np.nan)
    counted = (codes >= 0) & (counts > 0)
    shares[counted] = same[counted].sum(axis=1) / counts[counted]
    return (float(np.nanmean(shares)) if counted.any() else float("nan")), shares


def ranking_scores(
    queries: npt.ArrayLike, database: npt.ArrayLike, relevance: Relevance | Sequence[Any], k: int = 10
) -> dict[str, float]:
    """Return the quality of rankings by Euclidean distance, averaged over the queries.

    Parameters
    ----------
    queries : array-like of shape (n_queries, n_features)
    database : array-like of shape (n_songs, n_features)
    relevance : Relevance of n_queries and n_songs, or a sequence with one entry per query
        An entry is a list of the relevant rows (all others are irrelevant), or a tuple (relevant, irrelevant).
    k : int, at least 1; number of ranks for `ndcg`, `precision` and `knn`

    Returns
    -------
    dict
        - ``auc``: share of the pairs of a relevant and an irrelevant song that are in the right order
        - ``map``: average precision, equation 3.6
        - ``mrr``: one over the rank of the first relevant song
        - ``ndcg``: sum of the gains of relevant songs at ranks up to `k`, divided by the sum of all gains up to `k`.
          The gain is 1 at ranks 1 and 2, then 1 / log2(rank).
        - ``precision``: number of relevant songs at ranks up to `k`, divided by `k`
        - ``knn``, if the relevance was made from labels: share of queries whose label is more frequent at ranks up to
          `k` than any other label
        - ``n_queries``, ``n_skipped``: number of queries in the means, and number of excluded queries

        Means without queries are nan.

    Raises
    ------
    ValueError
        If a query differs from its row in the database.

    Notes
    -----
    As in the thesis, `ndcg` and `precision` divide by `k` ranks even if fewer than `k` songs are relevant, so a
    perfect ranking may score below 1. Distances are summed by coordinate in float64, so equal songs tie exactly.
    This needs about 1.5 kB of memory per song (150 MB for 100,000 songs).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from musicsim.evaluation import ranking_scores
    >>> from musicsim.relevance import Relevance
    >>> X, y = load_iris(return_X_y=True)
    >>> scores = ranking_scores(X, X, Relevance.from_labels(y), k=10)
    >>> [(name, round(scores[name], 2)) for name in ("auc", "map", "precision", "knn")]
    [('auc', 0.93), ('map', 0.88), ('precision', 0.94), ('knn', 0.95)]
    """
    scores = query_scores(queries, database, relevance, k)
    counted = np.isfinite(scores["auc"])
    means = {name: float(s[counted].mean()) if counted.any() else float("nan") for name, s in scores.items()}
    n_queries = int(counted.sum())
    return {**means, "n_queries": n_queries, "n_skipped": len(counted) - n_queries}


def query_scores(
    queries: npt.ArrayLike, database: npt.ArrayLike, relevance: Relevance | Sequence[Any], k: int = 10
) -> dict[str, Float64Array]:
    """Return the measures of :func:`ranking_scores` for each query, for example for :func:`bootstrap_pairs`.

    Returns
    -------
    dict of float64 ndarrays of shape (n_queries,)
        ``auc``, ``map``, ``mrr``, ``ndcg``, ``precision`` and, with labels, ``knn`` (0 or 1); nan for queries without
        relevant or without irrelevant songs.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from musicsim.evaluation import query_scores
    >>> from musicsim.relevance import Relevance
    >>> X, y = load_iris(return_X_y=True)
    >>> scores = query_scores(X, X, Relevance.from_labels(y))
    >>> scores["map"].shape
    (150,)
    >>> [round(float(scores["map"][y == kind].mean()), 2) for kind in range(3)]  # the first species is easy to find
    [1.0, 0.83, 0.81]
    """
    from scipy.spatial.distance import cdist

    check_whole("k", k, 1)
    Q, X = _check_vectors(queries, "queries"), _check_vectors(database, "database")
    if Q.shape[1] != X.shape[1]:
        raise ValueError(f"queries has {Q.shape[1]} features, but database has {X.shape[1]}; these must be equal.")
    relevance = _check_relevance(relevance, Q, X)
    scores = _create_scores(relevance)
    for start in range(0, len(Q), _QUERY_ROWS):
        rows = np.arange(start, min(start + _QUERY_ROWS, len(Q)))
        _score_rows(scores, rows, cdist(Q[rows], X, "sqeuclidean"), relevance, k)
    return scores


def distance_scores(distances: npt.ArrayLike, relevance: Relevance, k: int = 10) -> dict[str, Float64Array]:
    """Return the scores of :func:`query_scores` for given distances (n_queries, n_songs), such as divergences.

    Distances can have any unit, and can be asymmetric or negative.

    Examples
    --------
    >>> from musicsim.evaluation import distance_scores
    >>> from musicsim.relevance import Relevance
    >>> divergences = [[0.0, 0.2, 0.9], [0.3, 0.0, 0.1], [0.8, 0.2, 0.0]]
    >>> scores = distance_scores(divergences, Relevance.from_labels(["calm", "calm", "loud"]), k=1)
    >>> scores["auc"]  # the first song finds the second; the second finds the third first
    array([ 1.,  0., nan])
    """
    check_whole("k", k, 1)
    D = check_distances(distances, relevance)
    scores = _create_scores(relevance)
    _score_rows(scores, np.arange(len(D)), D, relevance, k)
    return scores


def check_distances(distances: npt.ArrayLike, relevance: Relevance) -> Float64Array:
    """Return distances (n_queries, n_songs); raise ValueError if one is not finite or they do not match `relevance`."""
    check_type("relevance", relevance, Relevance, "Relevance.from_labels and Relevance.from_lists create")
    D = np.asarray(distances, dtype=np.float64)
    if D.shape != (len(relevance), relevance.n_items):
        raise ValueError(
            f"distances has shape {D.shape}; it must be {(len(relevance), relevance.n_items)}, "
            "because relevance has that many queries and songs. See Relevance.restrict."
        )
    if not np.isfinite(D).all():
        raise ValueError(f"distances: row {np.argwhere(~np.isfinite(D))[0, 0]} is not finite.")
    return D


def _create_scores(relevance: Relevance) -> dict[str, Float64Array]:
    names = _MEASURES if relevance.labels is None else (*_MEASURES, "knn")
    return {name: np.full(len(relevance), np.nan) for name in names}


def _score_rows(
    scores: dict[str, Float64Array], rows: Int64Array, D: Float64Array, relevance: Relevance, k: int
) -> None:
    """Set the scores of some queries; row i of D has the distances from query ``rows[i]``."""
    gain = ndcg_gains(k)
    for q, d, judgments in zip(rows, D, relevance.judgments(rows), strict=True):
        relevant, irrelevant = d[judgments == 1], d[judgments == 0]
        if not (len(relevant) and len(irrelevant)):
            continue
        for name, score in zip(_MEASURES, _compute_scores(relevant, irrelevant, gain), strict=True):
            scores[name][q] = score
        if relevance.labels is not None:
            query_labels, item_labels = relevance.labels
            nearest = _select_nearest(d, judgments, k)
            scores["knn"][q] = _has_most_votes(item_labels[nearest], query_labels[q])


def ndcg_gains(k: int) -> Float64Array:
    """Return the gains of the first `k` ranks (thesis 3.4.5): 1 at ranks 1 and 2, then 1 / log2(rank)."""
    return 1.0 / np.log2(np.maximum(np.arange(1, k + 1), 2))


def _compute_scores(
    relevant: Float64Array, irrelevant: Float64Array, gain: Float64Array
) -> tuple[float, float, float, float, float]:
    """Compute `_MEASURES`, in order, from the distances of at least one relevant and one irrelevant song."""
    k = len(gain)
    irrelevant = np.sort(irrelevant)
    relevant = np.sort(relevant)
    n_nearer = np.searchsorted(irrelevant, relevant, side="left")
    n_not_farther = np.searchsorted(irrelevant, relevant, side="right")
    auc = 1.0 - (n_nearer + n_not_farther).mean() / (2.0 * len(irrelevant))
    n_relevant = np.arange(1, len(relevant) + 1)
    ranks = n_relevant + n_not_farther
    top = ranks[ranks <= k]
    precision = float((n_relevant / ranks).mean())
    return float(auc), precision, 1.0 / float(ranks[0]), float(gain[top - 1].sum() / gain.sum()), len(top) / k


def _select_nearest(distances: Float64Array, judgments: Int8Array, k: int) -> Int64Array:
    """Return the rows at ranks up to `k`; if distances are equal, irrelevant rows come first, then lower rows."""
    rows = np.flatnonzero(judgments >= 0)
    if len(rows) > k:
        rows = rows[distances[rows] <= np.partition(distances[rows], k - 1)[k - 1]]
    return rows[np.lexsort((rows, judgments[rows], distances[rows]))][:k]


def _has_most_votes(labels: Int64Array, own: np.int64) -> bool:
    """Return True if `own` is more frequent than any other label; unknown labels (-1) are ignored."""
    counts = np.unique(labels[(labels >= 0) & (labels != own)], return_counts=True)[1]
    return bool(np.count_nonzero(labels == own) > counts.max(initial=0))


def _check_vectors(X: npt.ArrayLike, name: str) -> Float64Array:
    check_dense(name, X)
    array = np.asarray(X, dtype=np.float64)
    if array.ndim != 2:
        raise ValueError(f"{name} has shape {array.shape}; it must be (n_songs, n_features).")
    if not np.isfinite(array).all():
        raise ValueError(f"{name}: row {np.argwhere(~np.isfinite(array))[0, 0]} is not finite.")
    return array


def _check_relevance(relevance: Relevance | Sequence[Any], Q: Float64Array, X: Float64Array) -> Relevance:
    """Return the relevance, created from lists if necessary, after checking that it matches Q and X."""
    if not isinstance(relevance, Relevance):
        pairs = [isinstance(entry, tuple) for entry in relevance]
        if any(pairs):
            if not all(pairs) or any(len(entry) != 2 for entry in relevance):
                raise ValueError("relevance: pass one list per query, or one tuple (relevant, irrelevant) per query.")
            lists, irrelevant = [r for r, _ in relevance], [i for _, i in relevance]
            relevance = Relevance.from_lists(lists, len(X), irrelevant=irrelevant, outside=True)
        else:
            relevance = Relevance.from_lists(relevance, len(X), outside=True)
    if (len(relevance), relevance.n_items) != (len(Q), len(X)):
        raise ValueError(
            f"relevance has {len(relevance)} queries and {relevance.n_items} songs, but the arguments have {len(Q)} "
            f"queries and {len(X)} songs. See Relevance.restrict."
        )
    inside = np.flatnonzero(relevance.own >= 0)
    difference = np.linalg.norm(Q[inside] - X[relevance.own[inside]], axis=1)
    # the tolerance allows for float32 queries from a float64 database
    wrong = inside[difference > 1e-3 * np.linalg.norm(Q[inside], axis=1)]
    if len(wrong):
        q = wrong[0]
        raise ValueError(
            f"according to relevance, query {q} is row {relevance.own[q]} of the database, but their vectors differ. "
            "Select the queries of a split with Relevance.restrict, or use Relevance.from_lists with outside=True."
        )
    return relevance


def bootstrap_pairs(
    a: npt.ArrayLike, b: npt.ArrayLike, groups: Any = None, n: int = 2000, random_state: Any = None
) -> tuple[float, float, float]:
    """Compare the scores of two methods for the same queries by bootstrap.

    Parameters
    ----------
    a, b : array-like of shape (n_queries,); queries with nan in either are ignored
    groups : sequence of shape (n_queries,), optional
        The artist of each query; then whole artists are resampled, because songs by one artist are not independent. A
        query with an unknown artist is a separate group. Without `groups`, queries are resampled.
    n : int >= 1; number of resamples
    random_state : int, numpy Generator or None

    Returns
    -------
    mean, low, high : float
        Mean of ``a - b`` over the queries, and its 95% percentile interval; the methods differ if this excludes 0.

    Raises
    ------
    ValueError
        If fewer than two queries or artists remain.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.evaluation import bootstrap_pairs
    >>> rng = np.random.default_rng(0)
    >>> artists = np.repeat(np.arange(30), 4)
    >>> plain = rng.uniform(0.4, 0.6, 120)
    >>> learned = plain + 0.1 + 0.05 * rng.normal(size=120)
    >>> mean, low, high = bootstrap_pairs(learned, plain, artists, random_state=0)
    >>> bool(0 < low < mean < high < 0.2)  # learned is better: the interval does not contain 0
    True
    """
    if n < 1:
        raise ValueError(f"n={n} must be at least 1.")
    sums, sizes = paired_groups(a, b, groups)
    rng = np.random.default_rng(random_state)
    means = np.empty(n)
    for i in range(n):
        drawn = rng.integers(len(sums), size=len(sums))
        means[i] = sums[drawn].sum() / sizes[drawn].sum()
    low, high = np.quantile(means, [0.025, 0.975])
    return float(sums.sum() / sizes.sum()), float(low), float(high)


def paired_groups(a: npt.ArrayLike, b: npt.ArrayLike, groups: Any = None) -> tuple[Float64Array, Int64Array]:
    """Return the sum of ``a - b`` over the queries of each artist, and the number of these queries.

    Arguments are those of :func:`bootstrap_pairs`. Raises ValueError if fewer than two queries or artists remain.
    """
    if np.ndim(a) != 1 or np.shape(a) != np.shape(b):
        raise ValueError(f"a has shape {np.shape(a)} and b has shape {np.shape(b)}; both must be (n_queries,).")
    difference = np.asarray(a, dtype=np.float64) - np.asarray(b, dtype=np.float64)
    codes = np.arange(len(difference)) if groups is None else group_codes(groups)
    if len(codes) != len(difference):
        raise ValueError(f"groups has {len(codes)} entries for {len(difference)} queries: pass one per query.")
    is_finite = np.isfinite(difference)
    difference, codes = difference[is_finite], codes[is_finite]
    units, group = np.unique(codes, return_inverse=True)
    if len(units) < 2:
        noun = "queries" if groups is None else "artists"
        raise ValueError(f"{len(units)} {noun} have scores in both a and b; an interval needs at least 2.")
    sums: Float64Array = np.bincount(group, weights=difference).astype(np.float64)
    return sums, np.bincount(group).astype(np.int64)
