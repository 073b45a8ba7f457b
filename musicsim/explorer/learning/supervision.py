"""What says that two songs of a library are similar: plays, sittings, playlists, tags, artists, genres, folders.

Each kind is turned into a relevance over the songs of a snapshot. Listeners and lists speak of songs or artists
that are known; which of them count as the nearest depends on the database that is searched, so that the relevance of
a split is made for its training songs (thesis 5.4.2).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from musicsim import kernels
from musicsim import relevance as relevances
from musicsim._arrays import Float32Array, Int64Array
from musicsim.errors import ModelError
from musicsim.explorer.learning.from_answers import Answered, relevance_of, too_few
from musicsim.explorer.requests.training import ANSWERS, JUDGEMENTS, KINDS
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library.stores.judgments import RESULT

_SIMILAR_BY_TAGS = 10
_MIN_QUERIES = 10
_MAX_HELD = 16
"""Relevances of databases that are held: one of many plays takes seconds to make, and is asked for again and again."""
_MIN_SHARE = 0.2
"""Of the songs, that a kind of supervision speaks of when it is preselected."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of a library a kind of supervision speaks of."""

    kind: str
    n_songs: int  # songs that have a relevant song
    share: float  # of all songs
    detail: str  # what it stands on, in words
    lacks: str = ""  # why it is not enough to learn from; empty where it is

    @property
    def is_enough(self) -> bool:
        """Whether a metric can be learned from it."""
        return not self.lacks


class Supervision:
    """One kind of supervision over the songs of a snapshot.

    Parameters
    ----------
    kind : str
        One of :data:`musicsim.explorer.requests.training.KINDS`.
    k : int
        Artists, or songs, that count as similar.
    threshold : int
        Plays from which on a person listens to an artist.
    generated : bool
        Whether playlists that were generated here and saved count as those of people do: they say what the program
        thinks already.

    Attributes
    ----------
    groups : list of str
        The artist of each song, or what stands for one: songs of one are never split.
    detail : str
        What it stands on, in words.
    lacks : str
        Why it is too little to learn from, as far as that does not depend on the songs.
    searches_itself : bool
        Whether held-out songs are sought among themselves, because what is relevant to them is held out too.

    Raises
    ------
    ModelError
        If the library has nothing of the kind.
    """

    def __init__(
        self, snapshot: Snapshot, kind: str, *, k: int = 10, threshold: int = 10, generated: bool = False
    ) -> None:
        if kind not in KINDS:
            raise ValueError(f"supervision={kind!r} should be one of {', '.join(KINDS)}.")
        self._snapshot, self.kind, self._k, self._threshold = snapshot, kind, k, threshold
        self._generated = generated
        self.groups = [str(group) for group in snapshot.columns.group.texts()]
        self.searches_itself = kind in ("artist", "folder")
        self.detail = self.lacks = ""
        self._make = self._prepared()
        self._held: dict[bytes, relevances.Relevance] = {}

    def relevance(self, database: Int64Array | None = None) -> relevances.Relevance:
        """Who is similar to whom, each song a query, in a database of some rows (all by default).

        Returns
        -------
        relevances.Relevance of all songs; take the split by :meth:`relevances.Relevance.restrict`.
        """
        rows = np.arange(len(self.groups)) if database is None else np.asarray(database)
        key = rows.tobytes()
        if key not in self._held:
            if len(self._held) == _MAX_HELD:
                del self._held[next(iter(self._held))]
            self._held[key] = self._make(rows)
        return self._held[key]

    def _prepared(self) -> Callable[[Int64Array], relevances.Relevance]:
        if self.kind == "plays":
            return self._plays()
        if self.kind in ("sittings", "playlists"):
            table = self._sittings() if self.kind == "sittings" else self._playlists()
            return self._songs_together(table)
        if self.kind == "tags":
            return self._tags()
        if self.kind == ANSWERS:
            return self._answers()
        if self.kind == JUDGEMENTS:
            return self._judgements()
        return self._labels()

    # --- by kind ------------------------------------------------------------------------------

    def _labels(self) -> Callable[[Int64Array], relevances.Relevance]:
        labels = getattr(self._snapshot.columns, self.kind).texts()
        codes = relevances.label_codes(labels)
        sizes = np.bincount(codes[codes >= 0])
        self.detail = f"{np.count_nonzero(sizes > 1):,} {self.kind}s with more than one song"
        if self.searches_itself:
            # whole folders are held out, as artists are: a label may not stand on both sides
            self.groups = [str(label) if label else g for label, g in zip(labels, self.groups, strict=True)]
        relevance = relevances.Relevance.from_labels(labels, groups=None if self.searches_itself else self.groups)
        return lambda _rows: relevance

    def _plays(self) -> Callable[[Int64Array], relevances.Relevance]:
        """Thesis 5.2 on artists: the k that share most of their listeners."""
        plays = self._snapshot.library.plays()
        codes, names = _group_numbers(self.groups)
        rows = self._snapshot.rows_of(plays.song_id)
        here = rows >= 0
        shape = (len(plays.listeners), len(names))
        heard = sparse.csr_array((plays.count[here], (plays.listener[here], codes[rows[here]])), shape=shape)
        n_listeners = int(np.count_nonzero(np.diff((heard >= self._threshold).tocsr().indptr) > 1))
        self.detail = f"{n_listeners:,} listeners of at least two artists, {int(plays.count.sum()):,} plays"
        if n_listeners == 0:
            raise ModelError(
                f"nobody here has played two artists {self._threshold} times each, so plays say nothing "
                "about similarity. Import plays of several people, or learn from sittings, tags or "
                "genres."
            )

        def make(database: Int64Array) -> relevances.Relevance:
            candidates = np.unique(codes[database])
            return relevances.Relevance.from_plays(heard, self._k, self._threshold, groups=codes, candidates=candidates)

        return make

    def _playlists(self) -> sparse.csr_array:
        known = self._snapshot.library.playlists()
        lists = [p.song_ids for p in known if self._generated or not p.is_generated]
        self.detail = f"{len(lists):,} playlists"
        if len(lists) < len(known):
            self.detail += f"; {len(known) - len(lists):,} generated here are left out"
        return self._table([(number, song_id) for number, ids in enumerate(lists) for song_id in ids])

    def _sittings(self) -> sparse.csr_array:
        sittings = self._snapshot.library.listening.sittings()
        self.detail = f"{len(np.unique(sittings[:, 0])):,} sittings"
        return self._table(sittings.tolist())

    def _table(self, pairs: list[tuple[int, int]]) -> sparse.csr_array:
        """Lists by songs, ones where a list holds a song."""
        number, song_id = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        row = self._snapshot.rows_of(song_id)
        number, row = number[row >= 0], row[row >= 0]
        shape = (int(number.max(initial=-1)) + 1, len(self.groups))
        table = sparse.csr_array((np.ones(len(number)), (number, row)), shape=shape)
        table.data[:] = 1.0
        return table

    def _songs_together(self, table: sparse.csr_array) -> Callable[[Int64Array], relevances.Relevance]:
        """The k songs that share most of a song's lists, those of its own artist left out."""
        if table.nnz == 0 or int(np.diff(table.indptr).max(initial=0)) < 2:
            raise ModelError(f"this library has no {KINDS[self.kind].words} yet: import some first.")

        def make(database: Int64Array) -> relevances.Relevance:
            together = relevances.Relevance.from_plays(table, self._k, 1, candidates=database)
            return together.without_own_group(self.groups)

        return make

    def _answers(self) -> Callable[[Int64Array], relevances.Relevance]:
        answered = Answered.of(self._snapshot)
        if not len(answered):
            raise ModelError("nobody has compared songs yet: answer some questions on the Compare page.")
        self.detail = f"{len(answered):,} answers, {len(answered.all()):,} comparisons"
        self.lacks = too_few(answered)
        relevance = relevance_of(answered.all(), len(self.groups))
        return lambda _rows: relevance

    def _judgements(self) -> Callable[[Int64Array], relevances.Relevance]:
        """Songs that fit and songs that do not, by the song that was searched with; others are in no ranking."""
        judged = self._snapshot.library.judgments.all(RESULT)
        queries, songs = (self._snapshot.rows_of([one.song_ids[side] for one in judged]).tolist() for side in (0, 1))
        said: dict[tuple[int, int], int] = {}
        for here, row, one in zip(queries, songs, judged, strict=True):
            if here >= 0 and row >= 0 and row != here:
                said[here, row] = one.chosen or 0  # thumbs on copies of one sound may disagree: the newest counts
        if not said:
            raise ModelError("no thumbs were kept yet: press some on the Search by example page, then Keep.")
        relevant: list[list[int]] = [[] for _ in self.groups]
        irrelevant: list[list[int]] = [[] for _ in self.groups]
        for (here, row), value in said.items():
            (relevant if value > 0 else irrelevant)[here].append(row)
        n_searches = len({here for here, _ in said})
        self.detail = f"{len(said):,} thumbs on answers to {n_searches:,} searches"
        relevance = relevances.Relevance.from_lists(relevant, irrelevant=irrelevant)
        return lambda _rows: relevance

    def _tags(self) -> Callable[[Int64Array], relevances.Relevance]:

        tags = self._snapshot.tags_of()
        lists = [[tag for tag, _ in tags.get(i, ())] for i in self._snapshot.row_ids.tolist()]
        vocabulary = sorted({tag for one in lists for tag in one})
        if not vocabulary:
            raise ModelError("no song of this library has a tag: import tags first, or learn from something else.")
        vectors = kernels.human_tag_vectors(lists, vocabulary)
        codes, _ = _group_numbers(self.groups)
        self.detail = f"{len(vocabulary):,} tags"
        return lambda database: _most_alike(vectors, codes, database, _SIMILAR_BY_TAGS)


def _group_numbers(groups: list[str]) -> tuple[Int64Array, list[str]]:
    names, codes = np.unique(groups, return_inverse=True)
    return codes.astype(np.int64), names.tolist()


def _most_alike(vectors: Float32Array, codes: Int64Array, database: Int64Array, k: int) -> relevances.Relevance:
    """The k rows of the database with the largest inner product above 0, those of the own group left out."""
    lists: list[Int64Array] = []
    for start in range(0, len(vectors), 256):
        rows = np.arange(start, min(start + 256, len(vectors)))
        S = vectors[rows] @ vectors[database].T
        S[codes[rows][:, None] == codes[database][None, :]] = 0.0
        best = np.argsort(-S, axis=1, kind="stable")[:, :k]
        alike = np.take_along_axis(S, best, axis=1) > 0
        lists += [database[b[a]] for b, a in zip(best, alike, strict=True)]
    return relevances.Relevance.from_lists(lists).without_own_group(codes)


def coverage(snapshot: Snapshot) -> list[Coverage]:
    """What a library can be taught from: the songs that each kind of supervision speaks of.

    A kind that cannot be read says why in :attr:`Coverage.lacks`; the others are there all the same.
    """
    found = []
    n = max(1, snapshot.n_indexed)
    for kind in KINDS:
        try:
            supervision = Supervision(snapshot, kind)
            relevance = supervision.relevance()
        except (ModelError, ValueError) as error:
            found.append(Coverage(kind, 0, 0.0, str(error), str(error)))
            continue
        n_songs = int(np.count_nonzero(relevance.n_relevant()))
        lacks = supervision.lacks
        if not lacks and kind != ANSWERS and n_songs < _MIN_QUERIES:
            lacks = f"{n_songs:,} of {n:,} songs have a similar one; at least {_MIN_QUERIES} are needed."
        found.append(Coverage(kind, n_songs, n_songs / n, supervision.detail, lacks))
    return found


def preselected(found: Sequence[Coverage]) -> str | None:
    """The kind to begin with: the first that speaks of a fifth of the songs, else the one that speaks of most.

    Parameters
    ----------
    found : sequence of Coverage
        As :func:`coverage` returns it.

    Returns
    -------
    str or None
        None where there is not enough of any.
    """
    enough = [c for c in found if c.is_enough]
    wide = next((c for c in enough if c.share >= _MIN_SHARE and c.kind not in (ANSWERS, JUDGEMENTS)), None)
    best = wide or max(enough, key=lambda c: c.share, default=None)
    return None if best is None else best.kind
