"""Edges from what is known of the songs: the families of thesis section 7.6.2, and words for them.

Names: ``cluster-16:12``, ``listeners-64:3``, ``company-256b:12`` (the second grouping into 256),
``artist:Nora Vale``, ``album:Nora Vale, Tides``, ``near-300:17`` (the 300 songs around song 17),
``playlist:Sunday morning``, ``tag:calm``, ``year:1994``,
``decade:1990-1999``, ``familiarity:high``, ``topic-3:7`` (7 is among the song's first three topics; with words
``topic-3:7 love heart night``), ``uniform:all``; conjunctions ``tag:calm & decade:1990-1999``.
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
_PAIRS_AT_ONCE = 2_000_000
_FAMILIARITY = {"low": "the least played third", "medium": "the middle third by plays", "high": "the most played third"}

# Families that go by another name as a kind of knowledge; the rest are called as they are.
_KINDS = {"cluster": "audio", "near": "company", "year": "era", "decade": "era", "topic": "lyrics"}
_GROUPS = {
    "cluster": ("with similar sound", "cluster"),
    "listeners": ("played by the same people", "group"),
    "company": ("in playlists with the same songs", "group"),
}
# "256b": the second of the groupings into 256
_REPEATED = re.compile(r"(\d+)([a-z])")
_BEFORE = {
    "artist": "by",
    "album": "on the album",
    "playlist": "in the playlist",
    "tag": "tagged",
    "year": "from",
    "decade": "from",
}

_Memberships = list[tuple[int, Hashable]]


def _unjoined(value: Hashable) -> str:
    """Return the value as text that no name reads as a conjunction."""
    text = str(value)
    is_joint = " & " in text and len(name_parts(f"x:{text}")) > 1
    return text.replace(" & ", " and ") if is_joint else text


class _Collector:
    """Gathers memberships (song, edge) and the names of the edges."""

    def __init__(self, n_songs: int) -> None:
        self.n_songs = n_songs
        self.names: list[str] = []
        self.songs: list[Int64Array] = []
        self.edges: list[Int64Array] = []

    def check_length(self, argument: str, values: Any) -> None:
        if len(values) != self.n_songs:
            raise ValueError(f"{argument} has {len(values)} entries for n_songs={self.n_songs}; give one a song")

    def add(self, family: str, memberships: Iterable[tuple[int, Hashable]]) -> None:
        """Add one edge for each distinct value, in the order in which the values are first met."""
        column: dict[str, int] = {}
        songs, edges = [], []
        for song, value in memberships:
            songs.append(song)
            edges.append(column.setdefault(_unjoined(value), len(self.names) + len(column)))
        self.names += [f"{family}:{value}" for value in column]
        self.songs.append(np.array(songs, dtype=np.int64))
        self.edges.append(np.array(edges, dtype=np.int64))

    def add_numbers(
        self, family: str, songs: Int64Array, values: IntegerArray, label: Callable[[int], str] = str
    ) -> None:
        """`add` for whole numbers, which `label` turns into the values of the names."""
        known, first, place = np.unique(values, return_index=True, return_inverse=True)
        order = np.argsort(first)
        column = np.empty_like(order)
        column[order] = np.arange(len(order))
        self.songs.append(songs)
        self.edges.append(column[place] + len(self.names))
        self.names += [f"{family}:{label(value)}" for value in known[order].tolist()]

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
        to.add_numbers(f"{family}-{label}", inside, values[inside])


def _add_labels(to: _Collector, family: str, argument: str, labels: Sequence[str | None]) -> None:
    to.check_length(argument, labels)
    to.add(family, ((i, label) for i, label in enumerate(labels) if not is_missing(label)))


def _add_playlists(to: _Collector, playlists: Mapping[str, Sequence[int]]) -> None:
    members: _Memberships = []
    for name, songs in playlists.items():
        if is_missing(name):
            raise ValueError("playlists: a name is blank; give each playlist one")
        rows = np.unique(np.asarray(songs))
        if rows.size and (rows.dtype.kind not in "iu" or rows[0] < 0 or rows[-1] >= to.n_songs):
            raise ValueError(f"playlists[{name!r}] must hold song rows (int) from 0 to {to.n_songs - 1}")
        members += [(song, name) for song in rows.tolist()]
    to.add("playlist", members)


def _first_distinct(values: Iterable[Any], limit: int) -> list[Any]:
    kept = dict.fromkeys(value for value in values if not is_missing(value))
    return list(kept)[:limit]


def _add_years(to: _Collector, years: Sequence[Any]) -> None:
    to.check_length("years", years)
    known = [0 if is_missing(year) else int(year) for year in years]
    # 0 stands for "unknown" in many tables, and no recording is as old as that
    dated = np.flatnonzero(np.maximum(np.array(known, dtype=np.int64), 0))
    year = np.array(known, dtype=np.int64)[dated]
    starts = np.column_stack([year - year % 10, (year - 5) - (year - 5) % 10 + 5])
    to.add_numbers("year", dated, year)
    to.add_numbers("decade", np.repeat(dated, 2), starts.ravel(), lambda start: f"{start}-{start + 9}")


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


def _add_topics(to: _Collector, topics: Sequence[Sequence[Hashable]], topic_words: Mapping[Hashable, str]) -> None:
    to.check_length("topics", topics)
    for topic, words in topic_words.items():
        if ":" in words or "&" in words:
            raise ValueError(f"topic_words[{topic!r}] may hold neither ':' nor '&', unlike {words!r}")
    labels = {topic: f"{topic} {' '.join(words.split())}".strip() for topic, words in topic_words.items()}
    ordered = [[labels.get(topic, topic) for topic in _first_distinct(song, _TOPIC_DEPTHS[-1])] for song in topics]
    longest = max(map(len, ordered), default=0)
    shallower = 0
    for depth in _TOPIC_DEPTHS:
        if longest > shallower:  # otherwise these edges would repeat the shallower ones
            to.add(f"topic-{depth}", [(i, topic) for i, song in enumerate(ordered) for topic in song[:depth]])
        shallower = depth


def _kind(family: str) -> str:
    """Return the kind of knowledge: clusters of any granularity are one, years and decades another."""
    base = family.partition("-")[0]
    return _KINDS.get(base, base)


def _kept_pairs(base: sparse.csr_array, kinds: npt.NDArray[np.str_], min_size: int, max_overlap: float) -> Int64Array:
    """Return the keys first * n_edges + second, ascending, of the conjunctions worth keeping.

    Groups by company are the same knowledge cut several times: two of them have nothing to say together.
    """
    counts = base.astype(np.int32)
    common = sparse.triu(counts.T @ counts, k=1, format="coo")
    first, second = common.coords
    sizes = np.bincount(base.indices, minlength=base.shape[1])
    smaller = np.minimum(sizes[first], sizes[second])
    joinable = (kinds[first] != kinds[second]) | (kinds[first] != "company")
    kept = joinable & (common.data >= min_size) & (common.data <= max_overlap * smaller)
    return np.sort(first[kept].astype(np.int64) * base.shape[1] + second[kept])


def _conjunctions(base: sparse.csr_array, keys: Int64Array) -> sparse.csr_array:
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
    kinds = np.array([_kind(name.partition(":")[0]) for name in names], dtype=np.str_)
    keys = _kept_pairs(base, kinds, min_size, max_overlap)
    if keys.size == 0:
        return base, names
    joined = [f"{names[a]} & {names[b]}" for a, b in zip(*np.divmod(keys, len(names)), strict=True)]
    return sparse.csr_array(sparse.hstack([base, _conjunctions(base, keys)], format="csr")), names + joined


def _neighbours(
    n_songs: int, neighbours: npt.ArrayLike, song_names: Sequence[str] | None
) -> tuple[sparse.csr_array, list[str]]:
    """Return the edge of each song's neighbours, where it has two members at least, and their names."""
    table = np.asarray(neighbours)
    if table.ndim != 2 or len(table) != n_songs or table.dtype.kind not in "iu" or table.max(initial=-1) >= n_songs:
        raise ValueError(f"cooccurrence_neighbours must be song rows (int) of shape ({n_songs}, k)")
    if song_names is not None and len(song_names) != n_songs:
        raise ValueError(f"song_names has {len(song_names)} entries for n_songs={n_songs}; give one a song")
    known = table >= 0
    around = np.flatnonzero(known.sum(axis=1) >= 2)
    column = np.repeat(np.arange(around.size), known[around].sum(axis=1))
    members = table[around][known[around]]
    incidence = sparse.csr_array((np.ones(members.size, dtype=bool), (members, column)), (n_songs, around.size))
    called = [str(row) if song_names is None else f"{row} {_unjoined(song_names[row])}" for row in around.tolist()]
    return incidence, [f"near-{table.shape[1]}:{name}" for name in called]


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
    cooccurrence_neighbours: npt.ArrayLike | None = None,
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
    """Build the hypergraph of a collection from whatever is known of its songs.

    Parameters
    ----------
    clusters, listener_clusters, cooccurrence_clusters : mapping from a label to an int array of shape (n_songs,)
        The cluster of each song by sound, by who listens to it (`listener_clusters` makes them from
        plays), or by the songs it is played with (`cooccurrence_clusters` makes them from playlists); -1 for
        none. The label says how many clusters there are, as in ``{"16": ..., "64": ..., "64b": ...}``.
    cooccurrence_neighbours : int array of shape (n_songs, k), or None
        The songs around each song by company, itself among them, -1 for none: an edge a song. They are in no
        conjunction, however small or large.
    song_names : sequence of str, one a song, or None
        What the songs are called in the names of these edges; their row by default.
    artists, albums : sequence of str or None; None, blank and nan join no edge
        Albums of the same name are one edge: put the artist's name before where they are not.
    tags : sequence of sequences of str, a song's tags by falling weight; `max_tags` of them are used
    years : sequence of int or None
        The year, and the two half-overlapping decades that hold it: 1994 is in 1990-1999 and
        1985-1994. 0 and None are unknown.
    familiarity : array of shape (n_songs,), plays of each song (nan: unknown)
        Thirds low, medium and high. Equal plays share a third; if all are equal there are no edges.
    topics : sequence of sequences, a song's lyrics topics by falling weight
        One set of edges each for the first, the first three and the first five topics.
    topic_words : mapping from a topic (int) to a few words with blanks between them
        Join the names of the edges, so that `describe_edge` can tell what a topic is about.
    playlists : mapping from a name to a sequence of song rows
        The user's own playlists. To be left out where the model is fitted to the same ones: an edge
        of just these songs explains each of its transitions, and no other playlist.
    uniform : bool
        Add the edge that holds every song.
    conjunctions : bool
        Add the intersections of all pairs of edges, but for two groups by company and for neighbours.
    min_size : int >= 2
        Smaller edges and conjunctions are left out. The thesis uses n_songs / 256.
    min_joint_size : int >= 2, or None
        Of conjunctions, where it is another.
    max_overlap : float, 0 < max_overlap <= 1
        A conjunction that holds more than this share of either of its two edges is left out.
    song_weight : array of shape (n_songs,), positive, or None
        How likely a song is inside its edges; see `Hypergraph`.

    Raises
    ------
    ValueError
        If an argument has not one entry a song, names or rows cannot be used, or some song is in no edge
        (only if not `uniform`).

    Notes
    -----
    Memory: 100,000 songs with 10,550 edges, most of them conjunctions, and 148 memberships a song take 0.7 GB
    at the peak; it grows with the memberships, and with the square of the number of edges that are
    no conjunctions (12 bytes for each pair of them that has songs in common).

    Departure from the thesis: familiarity is cut into thirds rather than at the quartiles.
    """
    min_joint_size = min_size if min_joint_size is None else min_joint_size
    if min(min_size, min_joint_size) < 2:
        raise ValueError(f"min_size={min_size}, min_joint_size={min_joint_size}: an edge needs at least 2 songs")
    if not 0 < max_overlap <= 1:
        raise ValueError(f"max_overlap={max_overlap} must lie in (0, 1]")
    check_whole("max_tags", max_tags, 1)
    to = _Collector(n_songs)
    _add_clusters(to, "cluster", "clusters", clusters or {})
    _add_clusters(to, "listeners", "listener_clusters", listener_clusters or {})
    _add_clusters(to, "company", "cooccurrence_clusters", cooccurrence_clusters or {})
    if artists is not None:
        _add_labels(to, "artist", "artists", artists)
    if albums is not None:
        _add_labels(to, "album", "albums", albums)
    _add_playlists(to, playlists or {})
    if tags is not None:
        to.check_length("tags", tags)
        to.add("tag", ((i, tag) for i, song in enumerate(tags) for tag in _first_distinct(song, max_tags)))
    if years is not None:
        _add_years(to, years)
    if familiarity is not None:
        _add_familiarity(to, familiarity)
    if topics is not None:
        _add_topics(to, topics, topic_words or {})
    incidence, names, n_small = _drop_small(to.incidence(), to.names, min_size)
    if conjunctions and names:
        incidence, names = _with_conjunctions(incidence, names, min_joint_size, max_overlap)
    if cooccurrence_neighbours is not None:
        near, near_names = _neighbours(n_songs, cooccurrence_neighbours, song_names)
        incidence, names = sparse.hstack([incidence, near], format="csr"), [*names, *near_names]
    if uniform:
        everyone = sparse.csr_array(np.ones((n_songs, 1), dtype=bool))
        incidence, names = sparse.hstack([incidence, everyone], format="csr"), [*names, UNIFORM]
    hypergraph = Hypergraph(incidence, names, song_weight)
    hypergraph.n_dropped += n_small
    return hypergraph


def edge_families(names: Iterable[str]) -> list[tuple[str, ...]]:
    """Return the kinds of knowledge that each edge draws on: one, or those of a conjunction's parts.

    "audio", "listeners", "company", "era", "familiarity", "lyrics", "tag", "artist", "album", "playlist" and
    "uniform"; a family that `build_edges` does not know is its own kind.

    Examples
    --------
    >>> edge_families(["cluster-16:3", "tag:calm & year:1994"])
    [('audio',), ('tag', 'era')]
    """
    return [tuple(dict.fromkeys(_kind(family) for family, _ in name_parts(name))) for name in names]


def _topic_words(depth: str, value: str) -> str:
    number, _, words = value.partition(" ")
    if words and number.isdigit():
        about = ", ".join(words.split())
        return f"with {about} among the first {depth} topics" if depth not in ("", "1") else f"about {about}"
    return f"with topic {value} among the first {depth}" if depth not in ("", "1") else f"about topic {value}"


def _words(family: str, value: str, called: Callable[[str, str], str] | None) -> str:
    kind, _, label = family.partition("-")
    if kind in _GROUPS:
        repeated = _REPEATED.fullmatch(label)
        size, letter = repeated.groups() if repeated else (label, "")
        words, group = _GROUPS[kind]
        name = called(family, value) if called else ""
        number = f"{group} {value}{letter} of {size}" if size else f"{group} {value}"
        return f"{words} ({name or number})"
    if kind == "topic":
        return _topic_words(label, value)
    if kind == "near":
        row, _, title = value.partition(" ")
        return f"in playlists with {title or f'song {row}'}"
    if kind == "familiarity":
        return f"in {_FAMILIARITY.get(value, value)}"
    return f"{_BEFORE[family]} {value}" if family in _BEFORE else f"in {family} {value}".strip()


def describe_edge(name: str, *, both: bool = True, called: Callable[[str, str], str] | None = None) -> str:
    """Say in words what the songs of an edge share.

    Parameters
    ----------
    name : str, an edge's name as `build_edges` gives it; other families are read as "in family value"
    both : bool
        True speaks of two songs ("both tagged calm"), False of one ("tagged calm").
    called : callable from a family and a value to the name of a group of songs, "" for its number; or None

    Examples
    --------
    >>> describe_edge("tag:calm & decade:1990-1999")
    'both tagged calm and from 1990-1999'
    >>> describe_edge("cluster-16:12", both=False)
    'with similar sound (cluster 12 of 16)'
    """
    if name == UNIFORM:
        return "random jump"
    words = " and ".join(_words(family, value, called) for family, value in name_parts(name))
    return f"both {words}" if both else words
