"""Kinds of supervision: plays, listening sessions, playlists, tags, labels, answers and thumbs.

Each kind is converted to relevance between songs. With plays, playlists or tags, the most similar songs depend on the
database that is searched, so the relevance of a split is computed for its training songs (thesis 5.4.2).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy import sparse

from musicsim import kernels
from musicsim import relevance as relevances
from musicsim._arrays import Float32Array, Float64Array, Int64Array
from musicsim.errors import ModelError
from musicsim.explorer.learning.from_answers import Answered, count_votes, relevance_of, too_few
from musicsim.explorer.learning.shuffles import deal_votes, permute_within, swap_groups, trade_entries
from musicsim.explorer.requests.training import ANSWERS, JUDGMENTS, TRAINING_KINDS
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library.stores.judgments import RESULT
from musicsim.wording import count

_SIMILAR_BY_TAGS = 10
_MIN_QUERIES = 10
_MAX_CACHED = 16  # number of databases whose relevance is cached; with many plays, computing it takes seconds
# folders often tell where songs are from, not how they sound; thumbs and answers cover only a few pairs of songs
_RELIABILITY = {"folder": 0.3, JUDGMENTS: 0.3, ANSWERS: 0.3}

Compute: TypeAlias = "Callable[[Int64Array], relevances.Relevance]"  # quoted, because the name imports numba
"""Computes the relevance of a database of rows to each song as a query."""
Shuffle: TypeAlias = "Callable[[Supervision, Sequence[Int64Array], np.random.Generator], Compute]"
"""Shuffles the evidence of a copy of the supervision, within the parts of a split."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """Coverage of a library's songs by a kind of supervision."""

    kind: str
    n_songs: int  # number of songs with a relevant song
    share: float  # n_songs as a share of all songs
    detail: str  # description of the amount of data
    lacks: str = ""  # why there is not enough data to learn from; empty if there is enough


class Supervision:
    """One of the :data:`KINDS` of supervision, for the songs of a snapshot.

    The `k` nearest artists or songs count as similar; `overlap` compares their listeners or lists. A person with at
    least `threshold` plays of an artist counts as a listener. With `generated`, playlists by musicsim also count, but
    they only repeat what the models already contain.
    Raises ModelError if the library has no data of this kind.

    `groups` are the artists of the songs, or their folders; songs of one group are never split. `detail` describes the
    amount of data. `lacks` explains a lack of answers; it is empty if there are enough. If `searches_itself` is true,
    held-out queries search the held-out songs, because all songs relevant to them are held out too. `labels` are the
    genres, artists or folders of the songs, if one of these is the kind. `popularity` has, for plays and lists, the
    number of listeners of each song's artist, or of lists with the song.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        kind: str,
        *,
        k: int = 10,
        threshold: int = 10,
        generated: bool = False,
        overlap: str = "jaccard",
    ) -> None:
        if kind not in TRAINING_KINDS:
            raise ValueError(f"supervision={kind!r} must be one of {', '.join(TRAINING_KINDS)}.")
        self._snapshot, self.kind, self._k, self._threshold = snapshot, kind, k, threshold
        self._generated, self._overlap = generated, overlap
        self.groups = [str(group) for group in snapshot.columns.group.texts()]
        self.searches_itself = kind in ("artist", "folder")
        self.detail = self.lacks = ""
        self.labels: list[str | None] | None = None
        self.popularity: Float64Array | None = None
        prepare: dict[str, Callable[[], Compute]] = {
            "plays": self._prepare_plays,
            "sittings": self._prepare_sittings,
            "playlists": self._prepare_playlists,
            "tags": self._prepare_tags,
            ANSWERS: self._prepare_answers,
            JUDGMENTS: self._prepare_thumbs,
        }
        self._shuffle: Shuffle
        self._compute = prepare.get(kind, self._prepare_labels)()
        self._cache: dict[bytes, relevances.Relevance] = {}

    def relevance(self, database: Int64Array | None = None) -> relevances.Relevance:
        """Return the relevance of a database of rows, by default all rows, to each song as a query."""
        rows = np.arange(len(self.groups)) if database is None else np.asarray(database)
        key = rows.tobytes()
        if key not in self._cache:
            if len(self._cache) == _MAX_CACHED:
                del self._cache[next(iter(self._cache))]
            self._cache[key] = self._compute(rows)
        return self._cache[key]

    def relevance_among(self, rows: Int64Array) -> relevances.Relevance:
        """Return the relevance of rows to each other."""
        return self.relevance(rows).restrict(rows, rows)

    def shuffle(self, parts: Sequence[Int64Array], random_state: int | np.random.Generator) -> Supervision:
        """Return the supervision by shuffled evidence: the same amounts of it, but unrelated to the sound.

        Plays and lists keep the popularity of each artist or song, and the length of each listener's or list's row.
        Genres and tags are swapped between artists with about the same number of songs. Artists and folders keep their
        sizes; songs move only within `parts`, the rows of a split, so that no artist is in two of them. Thumbs are
        dealt out among the results of each query, and answers are flipped.
        """
        copied = copy(self)
        copied._compute = self._shuffle(copied, parts, np.random.default_rng(random_state))
        copied._cache = {}
        return copied

    def _prepare_labels(self) -> Compute:
        labels = getattr(self._snapshot.columns, self.kind).texts()
        codes = relevances.label_codes(labels)
        sizes = np.bincount(codes[codes >= 0])
        self.detail = f"{np.count_nonzero(sizes > 1):,} {self.kind}s with more than one song"
        if self.searches_itself:
            # hold out whole labels, because no label may be on both sides of a split
            self.groups = [str(label) if label else g for label, g in zip(labels, self.groups, strict=True)]

        def relate(supervision: Supervision, source: Int64Array) -> Compute:
            supervision.labels = [labels[row] for row in source]
            if self.searches_itself:
                supervision.groups = [groups[row] for row in source]
            relevance = relevances.Relevance.from_labels(
                supervision.labels, groups=None if self.searches_itself else groups
            )
            return lambda _rows: relevance

        def shuffle(supervision: Supervision, parts: Sequence[Int64Array], rng: np.random.Generator) -> Compute:
            swapped = permute_within(parts, len(labels), rng) if self.searches_itself else swap_groups(groups, rng)
            return relate(supervision, swapped)

        groups, self._shuffle = self.groups, shuffle
        return relate(self, np.arange(len(labels)))

    def _prepare_plays(self) -> Compute:
        """Relate each artist to the k artists that share the most listeners with it (thesis 5.2)."""
        plays = self._snapshot.library.plays()
        names, codes = np.unique(self.groups, return_inverse=True)
        rows = self._snapshot.rows_of(plays.song_id)
        is_known = rows >= 0
        shape = (len(plays.listeners), len(names))
        table = sparse.csr_array(
            (plays.count[is_known], (plays.listener[is_known], codes[rows[is_known]])), shape=shape
        )
        listened = (table >= self._threshold).astype(np.float64).tocsr()
        n_listeners = int(np.count_nonzero(np.diff(listened.indptr) > 1))
        self.detail = (
            f"{count(n_listeners, 'listener')} of at least two artists, {count(int(plays.count.sum()), 'play')}"
        )
        if n_listeners == 0:
            raise ModelError(
                f"nobody has played two artists at least {self._threshold} times each, so the plays do not show which "
                "artists are similar. "
                "Import plays by several people, or learn from listening sessions, tags or genres."
            )

        def relate(table: sparse.csr_array) -> Compute:
            return lambda database: relevances.Relevance.from_plays(
                table, self._k, 1, groups=codes, candidates=np.unique(codes[database]), overlap=self._overlap
            )

        self.popularity = np.bincount(listened.nonzero()[1], minlength=len(names)).astype(np.float64)[codes]
        self._shuffle = lambda _supervision, _parts, rng: relate(trade_entries(listened, rng))
        return relate(listened)

    def _prepare_playlists(self) -> Compute:
        store = self._snapshot.library.saved_playlists
        playlists = store.all()
        lists = [p.song_ids for p in (playlists if self._generated else store.made_by_people())]
        self.detail = count(len(lists), "playlist")
        if len(lists) < len(playlists):
            self.detail += f", not counting {len(playlists) - len(lists):,} generated by musicsim"
        return self._relate_lists([(number, song_id) for number, ids in enumerate(lists) for song_id in ids])

    def _prepare_sittings(self) -> Compute:
        sittings = self._snapshot.library.listening.sittings()
        self.detail = f"{len(np.unique(sittings[:, 0])):,} listening sessions"
        return self._relate_lists(sittings.tolist())

    def _relate_lists(self, pairs: list[tuple[int, int]]) -> Compute:
        """Relate each song to the k songs by other artists that share the most lists with it.

        `pairs` contains a (list, song id) pair for each song of a list.
        """
        number, song_id = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        row = self._snapshot.rows_of(song_id)
        number, row = number[row >= 0], row[row >= 0]
        shape = (int(number.max(initial=-1)) + 1, len(self.groups))
        table = sparse.csr_array((np.ones(len(number)), (number, row)), shape=shape)
        table.data[:] = 1.0  # count duplicates once: the constructor summed them
        if table.nnz == 0 or int(np.diff(table.indptr).max(initial=0)) < 2:
            raise ModelError(f"this library has no {TRAINING_KINDS[self.kind].words} yet: import some.")

        def relate(table: sparse.csr_array) -> Compute:
            def compute(database: Int64Array) -> relevances.Relevance:
                relevance = relevances.Relevance.from_plays(
                    table, self._k, 1, candidates=database, overlap=self._overlap
                )
                return relevance.exclude_own_group(self.groups)

            return compute

        self.popularity = np.bincount(table.nonzero()[1], minlength=len(self.groups)).astype(np.float64)
        self._shuffle = lambda _supervision, _parts, rng: relate(trade_entries(table, rng))
        return relate(table)

    def _prepare_answers(self) -> Compute:
        answered = Answered.collect(self._snapshot)
        if not len(answered):
            raise ModelError("nobody has compared songs yet: answer some questions in Compare.")
        self.detail = f"{count(len(answered), 'answer')}, {count(len(answered.all()), 'comparison')}"
        self.lacks = too_few(answered)

        def relate(answered: Answered) -> Compute:
            relevance = relevance_of(answered.all(), len(self.groups))
            return lambda _rows: relevance

        self._shuffle = lambda _supervision, _parts, rng: relate(answered.flip(rng))
        return relate(answered)

    def _prepare_thumbs(self) -> Compute:
        """Relate queries to results with thumbs up or down; other songs are not ranked."""
        judged = self._snapshot.library.judgments.all(RESULT)
        queries, results = (self._snapshot.rows_of([j.song_ids[side] for j in judged]).tolist() for side in (0, 1))
        thumbs: dict[tuple[int, int], int] = {}
        for query, row, judgment in zip(queries, results, judged, strict=True):
            if query >= 0 and row >= 0 and row != query:
                thumbs[query, row] = judgment.chosen or 0  # duplicates can have different thumbs: use the latest
        if not thumbs:
            raise ModelError("no thumbs have been saved yet: give some on the Listen page.")
        n_searches = len({query for query, _ in thumbs})
        self.detail = f"{count(len(thumbs), 'thumb')} on results of {count(n_searches, 'search')}"

        def relate(votes: dict[tuple[int, int], int]) -> Compute:
            relevance = count_votes(votes, len(self.groups))
            return lambda _rows: relevance

        self._shuffle = lambda _supervision, _parts, rng: relate(deal_votes(thumbs, rng))
        return relate(thumbs)

    def _prepare_tags(self) -> Compute:
        """Relate each song to the ten songs by other artists with the most similar tags."""
        tags = self._snapshot.tags_of()
        lists = [[tag for tag, _ in tags.get(i, ())] for i in self._snapshot.row_ids.tolist()]
        vocabulary = sorted({tag for song_tags in lists for tag in song_tags})
        if not vocabulary:
            raise ModelError("no song in this library has a tag: import tags first, or learn from something else.")
        vectors = kernels.human_tag_vectors(lists, vocabulary)
        codes = np.unique(self.groups, return_inverse=True)[1]
        self.detail = count(len(vocabulary), "tag")

        def relate(vectors: Float32Array) -> Compute:
            return lambda database: _most_similar(vectors, codes, database, _SIMILAR_BY_TAGS)

        self._shuffle = lambda _supervision, _parts, rng: relate(vectors[swap_groups(self.groups, rng)])
        return relate(vectors)


def _most_similar(vectors: Float32Array, codes: Int64Array, database: Int64Array, k: int) -> relevances.Relevance:
    """Relate each row to the k database rows of other groups with the largest positive inner products."""
    lists: list[Int64Array] = []
    for start in range(0, len(vectors), 256):
        block = slice(start, start + 256)
        S = vectors[block] @ vectors[database].T
        S[codes[block, None] == codes[database][None, :]] = 0.0
        best = np.argsort(-S, axis=1, kind="stable")[:, :k]
        is_similar = np.take_along_axis(S, best, axis=1) > 0
        lists += [database[b[s]] for b, s in zip(best, is_similar, strict=True)]
    return relevances.Relevance.from_lists(lists).exclude_own_group(codes)


def coverage(snapshot: Snapshot) -> list[Coverage]:
    """Return the coverage of all kinds; :attr:`Coverage.lacks` is the error if a kind cannot be used."""
    coverages = []
    n = max(1, snapshot.n_indexed)
    for kind in TRAINING_KINDS:
        try:
            supervision = Supervision(snapshot, kind)
            relevance = supervision.relevance()
        except (ModelError, ValueError) as error:
            coverages.append(Coverage(kind, 0, 0.0, str(error), str(error)))
            continue
        n_songs = int(np.count_nonzero(relevance.n_relevant()))
        lacks = supervision.lacks
        if not lacks and kind != ANSWERS and n_songs < _MIN_QUERIES:
            lacks = f"{n_songs:,} of {count(n, 'song')} have a similar song; at least {_MIN_QUERIES} are needed."
        coverages.append(Coverage(kind, n_songs, n_songs / n, supervision.detail, lacks))
    return coverages


def rank_kinds(coverages: Sequence[Coverage]) -> list[Coverage]:
    """Return the kinds with enough data in descending order of usefulness; the first one is the default."""
    enough = [c for c in coverages if not c.lacks]
    return sorted(enough, key=lambda c: -c.share * _RELIABILITY.get(c.kind, 1.0))
