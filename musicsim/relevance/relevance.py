"""Relevance of songs to queries, from labels, lists or plays.

For each query, a song in the database is relevant, irrelevant, or excluded from the ranking. The query itself is always
excluded; with the artist filter, so are all songs by its artist. Relevance need not be symmetric or transitive. A
label, artist or group that is None, nan, blank or -1 is unknown: it does not match anything, not even another unknown
one.

Sets are stored as compressed rows that queries share: 8 bytes per entry and 40 bytes per song. Labels for 100,000 songs
take 5 MB. Arrays of songs x songs are never needed.
"""

import operator
import warnings
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from musicsim._arrays import Float64Array, Int8Array, Int64Array
from musicsim._checks import check_whole
from musicsim.relevance._kernels import count_shared

BLOCK_ENTRIES = 2_000_000  # maximum number of entries in a thread's array of most similar items: 16 MB
OVERLAPS = ("jaccard", "lift")


def label_codes(labels: Any, name: str = "labels") -> Int64Array:
    """Number labels in order of appearance, int64 (n,); equal labels get equal numbers.

    Labels are numbers, strings or other hashable values. Unknown ones (None, nan, blank or -1) get -1. There may be
    gaps between the numbers. `name` is the name of the argument in error messages.

    Examples
    --------
    >>> from musicsim.relevance import label_codes
    >>> label_codes(["rock", "folk", None, "rock"])
    array([ 0,  1, -1,  0])
    """
    _reject_mapping(labels, name)
    if not (hasattr(labels, "__array__") or isinstance(labels, Iterable)):
        raise ValueError(f"{name} is {labels!r:.60}; pass one label per song.")
    values = np.asarray(labels) if hasattr(labels, "__array__") else list(labels)
    if not isinstance(values, np.ndarray):
        return _number_values(values, name)
    if values.ndim != 1:
        raise ValueError(f"{name} has shape {values.shape}; it must be (n_songs,), with one entry per song.")
    if values.dtype.kind not in "biuf":
        return _number_values(values.tolist(), name)
    is_whole = values.dtype.kind in "iu" and len(values) > 0
    least, largest = (int(values.min()), int(values.max())) if is_whole else (0, 0)
    if is_whole and largest - least < 4 * len(values):  # a table of all numbers takes a tenth of the time of sorting
        wide = np.int64 if values.dtype.kind == "i" else np.uint64
        codes = np.subtract(values, least, dtype=wide).astype(np.int64)
        first = np.full(largest - least + 1, len(codes))
        first[codes[::-1]] = np.arange(len(codes))[::-1]
        is_unknown = np.arange(len(first)) == -1 - least
    else:
        distinct, first, codes = np.unique(values, return_index=True, return_inverse=True)
        is_unknown = np.isnan(distinct) | (distinct == -1)
    places = np.empty(len(first), dtype=np.int64)
    places[np.argsort(first, kind="stable")] = np.arange(len(first))
    places[is_unknown] = -1
    return places[codes]


def _number_values(values: Sequence[Any], name: str) -> Int64Array:
    numbers: dict[Any, int] = {}
    codes = np.empty(len(values), dtype=np.int64)
    for i, value in enumerate(values):
        try:
            code = numbers.get(value)
        except TypeError as error:
            raise ValueError(
                f"{name}[{i}] is {value!r:.60}; it must be one label. "
                "If you have a list of relevant songs per query, use Relevance.from_lists."
            ) from error
        if code is None:
            code = numbers[value] = -1 if _is_unknown(value) else len(numbers)
        codes[i] = code
    return codes


def _is_unknown(label: Any) -> bool:
    if label is None or (isinstance(label, str) and not label.strip()):
        return True
    equals = operator.eq(label, label)  # nan does not equal itself, and of a missing value of pandas it is not known
    return not isinstance(equals, bool | np.bool_) or not equals or bool(label == -1)


def group_codes(groups: Any, name: str = "groups") -> Int64Array:
    """Number groups as :func:`label_codes` does, but make each unknown one a separate group; no code is negative.

    Examples
    --------
    >>> from musicsim.relevance import group_codes
    >>> group_codes(["Nora Vale", None, "Nora Vale", None])  # unknown artists are different artists
    array([0, 1, 0, 2])
    """
    codes = label_codes(groups, name)
    alone = np.flatnonzero(codes < 0)
    codes[alone] = codes.max(initial=-1) + 1 + np.arange(len(alone))
    return codes


def _reject_mapping(values: Any, name: str) -> None:
    """Raise ValueError for a dict, whose keys would otherwise be read as the values."""
    if isinstance(values, Mapping):
        raise ValueError(
            f"{name} is a {type(values).__name__}; pass a list with one entry per row, in the order of the rows."
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Sets:
    """Sets of rows of the database, ascending and without duplicates, and the index of each query's set."""

    starts: Int64Array
    rows: Int64Array
    set_ids: Int64Array

    def rows_of(self, query: int) -> Int64Array:
        s = self.set_ids[query]
        return self.rows[self.starts[s] : self.starts[s + 1]]

    def entries(self, queries: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Return the pairs (index into `queries`, row of the database) in the sets of `queries`."""
        return _entries(self.starts, self.rows, self.set_ids[queries])

    def restrict(self, queries: Int64Array, place: Int64Array) -> "_Sets":
        """Keep the sets of `queries`; row r becomes ``place[r]``, or is removed if ``place[r]`` is -1."""
        sets, set_ids = np.unique(self.set_ids[queries], return_inverse=True)
        owner, rows = _entries(self.starts, self.rows, sets)
        kept = place[rows] >= 0
        starts, rows = _compress(owner[kept], place[rows[kept]], len(sets))
        return _Sets(starts, rows, set_ids.astype(np.int64))


def _entries(starts: Int64Array, rows: Int64Array, sets: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Concatenate some sets: return the index into `sets` and the row of every entry."""
    sizes = starts[sets + 1] - starts[sets]
    owner = np.repeat(np.arange(len(sets)), sizes)
    offsets = np.arange(len(owner)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return owner, rows[np.repeat(starts[sets], sizes) + offsets]


def _compress(owner: Int64Array, rows: Int64Array, n_sets: int) -> tuple[Int64Array, Int64Array]:
    """Compress pairs (set, row) to starts and rows; rows ascend within each set."""
    order = np.lexsort((rows, owner))
    starts = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=n_sets))])
    return starts.astype(np.int64), rows[order].astype(np.int64)


def _count_pairs(owner: Int64Array, value: Int64Array, sets: Int64Array, wanted: Int64Array) -> Int64Array:
    """Count how often each pair from (`sets`, `wanted`) occurs among the pairs from (`owner`, `value`)."""
    width = max(int(value.max(initial=0)), int(wanted.max(initial=0))) + 2
    pairs, counts = np.unique(owner * width + value + 1, return_counts=True)
    keys = sets * width + wanted + 1
    at = np.minimum(np.searchsorted(pairs, keys), len(pairs) - 1)
    return np.where(pairs[at] == keys, counts[at], 0) if len(pairs) else np.zeros(len(sets), dtype=np.int64)


def _collect_sets(lists: Sequence[Any], n: int, name: str) -> _Sets:
    rows = [_check_rows(entry, n, f"{name}[{query}]") for query, entry in enumerate(lists)]
    starts = np.concatenate([[0], np.cumsum([len(r) for r in rows])]).astype(np.int64)
    flat = np.concatenate([np.empty(0, np.int64), *rows])
    return _Sets(starts, flat, np.arange(len(lists), dtype=np.int64))


def _check_rows(entry: Any, n: int, name: str) -> Int64Array:
    """Check a list of rows of a database with `n` songs; return the rows ascending and without duplicates."""
    rows = np.asarray(list(entry) if isinstance(entry, set | frozenset) else entry)
    if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu"):
        raise ValueError(f"{name} must be a list of row numbers, not {entry!r:.60}.")
    rows = np.unique(rows).astype(np.int64)
    if rows.size and (rows[0] < 0 or rows[-1] >= n):
        wrong = rows[0] if rows[0] < 0 else rows[-1]
        raise ValueError(f"{name} has row {wrong}, but the database has rows 0 to {n - 1}.")
    return rows


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Relevance:
    """Relevant and irrelevant songs for each query.

    Instances are created by :meth:`from_labels`, :meth:`from_lists` and :meth:`from_plays`. Usually, every song is a
    query at first, and all songs are the database. :meth:`restrict` selects the queries and the database of a split.

    Attributes
    ----------
    n_items : int; number of songs in the database; ``len(relevance)`` is the number of queries
    own : int64 ndarray of shape (n_queries,); each query's row in the database, or -1 if the query is not in it
    labels : tuple of int64 ndarrays of shape (n_queries,) and (n_items,), or None
        Codes of the labels from which the relevance was made, -1 for unknown ones.

    Examples
    --------
    >>> from musicsim.relevance import Relevance
    >>> relevance = Relevance.from_labels(["rock", "folk", "rock", None])
    >>> relevance.relevant(0), relevance.irrelevant(0)
    (array([2]), array([1, 3]))
    >>> test = relevance.restrict(queries=[0], database=[1, 2])
    >>> test.relevant(0), test.irrelevant(0)
    (array([1]), array([0]))
    """

    n_items: int
    own: Int64Array
    _relevant: _Sets
    _irrelevant: _Sets | None = None  # None: all rows that are not relevant
    labels: tuple[Int64Array, Int64Array] | None = None
    _groups: tuple[Int64Array, Int64Array] | None = None  # groups of the queries, and of the songs in the database

    @classmethod
    def from_labels(cls, y: Any, *, groups: Any = None) -> "Relevance":
        """Make songs with the same label relevant to each other, and all others irrelevant; needs 48 bytes per song.

        Parameters
        ----------
        y : sequence of shape (n_songs,)
            A song with an unknown label has no relevant songs, and is irrelevant to every other song.
        groups : sequence of shape (n_songs,), optional
            The artist of each song; songs by the query's own artist are then excluded from both sets.
        """
        labels = label_codes(y, "y")
        n, n_labels = len(labels), int(labels.max(initial=-1)) + 1
        known = np.flatnonzero(labels >= 0)
        # the last set is empty, for songs with an unknown label
        starts, rows = _compress(labels[known], known, n_labels + 1)
        sets = _Sets(starts, rows, np.where(labels >= 0, labels, n_labels))
        relevance = cls(n, np.arange(n), sets, labels=(labels, labels))
        return relevance if groups is None else relevance.exclude_own_group(groups)

    @classmethod
    def from_lists(
        cls,
        lists: Iterable[Any],
        n: int | None = None,
        *,
        irrelevant: Iterable[Any] | None = None,
        outside: bool = False,
    ) -> "Relevance":
        """Make the rows in each query's list relevant to the query.

        Parameters
        ----------
        lists : iterable of n_queries lists of rows of the database; order and duplicates do not matter
        n : int, optional
            Number of songs in the database, by default the number of lists. If the numbers are equal, query i is row i
            and never in its own sets; otherwise the queries are not in the database.
        irrelevant : iterable of n_queries lists of rows, optional
            By default, all rows that are not relevant. A row may be in one list only; rows in neither are excluded.
        outside : bool; if True, the queries are not in the database, even if their number is `n`

        Examples
        --------
        Song 3 is not a query. Without `irrelevant`, songs 2 and 3 are irrelevant to query 0.

        >>> from musicsim.relevance import Relevance
        >>> relevance = Relevance.from_lists([[1], [0, 2], [1], []])
        >>> relevance.relevant(1), relevance.irrelevant(0)
        (array([0, 2]), array([2, 3]))
        """
        _reject_mapping(lists, "lists")
        _reject_mapping(irrelevant, "irrelevant")
        lists = list(lists)
        n = len(lists) if n is None else n
        inside = n == len(lists) and not outside
        own = np.arange(n) if inside else np.full(len(lists), -1, dtype=np.int64)
        others = None
        relevant = _collect_sets(lists, n, "lists")
        if irrelevant is not None:
            others = _collect_sets(list(irrelevant), n, "irrelevant")
            if len(others.set_ids) != len(lists):
                raise ValueError(
                    f"irrelevant has {len(others.set_ids)} lists, but lists has {len(lists)}: pass one list per query."
                )
            _check_disjoint(relevant, others, n)
        return cls(n, own, relevant, others)

    @classmethod
    def from_plays(
        cls,
        plays: Any,
        k: int = 10,
        threshold: float = 10,
        groups: Any = None,
        *,
        n: int | None = None,
        candidates: Any = None,
        artist_filter: bool = True,
        overlap: str = "jaccard",
    ) -> "Relevance":
        """Make the `k` items that share the most listeners with an item relevant to it.

        Parameters
        ----------
        plays : SciPy sparse matrix of shape (n_users, n_items), or (user, item, count) triples
            Counts, not negative. In triples, users may be any hashable values, and items are numbers from 0; the counts
            of triples with the same user and item are added. A data frame with three columns needs the least memory.
        k : int, at least 1
            Ties go to the lower item. Items without a common listener are never relevant, so there may be fewer.
        threshold : number above 0; minimum number of plays that makes a user a listener of an item
        groups : int sequence of shape (n_songs,), optional
            If items are artists: the artist of each song as an item number; artists may be unknown. The queries are
            then songs, and all songs by relevant artists are relevant. Without `groups`, the items are songs.
        n : int, optional; number of items, for triples whose last items were never played
        candidates : int sequence, optional
            Items that can be relevant, such as the artists in a training set. All others are irrelevant until
            :meth:`restrict` removes them from the database.
        artist_filter : bool
            With `groups`: exclude songs by the query's own artist from both sets. If False, these are irrelevant,
            because an artist is not similar to itself.
        overlap : {"jaccard", "lift"}
            Similarity of two sets of listeners: the Jaccard index, or the number of common listeners relative to the
            number expected by chance. By lift, popular items are not similar to everything, but two items that one
            user each has played are as similar as possible; a larger `threshold` leaves out such items.

        Notes
        -----
        The Jaccard index of the sets of listeners is equation 5.2 of the thesis. In addition to the plays
        and the result, this needs 18 bytes per play (40 bytes for triples), and 8 bytes per item and thread. Time grows
        with the sum over users of their squared number of items; all Numba threads share the items.

        Examples
        --------
        >>> from musicsim.relevance import Relevance
        >>> plays = [(0, 0, 20), (0, 1, 15), (1, 0, 30), (1, 1, 12), (2, 2, 50), (2, 3, 11)]  # user, song, plays
        >>> relevance = Relevance.from_plays(plays, k=2)
        >>> relevance.relevant(0), relevance.relevant(2)  # songs with the same listeners
        (array([1]), array([3]))
        """
        check_whole("k", k, 1)
        if overlap not in OVERLAPS:
            raise ValueError(f"overlap={overlap!r} must be one of {', '.join(OVERLAPS)}.")
        if not threshold > 0:
            raise ValueError(f"threshold={threshold} must be above 0, because a listener has at least one play.")
        artists = None if groups is None else _read_item_numbers(groups)
        n_artists = 0 if artists is None else int(artists.max(initial=-1)) + 1
        listened = _find_listeners(plays, threshold, n, n_artists)
        n_items = listened.shape[1]
        if n_artists > n_items:
            raise ValueError(f"groups has artist {n_artists - 1}, but plays has items 0 to {n_items - 1}.")
        allowed = np.arange(n_items) if candidates is None else _check_rows(candidates, n_items, "candidates")
        starts, similar = _find_most_similar(listened, k, allowed, overlap)
        if artists is None:
            return cls(n_items, np.arange(n_items), _Sets(starts, similar, np.arange(n_items)))
        known = np.flatnonzero(artists >= 0)
        songs_of, songs = _compress(artists[known], known, n_items)
        artist, other = _entries(starts, similar, np.arange(n_items))
        pair, rows = _entries(songs_of, songs, other)
        # the last set is empty, for songs by unknown artists
        starts, rows = _compress(artist[pair], rows, n_items + 1)
        sets = _Sets(starts, rows, np.where(artists >= 0, artists, n_items))
        relevance = cls(len(artists), np.arange(len(artists)), sets)
        return relevance.exclude_own_group(artists) if artist_filter else relevance

    def __len__(self) -> int:
        return len(self.own)

    def __repr__(self) -> str:
        return f"<Relevance: {len(self)} queries, {self.n_items} songs>"

    def relevant(self, i: int) -> Int64Array:
        """Return the rows relevant to query `i`, ascending."""
        rows = self._relevant.rows_of(self._check_query(i))
        kept = rows != self.own[i]
        if self._groups is not None:
            query_groups, item_groups = self._groups
            kept &= (item_groups[rows] != query_groups[i]) | (query_groups[i] < 0)
        return rows[kept]

    def n_relevant(self) -> Int64Array:
        """Return the number of relevant rows for each query, int64 (n_queries,), without a loop over queries."""
        sets, set_ids = self._relevant, self._relevant.set_ids
        n_sets = len(sets.starts) - 1
        owner = np.repeat(np.arange(n_sets), np.diff(sets.starts))
        n = np.diff(sets.starts)[set_ids]
        own_groups = np.full(len(self), -1) if self._groups is None else self._groups[0]
        grouped = own_groups >= 0
        if self._groups is not None:
            n -= np.where(grouped, _count_pairs(owner, self._groups[1][sets.rows], set_ids, own_groups), 0)
        # the query's own row does not count either; subtract it unless it was subtracted with its group
        is_in = (self.own >= 0) & (_count_pairs(owner, sets.rows, set_ids, self.own) > 0)
        if self._groups is not None:
            is_in &= ~(grouped & (self._groups[1][self.own] == own_groups))
        return n - is_in

    def irrelevant(self, i: int) -> Int64Array:
        """Return the rows irrelevant to query `i`, ascending, in O(n_items)."""
        return np.flatnonzero(self.judgments([self._check_query(i)])[0] == 0)

    def judgments(self, queries: npt.ArrayLike) -> Int8Array:
        """Return the relevance of each row of the database to some queries.

        Parameters
        ----------
        queries : int array-like of shape (m,)

        Returns
        -------
        ndarray of shape (m, n_items), int8
            1 is relevant, 0 irrelevant, -1 excluded. This needs ``2 * m * n_items`` bytes: pass queries in blocks.
        """
        queries = np.asarray(queries, dtype=np.int64)
        relevance = np.full((len(queries), self.n_items), 0 if self._irrelevant is None else -1, dtype=np.int8)
        if self._irrelevant is not None:
            relevance[self._irrelevant.entries(queries)] = 0
        relevance[self._relevant.entries(queries)] = 1
        if self._groups is not None:
            query_groups, item_groups = self._groups
            groups = query_groups[queries, None]
            relevance[(groups == item_groups) & (groups >= 0)] = -1
        own = self.own[queries]
        inside = np.flatnonzero(own >= 0)
        relevance[inside, own[inside]] = -1
        return relevance

    def judgements(self, queries: npt.ArrayLike) -> Int8Array:
        """Return :meth:`judgments`, under its old name."""
        warnings.warn("judgements is called judgments now", DeprecationWarning, stacklevel=2)
        return self.judgments(queries)

    def restrict(self, queries: Any = None, database: Any = None) -> "Relevance":
        """Select some queries and some songs, as for a split.

        Parameters
        ----------
        queries : int sequence, optional; queries to keep, in this order; all when None
        database : int sequence, optional; distinct songs to keep, in the new order of rows; all when None
        """
        query_rows = _check_order(queries, len(self), "queries")
        songs = _check_order(database, self.n_items, "database")
        place = np.full(self.n_items, -1, dtype=np.int64)
        place[songs] = np.arange(len(songs))
        if np.count_nonzero(place >= 0) < len(songs):
            raise ValueError("database contains a song twice: list each row once.")
        own = self.own[query_rows]
        return Relevance(
            len(songs),
            np.where(own >= 0, place[own], -1),
            self._relevant.restrict(query_rows, place),
            None if self._irrelevant is None else self._irrelevant.restrict(query_rows, place),
            self.labels and (self.labels[0][query_rows], self.labels[1][songs]),
            self._groups and (self._groups[0][query_rows], self._groups[1][songs]),
        )

    def exclude_own_group(self, groups: Any) -> "Relevance":
        """Exclude songs by the query's own artist from both sets (the artist filter).

        `groups` is the artist of each song in the database; unknown artists do not match. All queries
        must be in the database.
        """
        codes = label_codes(groups, "groups")
        if len(codes) != self.n_items:
            raise ValueError(f"groups has {len(codes)} entries for {self.n_items} songs: pass one per song.")
        if (self.own < 0).any():
            raise ValueError("the artist filter needs the artists of the queries, but some are not in the database.")
        return replace(self, _groups=(codes[self.own], codes))

    def _check_query(self, i: int) -> int:
        if not 0 <= i < len(self):
            raise IndexError(f"query {i} is out of range; the number of queries is {len(self)}.")
        return i


def _check_disjoint(relevant: _Sets, irrelevant: _Sets, n: int) -> None:
    both = []
    for sets in (relevant, irrelevant):
        query, row = sets.entries(np.arange(len(sets.set_ids)))
        both.append(query * n + row)
    shared = np.intersect1d(both[0], both[1], assume_unique=True)
    if len(shared):
        i, song = divmod(int(shared[0]), n)
        raise ValueError(f"row {song} is both relevant and irrelevant to query {i}: put it in only one list.")


def _check_order(rows: Any, n: int, name: str) -> Int64Array:
    """Check that row numbers are below `n`, and return them in the given order; None selects all rows."""
    if rows is None:
        return np.arange(n)
    places = np.asarray(rows)
    _check_rows(places, n, name)
    return places.astype(np.int64)


def _read_item_numbers(groups: Any) -> Int64Array:
    """Return the artist of each song as an item number, -1 if unknown."""
    codes = label_codes(groups, "groups")
    artists = np.full(len(codes), -1, dtype=np.int64)
    for i, group in enumerate(groups):
        if codes[i] >= 0:
            if isinstance(group, str) or group != int(group) or group < 0:
                raise ValueError(f"groups[{i}] is {group!r}; it must be the artist's column index in plays.")
            artists[i] = int(group)
    return artists


def _read_triples(plays: Any) -> tuple[Int64Array, Int64Array, Float64Array]:
    """Split (user, item, count) triples into user numbers, items and counts."""
    if hasattr(plays, "iloc"):
        columns = [plays.iloc[:, column] for column in range(plays.shape[1])]
    else:
        columns = list(plays.T) if hasattr(plays, "shape") else [list(column) for column in zip(*plays, strict=True)]
    if not columns or not len(columns[0]):
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)
    if len(columns) != 3:
        raise ValueError(
            f"plays has shape {(len(columns[0]), len(columns))}; it must be (n_plays, 3): user, item, count. "
            "Alternatively, pass a SciPy sparse matrix of users by items."
        )
    items = np.asarray(columns[1])
    is_whole = items.dtype.kind in "iu" or (items.dtype.kind == "f" and bool((items == np.floor(items)).all()))
    if not is_whole or items.min() < 0:
        raise ValueError("plays: items must be integers of at least 0.")
    users = label_codes(columns[0], "users of plays")
    if (users < 0).any():
        raise ValueError(f"plays: row {np.flatnonzero(users < 0)[0]} has no user: remove it.")
    return users, items.astype(np.int64, copy=False), np.asarray(columns[2], dtype=np.float64)


def _find_listeners(plays: Any, threshold: float, n: int | None, n_artists: int) -> sparse.csr_array:
    """Return a sparse mask (n_users, n_items) of the items that users listen to."""
    if sparse.issparse(plays):
        table = sparse.csr_array(plays, copy=True)
        if n is not None and n != table.shape[1]:
            raise ValueError(f"n={n}, but plays has {table.shape[1]} columns: omit n, or pass that number.")
    else:
        users, items, counts = _read_triples(plays)
        n_seen = int(items.max(initial=-1)) + 1
        n = max(n_seen, n_artists) if n is None else n
        if n < n_seen:
            raise ValueError(f"n={n} must be at least {n_seen}, because plays has item {n_seen - 1}.")
        shape = (int(users.max(initial=-1)) + 1, n)
        table = sparse.csr_array((counts, (users, items)), shape=shape)
    table.sum_duplicates()
    if not (np.isfinite(table.data).all() and (table.data >= 0).all()):
        raise ValueError("plays: counts must be finite and not negative.")
    table.data = (table.data >= threshold).view(np.int8)
    table.eliminate_zeros()
    return table


def _find_most_similar(
    listened: sparse.csr_array, k: int, allowed: Int64Array, overlap: str
) -> tuple[Int64Array, Int64Array]:
    """Return the `k` items from `allowed` that are most similar to each item, in compressed rows."""
    from numba import get_num_threads

    n_items, n_threads = listened.shape[1], int(get_num_threads())
    by_item = listened.tocsc()
    listeners = np.diff(by_item.indptr)
    # sorted, so that the most played items are adjacent and their counts stay in the cache
    allowed = allowed[np.argsort(-listeners[allowed], kind="stable")]
    candidates = listened[:, allowed]
    k = min(k, len(allowed))
    # items with the most listeners take longest, so they are distributed evenly over the parts
    order = np.argsort(-listeners, kind="stable")[: np.count_nonzero(listeners)]
    n_parts = max(8 * n_threads, -(-len(order) * k // BLOCK_ENTRIES))
    tables = by_item.indptr, by_item.indices, candidates.indptr, candidates.indices

    def search(first: int) -> tuple[Int64Array, Int64Array]:
        items = order[first::n_parts].copy()
        best = count_shared(items, *tables, allowed, listeners[allowed], k, overlap == "lift")
        row, rank = np.nonzero(best >= 0)
        return items[row], best[row, rank]

    pairs = [(np.empty(0, np.int64), np.empty(0, np.int64))]
    with ThreadPoolExecutor(n_threads) as threads:
        pairs += threads.map(search, range(min(n_parts, len(order))))
    item, other = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
    return _compress(item, other, n_items)
