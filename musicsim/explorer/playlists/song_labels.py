"""Labels of songs for the edges of the playlist walk: company, listeners, topics of their words.

None of them depends on a model of sound, so they are stored once in the library's folder, with a digest of the data
that they were learned from. The next fit of a walk takes them from there, or learns them again.

Words of songs come from the hook ``song_words``: a module with ``read(library, progress) -> object``, which brings the
words up to the files, and ``table(library) -> WordTable``.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from musicsim import playlist
from musicsim._arrays import Float64Array, Int64Array, places_among
from musicsim.explorer.models.artifacts import readable_arrays, save_arrays
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.hooks import load_hooks
from musicsim.library import Library
from musicsim.progress import Progress

if TYPE_CHECKING:
    from scipy import sparse

SEED = 0
_FILE = "walk_sources.npz"
_MIN_LISTS = 50  # company of fewer lists is chance
_MIN_LISTENERS = 20
_MIN_WITH_WORDS = 64  # two songs a topic
_MAX_SONGS_A_GROUP = 8  # the finest groups hold about so many songs
_SIZES = (16, 64, 256, 800)
_N_TOPICS = 32
_TOPIC_DEPTH = 5
_GROUPINGS = 3
_MIN_NEIGHBOURS, _MAX_NEIGHBOURS = 10, 300
_MAX_SONGS_WITH_NEIGHBOURS = 20_000  # the square of their number is worked out


class WordTable(Protocol):
    """Counts of words by song."""

    @property
    def song_ids(self) -> Int64Array:
        """Songs with words, (n,)."""

    @property
    def vocabulary(self) -> list[str]:
        """The words, (n_words,)."""

    @property
    def counts(self) -> "sparse.csr_array":
        """Counts, (n, n_words)."""


def read_words(library: Library, progress: Progress) -> None:
    """Bring the words of songs up to their files."""
    for words in load_hooks("song_words"):
        words.read(library, progress)


@dataclass(frozen=True, slots=True)
class Sources:
    """Labels of songs; -1 where there is none."""

    song_ids: Int64Array  # (n,)
    # (n,): groups of songs that stand near each other on playlists, and that the same people play
    company: Mapping[str, Int64Array] = field(default_factory=dict)
    listeners: Mapping[str, Int64Array] = field(default_factory=dict)
    # (n, k): rows of the songs nearest to each by company on playlists; k is 0 where there are none
    neighbours: Int64Array = field(default_factory=lambda: np.empty((0, 0), dtype=np.int64))
    # (n, 5): topics of the words by falling weight
    topics: Int64Array = field(default_factory=lambda: np.empty((0, _TOPIC_DEPTH), dtype=np.int64))
    topic_words: tuple[str, ...] = ()  # the telling words of each topic


def _sizes(n_songs: int) -> tuple[int, ...]:
    return tuple(size for size in _SIZES if size * _MAX_SONGS_A_GROUP <= n_songs) or _SIZES[:1]


def _digest(
    ids: Int64Array, playlists: Sequence[Sequence[int]], plays: "sparse.csr_array", words: "sparse.csr_array"
) -> str:
    found = hashlib.sha256()
    lengths = [len(rows) for rows in playlists]
    for part in (
        ids, np.array(lengths), np.concatenate([np.empty(0), *playlists]).astype(np.int64),
        plays.indptr, plays.indices, plays.data, words.indptr, words.indices, words.data,
    ):  # fmt: skip
        found.update(np.ascontiguousarray(part).tobytes())
        found.update(b"|")
    return found.hexdigest()


def play_counts(snapshot: Snapshot) -> Float64Array:
    """Plays of each row by everybody."""
    plays = snapshot.library.listening.play_counts()
    rows, counts = snapshot.rows_of(plays), np.array(list(plays.values()), dtype=np.float64)
    heard = np.bincount(rows[rows >= 0], counts[rows >= 0], minlength=snapshot.n_indexed)
    return heard.astype(np.float64)


def _plays_table(snapshot: Snapshot) -> "sparse.csr_array":
    """Plays (n_listeners, n_indexed) of the songs of a snapshot."""
    from scipy import sparse

    plays = snapshot.library.plays()
    rows = snapshot.rows_of(plays.song_id)
    known = rows >= 0
    shape = (len(plays.listeners), snapshot.n_indexed)
    return sparse.csr_array((plays.count[known], (plays.listener[known], rows[known])), shape=shape)


def _words_table(snapshot: Snapshot) -> tuple[list[str], "sparse.csr_array"]:
    """Words of the songs, and their counts (n_indexed, n_words)."""
    from scipy import sparse

    n = snapshot.n_indexed
    vocabulary: list[str] = []
    counts = [sparse.csr_array((n, 0))]
    for words in load_hooks("song_words"):
        table: WordTable = words.table(snapshot.library)
        rows = snapshot.rows_of(table.song_ids)
        here = rows >= 0
        place = sparse.csr_array((np.ones(int(here.sum())), (rows[here], np.flatnonzero(here))), shape=(n, len(rows)))
        # songs with the same sound share a row: their words are the same song's
        vocabulary += table.vocabulary
        counts.append(place @ table.counts)
    return vocabulary, sparse.csr_array(sparse.hstack(counts))


def learn_sources(snapshot: Snapshot, playlists: Sequence[Sequence[int]], progress: Progress) -> Sources:
    """Learn what the edges need from playlists of rows, plays and words; at once when nothing of them has changed."""
    ids = snapshot.row_ids
    plays, (vocabulary, words) = _plays_table(snapshot), _words_table(snapshot)
    digest = _digest(ids, playlists, plays, words)
    known, of = _load(snapshot)
    if of == digest:
        return known
    topics, topic_words = _topics(words, vocabulary, progress)
    groups, neighbours = _company(playlists, len(ids), progress)
    sources = Sources(ids, groups, _listeners(plays, progress), neighbours, topics, topic_words)
    save_arrays(
        snapshot.library.folder / _FILE,
        digest=np.array(digest),
        song_ids=ids,
        neighbours=ids[neighbours] * (neighbours >= 0) - (neighbours < 0),
        topics=topics,
        topic_words=np.array(topic_words, dtype=np.str_),
        **{f"company {label}": values for label, values in sources.company.items()},
        **{f"listeners {label}": values for label, values in sources.listeners.items()},
    )
    return sources


def _company(
    playlists: Sequence[Sequence[int]], n_songs: int, progress: Progress
) -> tuple[dict[str, Int64Array], Int64Array]:
    """Groups of songs, and neighbours, by the company they keep on playlists; none where the lists are few."""
    nobody = np.empty((n_songs, 0), dtype=np.int64)
    if len(playlists) < _MIN_LISTS:
        return {}, nobody

    progress("finding songs that share playlists")
    n_seen = len({row for rows in playlists for row in rows})
    vectors = playlist.cooccurrence_vectors(playlists, n_songs, random_state=SEED)
    groups = playlist.group_vectors(vectors, _sizes(n_seen), n_repeats=_GROUPINGS, random_state=SEED)
    if n_seen > _MAX_SONGS_WITH_NEIGHBOURS:
        return groups, nobody
    return groups, playlist.nearest_by_direction(vectors, min(_MAX_NEIGHBOURS, max(_MIN_NEIGHBOURS, n_seen // 10)))


def with_company_of(sources: Sources, playlists: Sequence[Sequence[int]], progress: Progress) -> Sources:
    """The same with company heard from other playlists: what is judged on the rest must not know the rest."""
    groups, neighbours = _company(playlists, len(sources.song_ids), progress)
    return replace(sources, company=groups, neighbours=neighbours)


def _listeners(plays: "sparse.csr_array", progress: Progress) -> dict[str, Int64Array]:
    if plays.shape[0] < _MIN_LISTENERS:
        return {}

    progress("finding songs that the same people play")
    n_played = int(np.unique(plays.indices).size)
    return playlist.listener_clusters(plays, _sizes(n_played)[:3], random_state=SEED)


def _topics(
    words: "sparse.csr_array", vocabulary: Sequence[str], progress: Progress
) -> tuple[Int64Array, tuple[str, ...]]:
    n_songs = words.shape[0]
    found = np.full((n_songs, _TOPIC_DEPTH), -1, dtype=np.int64)
    n_sung = int(np.count_nonzero(np.diff(words.indptr)))
    if n_sung < _MIN_WITH_WORDS:
        return found, ()

    progress("finding topics of words")
    n_topics = min(_N_TOPICS, n_sung // 2)
    model = playlist.lyrics_topics(words, n_topics, random_state=SEED)
    for row, topics in enumerate(model.topics):
        found[row, : len(topics)] = topics
    return found, tuple(" ".join(model.words(topic, vocabulary, 3)) for topic in range(n_topics))


def _load(snapshot: Snapshot) -> tuple[Sources, str]:
    """What was learned, aligned with the snapshot's songs, and the digest of what it was learned from."""
    arrays = readable_arrays(snapshot.library.folder / _FILE)
    if not arrays:
        n = snapshot.n_indexed
        neighbours, topics = np.empty((n, 0), dtype=np.int64), np.full((n, _TOPIC_DEPTH), -1, dtype=np.int64)
        return Sources(snapshot.row_ids, neighbours=neighbours, topics=topics), ""
    rows = places_among(arrays["song_ids"], snapshot.row_ids)

    def aligned(values: Int64Array) -> Int64Array:
        found = values[rows]
        found[rows < 0] = -1
        return found

    groups: dict[str, dict[str, Int64Array]] = {"company": {}, "listeners": {}}
    for name, values in arrays.items():
        kind, _, label = name.partition(" ")
        if kind in groups:
            groups[kind][label] = aligned(values)
    near = arrays["neighbours"]
    rows_now = snapshot.rows_of(near.ravel())
    neighbours = aligned(rows_now.reshape(near.shape))
    topics, topic_words = aligned(arrays["topics"]), tuple(arrays["topic_words"].tolist())
    sources = Sources(snapshot.row_ids, groups["company"], groups["listeners"], neighbours, topics, topic_words)
    return sources, str(arrays["digest"])


def load_sources(snapshot: Snapshot) -> Sources:
    """What was learned last, aligned with the rows; songs that came later have no labels."""
    return _load(snapshot)[0]
