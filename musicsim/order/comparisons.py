"""Comparisons of pairs of songs as a graph, and what is left of it without contradictions (thesis 2.2)."""

from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from musicsim._arrays import BoolArray, Int64Array
from musicsim.order._kernels import acyclic_edges, redundant_edges

_REACH_BYTES = 1 << 28
"""Memory for the bits of what vertices reach; more is not faster."""


@dataclass(frozen=True, slots=True)
class CleaningReport:
    """Numbers of comparisons that :func:`clean_comparisons` found and removed."""

    n_given: int
    n_self: int  # dropped since a song was compared with itself, or a pair with the same pair
    n_repeated: int  # further copies of a comparison
    n_contradictory: int  # dropped since the opposite was said too, without copies
    n_cyclic: int  # dropped since a chain of others says the opposite
    n_redundant: int  # dropped since a chain of others says the same
    n_kept: int
    n_pairs: int  # different pairs of songs, the vertices of the graph that is left

    def __str__(self) -> str:
        return ", ".join(f"{f.name.removeprefix('n_')} {getattr(self, f.name):,}" for f in fields(self))


def checked_comparisons(comparisons: npt.ArrayLike, n_songs: int | None = None) -> Int64Array:
    """Comparisons as int64 of shape (m, 4); none at all may be an empty list.

    Raises ValueError if they are not whole numbers in four columns, or not from 0 to `n_songs` - 1 (to 2^63 - 1
    without it).
    """
    given = np.asarray(comparisons)
    if given.size == 0:
        return np.empty((0, 4), np.int64)
    if given.ndim != 2 or given.shape[1] != 4 or given.dtype.kind not in "iu":
        raise ValueError(
            f"comparisons should be whole numbers (i, j, k, l), four a row, for d(i, j) < d(k, l); "
            f"they are {given.dtype} of the shape {given.shape}."
        )
    lowest, highest = int(given.min()), int(given.max())
    n_known = 2**63 if n_songs is None else n_songs
    if lowest < 0 or highest >= n_known:
        wrong = lowest if lowest < 0 else highest
        raise ValueError(f"comparisons hold the song {wrong}; they should be numbers from 0 to {n_known - 1}.")
    return given.astype(np.int64)


def clean_comparisons(
    comparisons: npt.ArrayLike,
    *,
    contradictions: str = "drop",
    acyclic: bool = True,
    reduce: bool = True,
    random_state: int | np.random.Generator | None = None,
) -> tuple[Int64Array, CleaningReport]:
    """Make a partial order of comparisons that may contradict each other.

    The vertices of the graph are unordered pairs of songs, its edges say that one pair is nearer than another. In
    this order: comparisons of a song with itself and further copies go; both of a pair of opposite comparisons go;
    the rest is taken one at a time in random order, unless it would close a cycle; what follows from others goes.

    Parameters
    ----------
    comparisons : int array-like of shape (m, 4)
        Rows (i, j, k, l): songs i and j are nearer to each other than k and l.
    contradictions : "drop", "majority" or "keep"
        Of a comparison and its opposite keep none, the one said more often (none where they are level), or leave
        both to the next step.
    acyclic : bool
        Whether cycles are broken.
    reduce : bool
        Whether what follows from others goes; it needs a graph without cycles.
    random_state : int, numpy.random.Generator or None
        The order of the greedy subgraph.

    Returns
    -------
    comparisons : int64 ndarray of shape (n_kept, 4)
        As they were given, the first of equal ones, in the order given.
    report : CleaningReport

    Raises
    ------
    ValueError
        If comparisons are not of this form, `contradictions` is unknown, or `reduce` is asked for without
        `acyclic`.

    Notes
    -----
    Thesis 2.2.2, algorithm 2.1, with an incremental topological order; the reduction of an acyclic graph is
    unique (Aho, Garey and Ullman, 1972). Time of the reduction grows with edges times pairs, over 64; memory is a
    quarter of a GiB and about 150 bytes a comparison.
    """
    given = checked_comparisons(comparisons)
    if contradictions not in {"drop", "majority", "keep"}:
        raise ValueError(f"contradictions={contradictions!r} should be 'drop', 'majority' or 'keep'.")
    if reduce and not acyclic:
        raise ValueError("reduce=True needs acyclic=True: a graph with cycles has no unique reduction.")
    rng = np.random.default_rng(random_state)
    near, far = _pair_keys(given)
    of_itself = (given[:, 0] == given[:, 1]) | (given[:, 2] == given[:, 3]) | (near == far)
    rows = np.flatnonzero(~of_itself)
    pairs, ends = np.unique(np.stack([near[rows], far[rows]]), return_inverse=True)
    tails, heads = ends.reshape(2, -1)
    edges, first, counts = np.unique(tails * len(pairs) + heads, return_index=True, return_counts=True)
    rows, tails, heads = rows[first], tails[first], heads[first]
    n_different = len(edges)
    kept = _agreed(edges, heads * len(pairs) + tails, counts, contradictions)
    rows, tails, heads = rows[kept], tails[kept], heads[kept]
    n_agreed = len(rows)
    if acyclic:
        taken, order = _acyclic(tails, heads, len(pairs), rng)
        rows, tails, heads = rows[taken], tails[taken], heads[taken]
    n_acyclic = len(rows)
    if reduce:
        kept = _irredundant(tails, heads, order)
        rows, tails, heads = rows[kept], tails[kept], heads[kept]
    report = CleaningReport(
        n_given=len(given),
        n_self=int(np.count_nonzero(of_itself)),
        n_repeated=len(given) - int(np.count_nonzero(of_itself)) - n_different,
        n_contradictory=n_different - n_agreed,
        n_cyclic=n_agreed - n_acyclic,
        n_redundant=n_acyclic - len(rows),
        n_kept=len(rows),
        n_pairs=len(np.unique(np.concatenate([tails, heads]))),
    )
    return given[np.sort(rows)], report


def _pair_keys(comparisons: Int64Array) -> tuple[Int64Array, Int64Array]:
    """A number for each unordered pair: of the nearer, and of the farther ones."""
    # songs may be called by numbers whose products no int64 holds
    songs, places = np.unique(comparisons, return_inverse=True)
    low_first = np.sort(places.reshape(-1, 2, 2), axis=2)
    keys = low_first[:, :, 0] * len(songs) + low_first[:, :, 1]
    return keys[:, 0], keys[:, 1]


def _agreed(edges: Int64Array, opposites: Int64Array, counts: Int64Array, contradictions: str) -> BoolArray:
    """Mask of the sorted edges that stay where the opposite is among them too."""
    if contradictions == "keep" or len(edges) == 0:
        return np.ones(len(edges), np.bool_)
    places = np.minimum(np.searchsorted(edges, opposites), len(edges) - 1)
    is_opposed = edges[places] == opposites
    if contradictions == "drop":
        return ~is_opposed
    return ~is_opposed | (counts > counts[places])


def _acyclic(
    tails: Int64Array, heads: Int64Array, n_pairs: int, rng: np.random.Generator
) -> tuple[Int64Array, Int64Array]:
    """Places of the edges that a greedy acyclic subgraph takes, and its vertices in topological order."""
    # pairs that are mostly said to be the nearer ones come first: few edges run against this order
    out, into = np.bincount(tails, minlength=n_pairs), np.bincount(heads, minlength=n_pairs)
    order = np.argsort((into - out) / np.maximum(into + out, 1), kind="stable")
    position = np.empty(n_pairs, np.int64)
    position[order] = np.arange(n_pairs)
    drawn = rng.permutation(len(tails))
    taken = acyclic_edges(tails[drawn], heads[drawn], position)
    return np.sort(drawn[taken]), np.argsort(position)


def _irredundant(tails: Int64Array, heads: Int64Array, order: Int64Array) -> BoolArray:
    """Mask of the edges of an acyclic graph that are in its transitive reduction."""
    n = len(order)
    out, into = np.bincount(tails, minlength=n), np.bincount(heads, minlength=n)
    # an edge that another path replaces has company at both ends
    targets = np.unique(heads[(out[tails] > 1) & (into[heads] > 1)])
    columns = np.full(n, -1, np.int64)
    columns[targets] = np.arange(len(targets))
    by_tail = np.argsort(tails, kind="stable")
    start = np.concatenate([[0], np.cumsum(out)])
    n_words = max(1, min(_REACH_BYTES // (8 * max(n, 1)), 64, -(-len(targets) // 64)))
    kept = np.empty(len(tails), np.bool_)
    kept[by_tail] = ~redundant_edges(order, start, heads[by_tail], columns, len(targets), n_words)
    return kept
