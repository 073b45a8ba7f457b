"""Edges from what is known of the songs: the families of thesis section 7.6.2, and words for them.

Names: ``cluster-16:12``, ``listeners-64:3``, ``artist:Nora Vale``, ``tag:calm``, ``year:1994``,
``decade:1990-1999``, ``familiarity:high``, ``topic-3:7`` (7 is among the song's first three topics),
``uniform:all``; conjunctions ``tag:calm & decade:1990-1999``.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from musicsim.playlist.hypergraph import UNIFORM, Hypergraph, is_missing, name_parts

__all__ = ["build_edges", "describe_edge"]

_TOPIC_DEPTHS = (1, 3, 5)
_PAIRS_AT_ONCE = 2_000_000
_FAMILIARITY = {
    "low": "the least played third",
    "medium": "the middle third by plays",
    "high": "the most played third",
}

_Memberships = list[tuple[int, Hashable]]


class _Collector:
    """Gathers memberships (song, edge) and the names of the edges."""

    def __init__(self, n_songs: int) -> None:
        self.n_songs = n_songs
        self.names: list[str] = []
        self.songs: list[npt.NDArray[np.int64]] = []
        self.edges: list[npt.NDArray[np.int64]] = []

    def check_length(self, argument: str, values: Any) -> None:
        if len(values) != self.n_songs:
            raise ValueError(
                f"{argument} has {len(values)} entries for n_songs={self.n_songs}; give one a song"
            )

    def add(self, family: str, memberships: Iterable[tuple[int, Hashable]]) -> None:
        """Add one edge for each distinct value, in the order in which the values are first met."""
        column: dict[Hashable, int] = {}
        songs, edges = [], []
        for song, value in memberships:
            songs.append(song)
            edges.append(column.setdefault(value, len(self.names) + len(column)))
        self.names += [f"{family}:{value}" for value in column]
        self.songs.append(np.array(songs, dtype=np.int64))
        self.edges.append(np.array(edges, dtype=np.int64))

    def incidence(self) -> sparse.csr_array:
        songs = np.concatenate([np.empty(0, dtype=np.int64), *self.songs])
        edges = np.concatenate([np.empty(0, dtype=np.int64), *self.edges])
        ones = np.ones(songs.size, dtype=bool)
        return sparse.csr_array((ones, (songs, edges)), shape=(self.n_songs, len(self.names)))


def _add_clusters(to: _Collector, family: str, argument: str, clusters: Mapping[str, npt.ArrayLike]) -> None:
    for label, assignment in clusters.items():
        if not str(label) or any(c.isspace() or c in ":&" for c in str(label)):
            raise ValueError(f"{argument}: the label {label!r} may hold neither blanks nor ':' nor '&'")
        values = np.asarray(assignment)
        to.check_length(f"{argument}[{label!r}]", values)
        if values.dtype.kind not in "iu":
            raise ValueError(f"{argument}[{label!r}] must hold integers (-1: none), not {values.dtype}")
        inside = np.flatnonzero(values >= 0)
        to.add(f"{family}-{label}", zip(inside.tolist(), values[inside].tolist(), strict=True))


def _first_distinct(values: Iterable[Any], limit: int) -> list[Any]:
    kept = dict.fromkeys(value for value in values if not is_missing(value))
    return list(kept)[:limit]


def _add_years(to: _Collector, years: Sequence[Any]) -> None:
    to.check_length("years", years)
    # 0 stands for "unknown" in many tables, and no recording is as old as that
    dated = [(i, int(year)) for i, year in enumerate(years) if not is_missing(year) and int(year) > 0]
    decades: _Memberships = []
    for i, year in dated:
        for start in (year - year % 10, (year - 5) - (year - 5) % 10 + 5):
            decades.append((i, f"{start}-{start + 9}"))
    to.add("year", list(dated))
    to.add("decade", decades)


def _add_familiarity(to: _Collector, familiarity: npt.ArrayLike) -> None:
    plays = np.asarray(familiarity, dtype=np.float64)
    to.check_length("familiarity", plays)
    known = np.flatnonzero(np.isfinite(plays))
    if known.size == 0 or plays[known].min() == plays[known].max():
        return  # thirds of equal numbers say nothing of a song
    low, high = np.quantile(plays[known], [1 / 3, 2 / 3])
    # Thresholds, not ranks: equal plays share a third, even when the thirds then differ in size.
    third = np.where(plays[known] <= low, "low", np.where(plays[known] <= high, "medium", "high"))
    to.add("familiarity", zip(known.tolist(), third.tolist(), strict=True))


def _add_topics(to: _Collector, topics: Sequence[Sequence[Hashable]]) -> None:
    to.check_length("topics", topics)
    ordered = [_first_distinct(song, _TOPIC_DEPTHS[-1]) for song in topics]
    longest = max(map(len, ordered), default=0)
    shallower = 0
    for depth in _TOPIC_DEPTHS:
        if longest > shallower:  # otherwise these edges would repeat the shallower ones
            to.add(f"topic-{depth}", [(i, topic) for i, song in enumerate(ordered) for topic in song[:depth]])
        shallower = depth


def _kinds(names: list[str]) -> npt.NDArray[np.int64]:
    """Number the kinds of knowledge: clusters of any granularity are one, years and decades another."""
    code: dict[str, int] = {}
    kinds = []
    for name in names:
        kind = name.partition(":")[0].partition("-")[0]
        kinds.append(code.setdefault("era" if kind in ("year", "decade") else kind, len(code)))
    return np.array(kinds, dtype=np.int64)


def _kept_pairs(
    base: sparse.csr_array, kinds: npt.NDArray[np.int64], min_size: int, max_overlap: float
) -> npt.NDArray[np.int64]:
    """Return the keys first * n_edges + second, ascending, of the conjunctions worth keeping."""
    counts = base.astype(np.int32)
    common = sparse.triu(counts.T @ counts, k=1, format="coo")
    first, second = common.coords
    sizes = np.bincount(base.indices, minlength=base.shape[1])
    smaller = np.minimum(sizes[first], sizes[second])
    kept = (
        (kinds[first] != kinds[second]) & (common.data >= min_size) & (common.data <= max_overlap * smaller)
    )
    return np.sort(first[kept].astype(np.int64) * base.shape[1] + second[kept])


def _conjunctions(base: sparse.csr_array, keys: npt.NDArray[np.int64]) -> sparse.csr_array:
    """Return the memberships (n_songs, n_keys) in the pairs of edges named by the sorted `keys`.

    Songs of equal degree are done together, as rows of one table of their edges.
    """
    n_songs, n_edges = base.shape
    degrees = np.diff(base.indptr)
    songs, columns = [], []
    for degree in np.unique(degrees[degrees >= 2]):
        left, right = np.triu_indices(degree, k=1)
        rows = np.flatnonzero(degrees == degree)
        for block in np.array_split(rows, -(-rows.size * left.size // _PAIRS_AT_ONCE)):
            table = base.indices[base.indptr[block][:, None] + np.arange(degree)].astype(np.int64)
            wanted = table[:, left] * n_edges + table[:, right]
            place = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
            row, column = np.nonzero(keys[place] == wanted)
            songs.append(block[row])
            columns.append(place[row, column])
    found = (np.concatenate(songs), np.concatenate(columns))
    return sparse.csr_array((np.ones(found[0].size, dtype=bool), found), shape=(n_songs, keys.size))


def _with_conjunctions(
    base: sparse.csr_array, names: list[str], min_size: int, max_overlap: float
) -> tuple[sparse.csr_array, list[str]]:
    base.sort_indices()
    keys = _kept_pairs(base, _kinds(names), min_size, max_overlap)
    if keys.size == 0:
        return base, names
    joined = [f"{names[a]} & {names[b]}" for a, b in zip(*np.divmod(keys, len(names)), strict=True)]
    return sparse.csr_array(sparse.hstack([base, _conjunctions(base, keys)], format="csr")), names + joined


def _drop_small(
    incidence: sparse.csr_array, names: list[str], min_size: int
) -> tuple[sparse.csr_array, list[str], int]:
    large = np.flatnonzero(np.bincount(incidence.indices, minlength=len(names)) >= min_size)
    return sparse.csr_array(incidence[:, large]), [names[e] for e in large], len(names) - large.size


def build_edges(
    n_songs: int,
    *,
    clusters: Mapping[str, npt.ArrayLike] | None = None,
    artists: Sequence[str | None] | None = None,
    tags: Sequence[Sequence[str]] | None = None,
    years: Sequence[int | None] | None = None,
    familiarity: npt.ArrayLike | None = None,
    topics: Sequence[Sequence[Hashable]] | None = None,
    listener_clusters: Mapping[str, npt.ArrayLike] | None = None,
    uniform: bool = True,
    max_tags: int = 10,
    conjunctions: bool = False,
    min_size: int = 2,
    max_overlap: float = 0.5,
    song_weight: npt.ArrayLike | None = None,
) -> Hypergraph:
    """Build the hypergraph of a collection from whatever is known of its songs.

    Parameters
    ----------
    n_songs : int
    clusters, listener_clusters : mapping from a label to an int array of shape (n_songs,)
        The cluster of each song by sound, or by who listens to it; -1 for none. The label says how
        many clusters there are, as in ``{"16": ..., "64": ..., "256": ...}``.
    artists : sequence of str or None; None, blank and nan join no edge
    tags : sequence of sequences of str, a song's tags by falling weight; `max_tags` of them are used
    years : sequence of int or None
        The year, and the two half-overlapping decades that hold it: 1994 is in 1990-1999 and
        1985-1994. 0 and None are unknown.
    familiarity : array of shape (n_songs,), plays of each song (nan: unknown)
        Thirds low, medium and high. Equal plays share a third; if all are equal there are no edges.
    topics : sequence of sequences, a song's lyrics topics by falling weight
        One set of edges each for the first, the first three and the first five topics.
    uniform : bool
        Add the edge that holds every song.
    conjunctions : bool
        Add the intersections of all pairs of edges from different kinds of knowledge (clusters of
        every granularity are one kind, years and decades another).
    min_size : int >= 2
        Smaller edges and conjunctions are left out. The thesis uses n_songs / 256.
    max_overlap : float, 0 < max_overlap <= 1
        A conjunction that holds more than this share of either of its two edges is left out.
    song_weight : array of shape (n_songs,), positive, or None
        How likely a song is inside its edges; see `Hypergraph`.

    Returns
    -------
    Hypergraph

    Raises
    ------
    ValueError
        If an argument has not one entry a song, or some song is in no edge (only if not `uniform`).

    Notes
    -----
    Departures from the thesis: familiarity is cut into thirds rather than at the quartiles;
    conjunctions join different kinds only.
    """
    if min_size < 2:
        raise ValueError(f"min_size={min_size}; an edge needs at least 2 songs")
    if not 0 < max_overlap <= 1:
        raise ValueError(f"max_overlap={max_overlap} must lie in (0, 1]")
    if max_tags < 1:
        raise ValueError(f"max_tags={max_tags} must be at least 1")
    to = _Collector(n_songs)
    _add_clusters(to, "cluster", "clusters", clusters or {})
    _add_clusters(to, "listeners", "listener_clusters", listener_clusters or {})
    if artists is not None:
        to.check_length("artists", artists)
        to.add("artist", ((i, artist) for i, artist in enumerate(artists) if not is_missing(artist)))
    if tags is not None:
        to.check_length("tags", tags)
        to.add("tag", ((i, tag) for i, song in enumerate(tags) for tag in _first_distinct(song, max_tags)))
    if years is not None:
        _add_years(to, years)
    if familiarity is not None:
        _add_familiarity(to, familiarity)
    if topics is not None:
        _add_topics(to, topics)
    incidence, names, n_small = _drop_small(to.incidence(), to.names, min_size)
    if conjunctions and names:
        incidence, names = _with_conjunctions(incidence, names, min_size, max_overlap)
    if uniform:
        everyone = sparse.csr_array(np.ones((n_songs, 1), dtype=bool))
        incidence, names = sparse.hstack([incidence, everyone], format="csr"), [*names, UNIFORM]
    hypergraph = Hypergraph(incidence, names, song_weight)
    hypergraph.n_dropped += n_small
    return hypergraph


def _words(family: str, value: str) -> str:
    kind, _, label = family.partition("-")
    if kind == "cluster":
        return f"in cluster {value} (of {label})" if label else f"in cluster {value}"
    if kind == "listeners":
        return f"in listener group {value} (of {label})" if label else f"in listener group {value}"
    if kind == "topic":
        return (
            f"with topic {value} among the first {label}"
            if label not in ("", "1")
            else f"about topic {value}"
        )
    if kind == "familiarity":
        return f"in {_FAMILIARITY.get(value, value)}"
    before = {"artist": "by", "tag": "tagged", "year": "from", "decade": "from"}
    return f"{before[family]} {value}" if family in before else f"in {family} {value}".strip()


def describe_edge(name: str, *, both: bool = True) -> str:
    """Say in words what the songs of an edge share.

    Parameters
    ----------
    name : str, an edge's name as `build_edges` gives it; other families are read as "in family value"
    both : bool
        True speaks of two songs ("both tagged calm"), False of one ("tagged calm").

    Examples
    --------
    >>> describe_edge("tag:calm & decade:1990-1999")
    'both tagged calm and from 1990-1999'
    >>> describe_edge("cluster-16:12", both=False)
    'in cluster 12 (of 16)'
    """
    if name == UNIFORM:
        return "anywhere in the collection"
    words = " and ".join(_words(family, value) for family, value in name_parts(name))
    return f"both {words}" if both else words
