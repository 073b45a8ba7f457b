"""Edges from data about songs (the families in section 7.6.2 of the thesis), and descriptions of edges.

Examples of edge names:

- ``cluster-16:12``, ``listeners-64:3``, ``company-256b:12`` (group 12 of the second grouping into 256)
- ``near-300:17`` (the 300 songs around song 17)
- ``artist:Nora Vale``, ``album:Nora Vale, Tides``, ``playlist:Sunday morning``
- ``tag:calm``, ``year:1994``, ``decade:1990-1999``, ``familiarity:high``
- ``topic-3:7`` (7 is among the song's first three topics); with words, ``topic-3:7 love heart night``
- ``uniform:all``, and conjunctions such as ``tag:calm & decade:1990-1999``
"""

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from musicsim._arrays import Int64Array, IntegerArray
from musicsim._checks import check_whole
from musicsim.playlist.hypergraph import UNIFORM, Hypergraph, is_missing, name_parts

_TOPIC_DEPTHS = (1, 3, 5)
_PAIRS_PER_BLOCK = 2_000_000
_FAMILIARITY = {"low": "the least played third", "medium": "the middle third by plays", "high": "the most played third"}

# Kind of knowledge of each family. Every other family is its own kind.
_KINDS = {"cluster": "audio", "near": "company", "year": "era", "decade": "era", "topic": "lyrics"}
_GROUPS = {
    "cluster": ("with similar sound", "cluster"),
    "listeners": ("played by the same listeners", "group"),
    "company": ("in playlists with the same songs", "group"),
}
# "256b" is the second grouping into 256 groups
_REPEATED = re.compile(r"(\d+)([a-z])")
_PHRASES = {
    "artist": "by {}",
    "album": "on the album “{}”",
    "playlist": "in the playlist “{}”",
    "tag": "tagged {}",
    "year": "from {}",
    "decade": "from {}",
}


def _escape(value: Hashable) -> str:
    """Return the value as a string that cannot be mistaken for a conjunction inside a name."""
    text = str(value)
    is_joint = " & " in text and len(name_parts(f"x:{text}")) > 1
    return text.replace(" & ", " and ") if is_joint else text


class _Collector:
    """Collects memberships (song, edge) and the names of edges."""

    def __init__(self, n_songs: int) -> None:
        self.n_songs = n_songs
        self.names: list[str] = []
        self.songs: list[Int64Array] = []
        self.edges: list[Int64Array] = []

    def check_length(self, argument: str, values: Any) -> None:
        if len(values) != self.n_songs:
            raise ValueError(f"{argument} has {len(values)} entries for n_songs={self.n_songs}: pass one per song")

    def add(self, family: str, memberships: Iterable[tuple[int, Hashable]]) -> None:
        """Add an edge for each distinct value, in order of first occurrence."""
        column: dict[str, int] = {}
        songs, edges = [], []
        for song, value in memberships:
            songs.append(song)
            edges.append(column.setdefault(_escape(value), len(self.names) + len(column)))
        self.names += [f"{family}:{value}" for value in column]
        self.songs.append(np.array(songs, dtype=np.int64))
        self.edges.append(np.array(edges, dtype=np.int64))

    def add_numbers(
        self, family: str, songs: Int64Array, values: IntegerArray, label: Callable[[int], str] = str
    ) -> None:
        """Add integers as :meth:`add` does; `label` converts them to strings for the names."""
        distinct, first, inverse = np.unique(values, return_index=True, return_inverse=True)
        order = np.argsort(first)
        column = np.empty_like(order)
        column[order] = np.arange(len(order))
        self.songs.append(songs)
        self.edges.append(column[inverse] + len(self.names))
        self.names += [f"{family}:{label(value)}" for value in distinct[order].tolist()]

    def incidence(self) -> sparse.csr_array:
        nothing = np.empty(0, dtype=np.int64)
        songs, edges = np.concatenate([nothing, *self.songs]), np.concatenate([nothing, *self.edges])
        ones = np.ones(songs.size, dtype=bool)
        return sparse.csr_array((ones, (songs, edges)), shape=(self.n_songs, len(self.names)))


def _add_clusters(collector: _Collector, family: str, argument: str, clusters: Mapping[str, npt.ArrayLike]) -> None:
    for label, assignment in clusters.items():
        if not str(label) or any(c.isspace() or c in ":&" for c in str(label)):
            raise ValueError(f"{argument}: the label {label!r} must not be empty or contain blanks, ':' or '&'")
        values = np.asarray(assignment)
        collector.check_length(f"{argument}[{label!r}]", values)
        if values.dtype.kind not in "iu":
            raise ValueError(f"{argument}[{label!r}] must contain integers (-1 for none), not {values.dtype}")
        members = np.flatnonzero(values >= 0)
        collector.add_numbers(f"{family}-{label}", members, values[members])


def _add_playlists(collector: _Collector, playlists: Mapping[str, Sequence[int]]) -> None:
    members: list[tuple[int, Hashable]] = []
    for name, songs in playlists.items():
        if is_missing(name):
            raise ValueError("playlists has a blank name: give each playlist a name")
        rows = np.unique(np.asarray(songs))
        if rows.size and (rows.dtype.kind not in "iu" or rows[0] < 0 or rows[-1] >= collector.n_songs):
            raise ValueError(f"playlists[{name!r}] must contain song rows (int) from 0 to {collector.n_songs - 1}")
        members += [(song, name) for song in rows.tolist()]
    collector.add("playlist", members)


def _first_distinct(values: Iterable[Any], limit: int) -> list[Any]:
    return list(dict.fromkeys(value for value in values if not is_missing(value)))[:limit]


def _add_years(collector: _Collector, years: Sequence[Any]) -> None:
    collector.check_length("years", years)
    # in many tables, 0 means that the year is unknown
    all_years = np.array([0 if is_missing(year) else int(year) for year in years], dtype=np.int64)
    dated = np.flatnonzero(all_years > 0)
    year = all_years[dated]
    starts = np.column_stack([year - year % 10, (year - 5) - (year - 5) % 10 + 5])
    collector.add_numbers("year", dated, year)
    collector.add_numbers("decade", np.repeat(dated, 2), starts.ravel(), lambda start: f"{start}-{start + 9}")


def _add_familiarity(collector: _Collector, familiarity: npt.ArrayLike) -> None:
    plays = np.asarray(familiarity, dtype=np.float64)
    collector.check_length("familiarity", plays)
    known = np.flatnonzero(np.isfinite(plays))
    if known.size == 0 or plays[known].min() == plays[known].max():
        return  # splitting equal numbers would be arbitrary
    low, high = np.quantile(plays[known], [1 / 3, 2 / 3])
    # thresholds instead of ranks, so that equal plays are in the same third, even if thirds then differ in size
    third = np.where(plays[known] <= low, "low", np.where(plays[known] <= high, "medium", "high"))
    collector.add("familiarity", zip(known.tolist(), third.tolist(), strict=True))


def _add_topics(
    collector: _Collector, topics: Sequence[Sequence[Hashable]], topic_words: Mapping[Hashable, str]
) -> None:
    collector.check_length("topics", topics)
    for topic, words in topic_words.items():
        if ":" in words or "&" in words:
            raise ValueError(f"topic_words[{topic!r}]={words!r} must not contain ':' or '&'.")
    labels = {topic: f"{topic} {' '.join(words.split())}".strip() for topic, words in topic_words.items()}
    ordered = [[labels.get(topic, topic) for topic in _first_distinct(song, _TOPIC_DEPTHS[-1])] for song in topics]
    longest = max(map(len, ordered), default=0)
    shallower = 0
    for depth in _TOPIC_DEPTHS:
        if longest > shallower:  # otherwise, these edges would be the same as those of the previous depth
            collector.add(f"topic-{depth}", [(i, topic) for i, song in enumerate(ordered) for topic in song[:depth]])
        shallower = depth


def _kind(family: str) -> str:
    """Return the kind of knowledge of a family, which is the same for all granularities."""
    base = family.partition("-")[0]
    return _KINDS.get(base, base)


def _select_conjunctions(
    base: sparse.csr_array, kinds: npt.NDArray[np.str_], min_size: int, max_overlap: float
) -> Int64Array:
    """Return the ascending keys, first * n_edges + second, of the conjunctions to add."""
    counts = base.astype(np.int32)
    common = sparse.triu(counts.T @ counts, k=1, format="coo")
    first, second = common.coords
    sizes = np.bincount(base.indices, minlength=base.shape[1])
    smaller = np.minimum(sizes[first], sizes[second])
    # two groups by co-occurrence ("company") are not joined, because they come from the same playlists
    joinable = (kinds[first] != kinds[second]) | (kinds[first] != "company")
    selected = joinable & (common.data >= min_size) & (common.data <= max_overlap * smaller)
    return np.sort(first[selected].astype(np.int64) * base.shape[1] + second[selected])


def _conjunctions(base: sparse.csr_array, keys: Int64Array) -> sparse.csr_array:
    """Return the memberships (n_songs, n_keys) of songs in the conjunctions with the sorted `keys`."""
    n_songs, n_edges = base.shape
    degrees = np.diff(base.indptr)
    songs, columns = [], []
    for degree in np.unique(degrees[degrees >= 2]):
        left, right = np.triu_indices(degree, k=1)
        rows = np.flatnonzero(degrees == degree)
        for block in np.array_split(rows, -(-rows.size * left.size // _PAIRS_PER_BLOCK)):
            table = base.indices[base.indptr[block][:, None] + np.arange(degree)].astype(np.int64)
            wanted = table[:, left] * n_edges + table[:, right]
            index = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
            row, column = np.nonzero(keys[index] == wanted)
            songs.append(block[row])
            columns.append(index[row, column])
    at = (np.concatenate(songs), np.concatenate(columns))
    return sparse.csr_array((np.ones(at[0].size, dtype=bool), at), shape=(n_songs, keys.size))


def _add_conjunctions(
    base: sparse.csr_array, names: list[str], min_size: int, max_overlap: float
) -> tuple[sparse.csr_array, list[str]]:
    base.sort_indices()
    kinds = np.array([_kind(name.partition(":")[0]) for name in names], dtype=np.str_)
    keys = _select_conjunctions(base, kinds, min_size, max_overlap)
    if keys.size == 0:
        return base, names
    joined = [f"{names[a]} & {names[b]}" for a, b in zip(*np.divmod(keys, len(names)), strict=True)]
    return sparse.csr_array(sparse.hstack([base, _conjunctions(base, keys)], format="csr")), names + joined


def _neighbor_edges(
    n_songs: int, neighbors: npt.ArrayLike, song_names: Sequence[str] | None
) -> tuple[sparse.csr_array, list[str]]:
    """Return an edge for each song with two or more neighbors, and the names of these edges."""
    table = np.asarray(neighbors)
    if table.ndim != 2 or len(table) != n_songs or table.dtype.kind not in "iu" or table.max(initial=-1) >= n_songs:
        raise ValueError(f"cooccurrence_neighbors must contain song rows (int) and have shape ({n_songs}, k)")
    if song_names is not None and len(song_names) != n_songs:
        raise ValueError(f"song_names has {len(song_names)} entries for n_songs={n_songs}: pass one per song")
    known = table >= 0
    around = np.flatnonzero(known.sum(axis=1) >= 2)
    column = np.repeat(np.arange(around.size), known[around].sum(axis=1))
    members = table[around][known[around]]
    incidence = sparse.csr_array((np.ones(members.size, dtype=bool), (members, column)), (n_songs, around.size))
    labels = [str(row) if song_names is None else f"{row} {_escape(song_names[row])}" for row in around.tolist()]
    return incidence, [f"near-{table.shape[1]}:{label}" for label in labels]


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
    topic_words: Mapping[Hashable, str] | None = None,
    listener_clusters: Mapping[str, npt.ArrayLike] | None = None,
    cooccurrence_clusters: Mapping[str, npt.ArrayLike] | None = None,
    cooccurrence_neighbors: npt.ArrayLike | None = None,
    song_names: Sequence[str] | None = None,
    albums: Sequence[str | None] | None = None,
    playlists: Mapping[str, Sequence[int]] | None = None,
    uniform: bool = True,
    max_tags: int = 10,
    conjunctions: bool = False,
    min_size: int = 2,
    min_joint_size: int | None = None,
    max_overlap: float = 0.5,
    song_weight: npt.ArrayLike | None = None,
) -> Hypergraph:
    """Build the hypergraph of a library from data about its songs.

    Parameters
    ----------
    clusters, listener_clusters, cooccurrence_clusters : mapping from a label to an int array of shape (n_songs,)
        The cluster of each song by sound, by its listeners (from `listener_clusters`), or by the songs near it in
        playlists (from `group_vectors`); -1 for none. The label is the number of clusters, as in
        ``{"16": ..., "64": ..., "64b": ...}``.
    cooccurrence_neighbors : int array of shape (n_songs, k), or None
        The neighbors of each song (from `nearest_by_direction`), including the song; -1 for none. There is one edge per
        song, of any size; these edges are not joined with others.
    song_names : sequence of str, one per song, or None
        Names of the songs to use in the names of these edges; default is their row.
    artists, albums : sequence of str or None; songs with None, blank or nan belong to no edge
        Albums with the same name are one edge; to separate them, prefix the artist's name.
    tags : sequence of sequences of str; each song's tags by decreasing weight; the first `max_tags` are used
    years : sequence of int or None
        Edges are the year and two half-overlapping decades, such as 1990-1999 and 1985-1994. 0 and None mean unknown.
    familiarity : array-like of shape (n_songs,); number of plays of each song, nan if unknown
        Edges are the thirds low, medium and high. Equal plays are in the same third; if all are equal, there are none.
    topics : sequence of sequences; each song's lyrics topics by decreasing weight
        There is one set of edges each for the first topic, the first three and the first five topics.
    topic_words : mapping from a topic (int) to a few words separated by blanks
        The words become part of the names of edges, for `describe_edge`.
    playlists : mapping from a name to a sequence of song rows
        The user's own playlists. Omit playlists to which the model is fitted: an edge with just a playlist's songs
        explains each of its transitions, but no other playlist.
    uniform : bool; add the edge with all songs
    conjunctions : bool; add the intersections of all pairs of edges, except pairs of co-occurrence clusters
    min_size : int >= 2; minimum size of edges and conjunctions; the thesis uses n_songs / 256
    min_joint_size : int >= 2, or None; minimum size of conjunctions, if different
    max_overlap : float, 0 < max_overlap <= 1
        A conjunction that contains more than this share of either of its two edges is dropped.
    song_weight : array of shape (n_songs,), positive, or None; weight of a song within its edges; see `Hypergraph`

    Raises
    ------
    ValueError
        If a song is in no edge.

    Notes
    -----
    For 100,000 songs with 10,550 edges, most of them conjunctions, and 148 memberships per song, the peak memory is 0.7
    GB. It grows with the memberships and with the square of the number of edges that are not conjunctions (12 bytes per
    pair of edges with common songs).

    As a departure from the thesis, familiarity is split into thirds instead of at the quartiles.

    Examples
    --------
    >>> from musicsim.playlist import build_edges
    >>> graph = build_edges(4, tags=[["calm"], ["calm"], ["loud"], []], years=[1994, 1990, 1996, None])
    >>> graph.names
    ['tag:calm', 'decade:1990-1999', 'decade:1985-1994', 'uniform:all']
    >>> graph.n_dropped  # sets with only one song explain no step
    5
    """
    min_joint_size = min_size if min_joint_size is None else min_joint_size
    if min(min_size, min_joint_size) < 2:
        raise ValueError(f"min_size={min_size} and min_joint_size={min_joint_size} must both be at least 2")
    if not 0 < max_overlap <= 1:
        raise ValueError(f"max_overlap={max_overlap} must be in (0, 1]")
    check_whole("max_tags", max_tags, 1)
    collector = _Collector(n_songs)
    _add_clusters(collector, "cluster", "clusters", clusters or {})
    _add_clusters(collector, "listeners", "listener_clusters", listener_clusters or {})
    _add_clusters(collector, "company", "cooccurrence_clusters", cooccurrence_clusters or {})
    for family, labels in (("artist", artists), ("album", albums)):
        if labels is not None:
            collector.check_length(f"{family}s", labels)
            collector.add(family, ((i, label) for i, label in enumerate(labels) if not is_missing(label)))
    _add_playlists(collector, playlists or {})
    if tags is not None:
        collector.check_length("tags", tags)
        collector.add("tag", ((i, tag) for i, song in enumerate(tags) for tag in _first_distinct(song, max_tags)))
    if years is not None:
        _add_years(collector, years)
    if familiarity is not None:
        _add_familiarity(collector, familiarity)
    if topics is not None:
        _add_topics(collector, topics, topic_words or {})
    incidence, names, n_small = _drop_small(collector.incidence(), collector.names, min_size)
    if conjunctions and names:
        incidence, names = _add_conjunctions(incidence, names, min_joint_size, max_overlap)
    if cooccurrence_neighbors is not None:
        near, near_names = _neighbor_edges(n_songs, cooccurrence_neighbors, song_names)
        incidence, names = sparse.hstack([incidence, near], format="csr"), [*names, *near_names]
    if uniform:
        all_songs = sparse.csr_array(np.ones((n_songs, 1), dtype=bool))
        incidence, names = sparse.hstack([incidence, all_songs], format="csr"), [*names, UNIFORM]
    hypergraph = Hypergraph(incidence, names, song_weight)
    hypergraph.n_dropped += n_small
    return hypergraph


def edge_families(names: Iterable[str]) -> list[tuple[str, ...]]:
    """Return the kinds of knowledge behind each edge: one kind, or the kinds of all parts of a conjunction.

    Kinds are "audio", "listeners", "company" (co-occurrence), "era", "familiarity", "lyrics", "tag", "artist", "album",
    "playlist" and "uniform". Every other family is its own kind.

    Examples
    --------
    >>> from musicsim.playlist import edge_families
    >>> edge_families(["cluster-16:3", "tag:calm & year:1994"])
    [('audio',), ('tag', 'era')]
    """
    return [tuple(dict.fromkeys(_kind(family) for family, _ in name_parts(name))) for name in names]


def _describe_topic(depth: str, value: str) -> str:
    number, _, words = value.partition(" ")
    about = ", ".join(words.split()) if words and number.isdigit() else f"topic {value}"
    return f"about {about}" if depth in ("", "1") else f"with {about} among the first {depth} topics"


def _describe_part(family: str, value: str, called: Callable[[str, str], str | None] | None) -> str:
    kind, _, label = family.partition("-")
    if kind in _GROUPS:
        repeated = _REPEATED.fullmatch(label)
        size, letter = repeated.groups() if repeated else (label, "")
        words, group = _GROUPS[kind]
        name = called(family, value) if called else ""
        if name is None:
            return words
        number = f"{group} {value}{letter} of {size}" if size else f"{group} {value}"
        return f"{words} ({name or number})"
    if kind == "topic":
        return _describe_topic(label, value)
    if kind == "near":
        row, _, title = value.partition(" ")
        song = (called(family, value) if called else "") or (f"“{title}”" if title else f"song {row}")
        return f"in playlists with {song}"
    if kind == "familiarity":
        return f"in {_FAMILIARITY.get(value, value)}"
    return _PHRASES[family].format(value) if family in _PHRASES else f"in {family} {value}".strip()


def describe_edge(name: str, *, both: bool = True, called: Callable[[str, str], str | None] | None = None) -> str:
    """Describe in words what the songs of an edge share.

    Parameters
    ----------
    name : str; the name of an edge from `build_edges`; other families are described as "in family value"
    both : bool; describe two songs ("both tagged calm") or one ("tagged calm")
    called : callable (family, value) -> name of a group of songs, "" to use its number, None for neither; optional.
        For a song's neighborhood, it returns the name of the song; "" and None stand for the title in the edge's name.

    Examples
    --------
    >>> from musicsim.playlist import describe_edge
    >>> describe_edge("tag:calm & decade:1990-1999")
    'both tagged calm and from 1990-1999'
    >>> describe_edge("cluster-16:12", both=False)
    'with similar sound (cluster 12 of 16)'
    """
    if name == UNIFORM:
        return "random jump"
    words = " and ".join(_describe_part(family, value, called) for family, value in name_parts(name))
    return f"both {words}" if both else words
