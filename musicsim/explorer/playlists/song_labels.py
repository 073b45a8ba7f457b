"""Labels of songs for the edges of the playlist walk: co-occurrence in playlists, listeners, and topics of lyrics.

Labels do not depend on a similarity model. They are stored once per library, with a digest of the data from which they
were learned. The next fit loads them if the digest has not changed.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from musicsim import playlist
from musicsim._arrays import Int64Array
from musicsim.explorer.models.artifacts import readable_arrays, save_arrays
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.hooks import SongWords
from musicsim.library import Library
from musicsim.places import places_among
from musicsim.progress import Progress
from musicsim.registry import load_hooks

if TYPE_CHECKING:
    from scipy import sparse

SEED = 0
_FILE = "walk_sources.npz"
_MIN_LISTS = 50  # minimum number of playlists; with fewer, co-occurrence is mostly chance
_MIN_LISTENERS = 20
MIN_WITH_WORDS = 64  # minimum number of songs with words; gives two songs per topic
_MIN_SONGS_PER_GROUP = 8  # minimum average size of the finest groups
_SIZES = (16, 64, 256, 800)
_N_TOPICS = 32
_TOPIC_DEPTH = 5
_GROUPINGS = 3
_MIN_NEIGHBORS, _MAX_NEIGHBORS = 10, 300
_MAX_SONGS_WITH_NEIGHBORS = 20_000  # the time grows with the square of the number of songs


def read_words(library: Library, progress: Progress) -> None:
    """Update the words of songs from their files."""
    for words in load_hooks(SongWords):
        words.read(library, progress)


@dataclass(frozen=True, slots=True)
class Sources:
    """Labels of songs; -1 for songs without a label."""

    song_ids: Int64Array  # (n,)
    company: Mapping[str, Int64Array]  # groups (n,) of songs that co-occur in playlists, keyed by group count
    listeners: Mapping[str, Int64Array]  # groups (n,) of songs that the same people play, keyed by group count
    neighbors: Int64Array  # (n, k): rows of the songs nearest by co-occurrence; k is 0 if there are too few playlists
    topics: Int64Array  # (n, 5): topics of the words, by decreasing weight
    topic_words: tuple[str, ...]  # the most typical words of each topic
    digest: str  # digest of the data from which the labels were learned


def _sizes(n_songs: int) -> tuple[int, ...]:
    return tuple(size for size in _SIZES if size * _MIN_SONGS_PER_GROUP <= n_songs) or _SIZES[:1]


def _digest(
    ids: Int64Array, playlists: Sequence[Sequence[int]], plays: "sparse.csr_array", words: "sparse.csr_array"
) -> str:
    digest = hashlib.sha256()
    lengths = np.array([len(rows) for rows in playlists])
    rows = np.concatenate([np.empty(0), *playlists]).astype(np.int64)
    counts = (part for table in (plays, words) for part in (table.indptr, table.indices, table.data))
    for part in (ids, lengths, rows, *counts):
        digest.update(np.ascontiguousarray(part).tobytes())
        digest.update(b"|")
    return digest.hexdigest()


def _plays_table(snapshot: Snapshot) -> "sparse.csr_array":
    from scipy import sparse

    plays = snapshot.library.plays()
    rows = snapshot.rows_of(plays.song_id)
    known = rows >= 0
    shape = (len(plays.listeners), snapshot.n_indexed)
    return sparse.csr_array((plays.count[known], (plays.listener[known], rows[known])), shape=shape)


def _words_table(snapshot: Snapshot) -> tuple[list[str], "sparse.csr_array"]:
    from scipy import sparse

    n = snapshot.n_indexed
    vocabulary: list[str] = []
    counts = [sparse.csr_array((n, 0))]
    for words in load_hooks(SongWords):
        table = words.table(snapshot.library)
        rows = snapshot.rows_of(table.song_ids)
        known = rows >= 0
        # duplicates share a row, so their words are added up
        place = sparse.csr_array((np.ones(int(known.sum())), (rows[known], np.flatnonzero(known))), (n, len(rows)))
        vocabulary += table.vocabulary
        counts.append(place @ table.counts)
    return vocabulary, sparse.csr_array(sparse.hstack(counts))


def learn_sources(snapshot: Snapshot, playlists: Sequence[Sequence[int]], progress: Progress) -> Sources:
    """Learn labels from playlists (of rows), plays and words, and store them; load them if nothing has changed."""
    ids = snapshot.row_ids
    plays, (vocabulary, words) = _plays_table(snapshot), _words_table(snapshot)
    digest = _digest(ids, playlists, plays, words)
    stored = load_sources(snapshot)
    if stored.digest == digest:
        return stored
    topics, topic_words = _topics(words, vocabulary, progress)
    groups, neighbors = _company(playlists, len(ids), progress)
    sources = Sources(ids, groups, _listeners(plays, progress), neighbors, topics, topic_words, digest)
    save_arrays(
        snapshot.library.folder / _FILE,
        digest=np.array(digest),
        song_ids=ids,
        neighbours=ids[neighbors] * (neighbors >= 0) - (neighbors < 0),
        topics=topics,
        topic_words=np.array(topic_words, dtype=np.str_),
        **{f"company {label}": values for label, values in sources.company.items()},
        **{f"listeners {label}": values for label, values in sources.listeners.items()},
    )
    return sources


def _company(
    playlists: Sequence[Sequence[int]], n_songs: int, progress: Progress
) -> tuple[dict[str, Int64Array], Int64Array]:
    """Return groups of songs, and each song's neighbors, by co-occurrence; empty if there are too few playlists."""
    no_neighbors = np.empty((n_songs, 0), dtype=np.int64)
    if len(playlists) < _MIN_LISTS:
        return {}, no_neighbors
    progress("finding songs that share playlists")
    n_seen = len({row for rows in playlists for row in rows})
    vectors = playlist.cooccurrence_vectors(playlists, n_songs, random_state=SEED)
    groups = playlist.group_vectors(vectors, _sizes(n_seen), n_repeats=_GROUPINGS, random_state=SEED)
    if n_seen > _MAX_SONGS_WITH_NEIGHBORS:
        return groups, no_neighbors
    return groups, playlist.nearest_by_direction(vectors, min(_MAX_NEIGHBORS, max(_MIN_NEIGHBORS, n_seen // 10)))


def replace_company(sources: Sources, playlists: Sequence[Sequence[int]], progress: Progress) -> Sources:
    """Return the labels with co-occurrence from other playlists, such as the training part of a split."""
    groups, neighbors = _company(playlists, len(sources.song_ids), progress)
    return replace(sources, company=groups, neighbors=neighbors)


def _listeners(plays: "sparse.csr_array", progress: Progress) -> dict[str, Int64Array]:
    if plays.shape[0] < _MIN_LISTENERS:
        return {}
    progress("finding songs that the same people play")
    n_played = int(np.unique(plays.indices).size)
    return playlist.listener_clusters(plays, _sizes(n_played)[:3], random_state=SEED)


def _topics(
    words: "sparse.csr_array", vocabulary: Sequence[str], progress: Progress
) -> tuple[Int64Array, tuple[str, ...]]:
    topics = np.full((words.shape[0], _TOPIC_DEPTH), -1, dtype=np.int64)
    n_with_words = int(np.count_nonzero(np.diff(words.indptr)))
    if n_with_words < MIN_WITH_WORDS:
        return topics, ()
    progress("finding topics in lyrics")
    n_topics = min(_N_TOPICS, n_with_words // 2)
    model = playlist.lyrics_topics(words, n_topics, random_state=SEED)
    for row, song_topics in enumerate(model.topics):
        topics[row, : len(song_topics)] = song_topics
    return topics, tuple(" ".join(model.words(topic, vocabulary, 3)) for topic in range(n_topics))


def load_sources(snapshot: Snapshot) -> Sources:
    """Return the stored labels, aligned with the rows; songs added later have no labels."""
    arrays = readable_arrays(snapshot.library.folder / _FILE)
    if not arrays:
        n = snapshot.n_indexed
        neighbors, topics = np.empty((n, 0), dtype=np.int64), np.full((n, _TOPIC_DEPTH), -1, dtype=np.int64)
        return Sources(snapshot.row_ids, {}, {}, neighbors, topics, (), "")
    rows = places_among(arrays["song_ids"], snapshot.row_ids)

    def align(values: Int64Array) -> Int64Array:
        aligned = values[rows]
        aligned[rows < 0] = -1
        return aligned

    groups: dict[str, dict[str, Int64Array]] = {"company": {}, "listeners": {}}
    for name, values in arrays.items():
        kind, _, label = name.partition(" ")
        if kind in groups:
            groups[kind][label] = align(values)
    ids = arrays["neighbours"]
    neighbors = align(snapshot.rows_of(ids.ravel()).reshape(ids.shape))
    topics, topic_words = align(arrays["topics"]), tuple(arrays["topic_words"].tolist())
    return Sources(
        snapshot.row_ids,
        **groups,
        neighbors=neighbors,
        topics=topics,
        topic_words=topic_words,
        digest=str(arrays["digest"]),
    )
