"""Comparisons of pairs of songs as a graph, and removal of contradictions (thesis 2.2)."""

from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from musicsim._arrays import BoolArray, Int64Array
from musicsim._checks import check_choice
from musicsim.order._kernels import acyclic_edges, redundant_edges

REACH_BYTES = 1 << 28
"""Memory for the bit sets of reachable vertices; using more is not faster."""


@dataclass(frozen=True, slots=True)
class CleaningReport:
    """Counts of the comparisons that :func:`clean_comparisons` found and removed.

    Examples
    --------
    >>> from musicsim.order import clean_comparisons
    >>> _, report = clean_comparisons([[0, 1, 0, 2], [0, 1, 0, 2], [3, 3, 0, 1]])
    >>> report
    CleaningReport(n_given=3, n_self=1, n_repeated=1, n_contradictory=0, n_cyclic=0, n_redundant=0, n_kept=1, n_pairs=2)
    """

    n_given: int
    n_self: int  # dropped: comparisons of a song with itself, or of a pair with itself
    n_repeated: int  # dropped: repetitions of a comparison
    n_contradictory: int  # dropped: the opposite was also given; repetitions are not counted again
    n_cyclic: int  # dropped: a chain of other comparisons implies the opposite
    n_redundant: int  # dropped: a chain of other comparisons implies the same
    n_kept: int
    n_pairs: int  # number of different pairs of songs, which are the vertices of the remaining graph

    def __str__(self) -> str:
        return ", ".join(f"{f.name.removeprefix('n_')} {getattr(self, f.name):,}" for f in fields(self))


def check_comparisons(comparisons: npt.ArrayLike, n_songs: int | None = None) -> Int64Array:
    """Return comparisons as int64 of shape (m, 4), m >= 0.

    Raises ValueError unless they are four columns of integers from 0 to `n_songs` - 1 (by default 2^63 - 1).
    """
    rows = np.asarray(comparisons)
    if rows.size == 0:
        return np.empty((0, 4), np.int64)
    if rows.ndim != 2 or rows.shape[1] != 4 or rows.dtype.kind not in "iu":
        raise ValueError(
            f"comparisons must be rows of four integers (i, j, k, l), for d(i, j) < d(k, l); "
            f"the array has type {rows.dtype} and shape {rows.shape}."
        )
    low, high = int(rows.min()), int(rows.max())
    n_known = 2**63 if n_songs is None else n_songs
    if low < 0 or high >= n_known:
        wrong = low if low < 0 else high
        raise ValueError(f"comparisons contain song {wrong}; songs must be numbers from 0 to {n_known - 1}.")
    return rows.astype(np.int64)


def clean_comparisons(
    comparisons: npt.ArrayLike,
    *,
    contradictions: str = "drop",
    acyclic: bool = True,
    reduce: bool = True,
    random_state: int | np.random.Generator | None = None,
) -> tuple[Int64Array, CleaningReport]:
    """Reduce comparisons, which may contradict each other, to a partial order.

    The vertices of the graph are unordered pairs of songs; an edge means that one pair is nearer than another. The
    steps are:

    1. Drop repetitions, and comparisons of a pair with itself or of a song with itself.
    2. Drop comparisons whose opposite was also given.
    3. Add the remaining comparisons one by one in random order, except those that would close a cycle.
    4. Drop comparisons that follow from other comparisons.

    Parameters
    ----------
    comparisons : int array-like of shape (m, 4)
        Rows (i, j, k, l): songs i and j are nearer to each other than k and l.
    contradictions : "drop", "majority" or "keep"
        "drop" removes a comparison and its opposite. "majority" keeps the more frequent of the two, if there is one.
        "keep" leaves both for the next step.
    acyclic, reduce : bool
        Do steps 3 and 4; `reduce` needs `acyclic`.
    random_state : int, numpy.random.Generator or None
        Seed for the order in which comparisons are added.

    Returns
    -------
    comparisons : int64 ndarray of shape (n_kept, 4)
        In the given order. If a comparison was repeated, its first row is kept.
    report : CleaningReport

    Notes
    -----
    Thesis 2.2.2, algorithm 2.1, with an incremental topological order. The reduction of an acyclic graph is unique
    (Aho, Garey and Ullman, 1972). Its time grows with (number of edges) * (number of pairs) / 64.
    Memory: a quarter of a GiB, and about 150 bytes per comparison.

    Examples
    --------
    >>> from musicsim.order import clean_comparisons
    >>> given = [[0, 1, 0, 2], [0, 2, 0, 3], [0, 1, 0, 3], [4, 5, 4, 6], [4, 6, 4, 5]]
    >>> kept, report = clean_comparisons(given, random_state=0)
    >>> kept  # the third follows from the first two; the last two contradict each other
    array([[0, 1, 0, 2],
           [0, 2, 0, 3]])
    >>> report.n_redundant, report.n_contradictory
    (1, 2)
    """
    all_rows = check_comparisons(comparisons)
    check_choice("contradictions", contradictions, ("drop", "majority", "keep"))
    if reduce and not acyclic:
        raise ValueError("reduce=True needs acyclic=True: the reduction of a graph with cycles is not unique.")
    rng = np.random.default_rng(random_state)
    near, far = _pair_keys(all_rows)
    is_self = (all_rows[:, 0] == all_rows[:, 1]) | (all_rows[:, 2] == all_rows[:, 3]) | (near == far)
    rows = np.flatnonzero(~is_self)
    pairs, ends = np.unique(np.stack([near[rows], far[rows]]), return_inverse=True)
    tails, heads = ends.reshape(2, -1)
    edges, first, counts = np.unique(tails * len(pairs) + heads, return_index=True, return_counts=True)
    rows, tails, heads = rows[first], tails[first], heads[first]
    n_different = len(edges)
    is_kept = _drop_opposites(edges, heads * len(pairs) + tails, counts, contradictions)
    rows, tails, heads = rows[is_kept], tails[is_kept], heads[is_kept]
    n_agreed = len(rows)
    if acyclic:
        kept_rows, order = _select_acyclic(tails, heads, len(pairs), rng)
        rows, tails, heads = rows[kept_rows], tails[kept_rows], heads[kept_rows]
    n_acyclic = len(rows)
    if reduce:
        is_kept = _reduce(tails, heads, order)
        rows, tails, heads = rows[is_kept], tails[is_kept], heads[is_kept]
    report = CleaningReport(
        n_given=len(all_rows),
        n_self=int(np.count_nonzero(is_self)),
        n_repeated=len(all_rows) - int(np.count_nonzero(is_self)) - n_different,
        n_contradictory=n_different - n_agreed,
        n_cyclic=n_agreed - n_acyclic,
        n_redundant=n_acyclic - len(rows),
        n_kept=len(rows),
        n_pairs=len(np.unique(np.concatenate([tails, heads]))),
    )
    return all_rows[np.sort(rows)], report


def _pair_keys(comparisons: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Number the unordered pairs; return the numbers of the nearer pairs and of the farther pairs."""
    # songs are renumbered, because products of the given song numbers may overflow int64
    songs, places = np.unique(comparisons, return_inverse=True)
    low_first = np.sort(places.reshape(-1, 2, 2), axis=2)
    keys = low_first[:, :, 0] * len(songs) + low_first[:, :, 1]
    return keys[:, 0], keys[:, 1]


def _drop_opposites(edges: Int64Array, opposites: Int64Array, counts: Int64Array, contradictions: str) -> BoolArray:
    """Return a mask of the sorted edges to keep, given the opposite of each edge."""
    if contradictions == "keep" or len(edges) == 0:
        return np.ones(len(edges), np.bool_)
    places = np.minimum(np.searchsorted(edges, opposites), len(edges) - 1)
    is_opposed = edges[places] == opposites
    if contradictions == "drop":
        return ~is_opposed
    return ~is_opposed | (counts > counts[places])


def _select_acyclic(
    tails: Int64Array, heads: Int64Array, n_pairs: int, rng: np.random.Generator
) -> tuple[Int64Array, Int64Array]:
    """Select a greedy acyclic subgraph; return the indices of its edges, and the vertices in topological order."""
    # pairs that are usually the nearer ones come first, so that few edges contradict this order
    out, into = np.bincount(tails, minlength=n_pairs), np.bincount(heads, minlength=n_pairs)
    order = np.argsort((into - out) / np.maximum(into + out, 1), kind="stable")
    position = np.empty(n_pairs, np.int64)
    position[order] = np.arange(n_pairs)
    drawn = rng.permutation(len(tails))
    is_kept = acyclic_edges(tails[drawn], heads[drawn], position)
    return np.sort(drawn[is_kept]), np.argsort(position)


def _reduce(tails: Int64Array, heads: Int64Array, order: Int64Array) -> BoolArray:
    """Return a mask of the edges that are in the transitive reduction of an acyclic graph."""
    n = len(order)
    out, into = np.bincount(tails, minlength=n), np.bincount(heads, minlength=n)
    # an edge can be redundant only if both of its ends have another edge
    targets = np.unique(heads[(out[tails] > 1) & (into[heads] > 1)])
    columns = np.full(n, -1, np.int64)
    columns[targets] = np.arange(len(targets))
    by_tail = np.argsort(tails, kind="stable")
    start = np.concatenate([[0], np.cumsum(out)])
    n_words = max(1, min(REACH_BYTES // (8 * max(n, 1)), 64, -(-len(targets) // 64)))
    is_kept = np.empty(len(tails), np.bool_)
    is_kept[by_tail] = ~redundant_edges(order, start, heads[by_tail], columns, len(targets), n_words)
    return is_kept
