"""The hypergraph of a library: the edges that its data allow, their default weights, and names of clusters.

Clusters by sound have names like "faster, brighter, such as Nora Vale", which compare them with the library.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from functools import cache

import numpy as np

from musicsim import audio, playlist
from musicsim._arrays import Float64Array, IntpArray
from musicsim.errors import FeatureVersionError
from musicsim.explorer.playlists.song_labels import Sources
from musicsim.explorer.search.query import sample_evenly
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.explorer.snapshot.song_numbers import play_counts
from musicsim.library import OWN_PLAYLISTS, Song
from musicsim.library.stores.genres import usual_spellings

_MAX_OWN = 100
_MIN_SHARE = 256  # an edge has at least 1/256 of the songs, as in section 7.7 of the thesis
_MIN_IN_BOTH = 3
_MEASURES = (("faster", "slower"), ("brighter", "darker"), ("louder", "quieter"), ("more tonal", "less tonal"))
_TYPICAL = 0.75  # minimum difference of a cluster's mean, in standard deviations of the library's songs
_MAX_WORDS = 2  # maximum number of words in a cluster's name
# samples are small, because reading a song takes milliseconds
_MAX_FROM_CLUSTER = 12
_MAX_FROM_LIBRARY = 64
_EVERY = 16  # only every 16th frame is used; all frames would give almost the same means

EDGE_FAMILIES: dict[str, tuple[str, float]] = {
    "audio": ("sound", 0.40),
    "company": ("shared playlists", 0.10),
    "listeners": ("listeners", 0.08),
    "tag": ("tags", 0.14),
    "artist": ("artist", 0.05),
    "album": ("album", 0.02),
    "era": ("years", 0.08),
    "familiarity": ("popularity", 0.02),
    "lyrics": ("lyrics", 0.03),
    "playlist": ("your playlists", 0.03),
    "uniform": ("random jumps", 0.05),
}
"""Label of each family of edges, and its default share of the weight."""


def _own_playlists(snapshot: Snapshot) -> dict[str, list[int]]:
    """Return the rows of the songs in the playlists that the user made, keyed by name, latest first."""
    own = snapshot.library.saved_playlists.made_by_people(OWN_PLAYLISTS)
    own.sort(key=lambda saved: saved.created_at, reverse=True)
    rows_by_name: dict[str, list[int]] = {}
    for saved in own[:_MAX_OWN]:
        rows = snapshot.rows_of(saved.song_ids)
        rows_by_name.setdefault(saved.name, rows[rows >= 0].tolist())
    return rows_by_name


def _tags(snapshot: Snapshot) -> list[list[str]]:
    """Return each song's genre and tags by descending weight, in lower case and in their most frequent spelling."""
    tags = snapshot.tags_of()
    lower = cache(str.lower)
    songs = list(zip(snapshot.row_ids.tolist(), snapshot.columns.genre.texts(), strict=True))

    def labels(song_id: int, genre: str | None) -> list[str]:
        return [lower(name) for name in (genre, *(tag for tag, _ in tags.get(song_id, ()))) if name]

    usual = usual_spellings(Counter(name for song in songs for name in labels(*song)))
    # songs without tags share one list per genre: a million of them take 8 MB
    genre_alone = cache(lambda genre: [usual.get(lower(genre), lower(genre))] if genre else [])
    return [
        list(dict.fromkeys(usual.get(name, name) for name in labels(song_id, genre)))
        if song_id in tags
        else genre_alone(genre)
        for song_id, genre in songs
    ]


def _artists(snapshot: Snapshot, min_songs: int) -> list[str | None]:
    """Return the artist of each song; None for artists with fewer songs than `min_songs`."""
    artists = snapshot.columns.artist
    counts = artists.counts()
    return [name if name and counts[name] >= min_songs else None for name in artists.texts()]


def _albums(snapshot: Snapshot, min_songs: int) -> list[str | None]:
    """Return each song's album with the album's artist; None for album titles with fewer than `min_songs` songs."""
    albums = snapshot.library.albums(min_songs)
    texts: list[str | None] = [None] * snapshot.n_indexed
    rows = np.array([row for row, i in enumerate(snapshot.row_ids.tolist()) if i in albums], dtype=np.int64)
    for row, (_, song_artist) in zip(rows.tolist(), snapshot.names_at(rows), strict=True):
        album, artist = albums[int(snapshot.row_ids[row])]
        by = artist or song_artist
        texts[row] = f"{album} ({by})" if by else album
    return texts


def build_hypergraph(snapshot: Snapshot, sources: Sources, *, own: bool) -> playlist.Hypergraph:
    """Build the edges of every family. `own` adds the user's playlists, which a fit must not use."""
    columns, n, plays = snapshot.columns, snapshot.n_indexed, play_counts(snapshot)
    min_size = max(2, n // _MIN_SHARE)
    words: dict[Hashable, str] = dict(enumerate(sources.topic_words))
    neighbors = sources.neighbors if sources.neighbors.shape[1] else None
    return playlist.build_edges(
        n,
        clusters=snapshot.clusters,
        listener_clusters=sources.listeners,
        cooccurrence_clusters=sources.company,
        cooccurrence_neighbors=neighbors,
        song_names=None
        if neighbors is None
        else [f"{title} by {by}" if by else title for title, by in snapshot.names_at()],
        artists=_artists(snapshot, min_size),
        albums=_albums(snapshot, min_size),
        tags=_tags(snapshot),
        years=columns.year.tolist(),
        familiarity=plays if 2 * np.count_nonzero(plays) > n else None,  # otherwise one edge would contain most songs
        topics=[[t for t in line if t >= 0] for line in sources.topics.tolist()] if words else None,
        topic_words=words or None,
        playlists=_own_playlists(snapshot) if own else None,
        conjunctions=True,
        min_size=min_size,
        min_joint_size=max(_MIN_IN_BOTH, min_size),
    )


def default_weights(names: Sequence[str]) -> Float64Array:
    """Return weights that are equal within each family, for a library without playlists."""
    families = playlist.edge_families(names)
    counts = Counter(families)
    # a conjunction gets a tenth of the smaller share of its two families, because there are many conjunctions
    share = {
        family: min(EDGE_FAMILIES[part][1] for part in family) * (0.1 if len(family) > 1 else 1.0) for family in counts
    }
    weights = np.array([share[family] / counts[family] for family in families])
    return weights / weights.sum()


class ClusterNames:
    """Names of clusters: words for the measures in which they differ from the library, and the best-known artist.

    The features of songs are read when a name is first needed. Without features or differences, the name is the artist
    alone. The best-known artist has the most `plays` (n_indexed,); the number of songs in the cluster breaks ties.
    """

    def __init__(self, snapshot: Snapshot, plays: Float64Array) -> None:
        self._snapshot, self._plays = snapshot, plays
        self._measured: dict[int, Float64Array] = {}
        self._names: dict[tuple[str, str], str] = {}

    def name(self, family: str, value: str) -> str:
        """Return the name of a cluster, such as 12 of ``cluster-16``; "" for other families and unknown clusters."""
        kind, _, label = family.partition("-")
        labels = self._snapshot.clusters.get(label)
        if kind != "cluster" or labels is None or not value.isdigit():
            return ""
        if (family, value) not in self._names:
            self._names[family, value] = self.name_rows(np.flatnonzero(labels == int(value)))
        return self._names[family, value]

    def name_rows(self, rows: IntpArray) -> str:
        """Return a name for any group of songs."""
        words = self._typical_words(rows)
        artists = self._snapshot.columns.artist
        codes = artists.codes[rows]
        known = codes >= 0
        if known.any():
            n_songs = np.bincount(codes[known])
            n_plays = np.bincount(codes[known], self._plays[rows][known])
            words.append(f"such as {artists.names[int(np.lexsort((n_songs, n_plays))[-1])]}")
        return ", ".join(words)

    def _typical_words(self, rows: IntpArray) -> list[str]:
        library = self._measures(sample_evenly(np.arange(self._snapshot.n_indexed), _MAX_FROM_LIBRARY))
        cluster = self._measures(sample_evenly(rows, _MAX_FROM_CLUSTER))
        if not len(library) or not len(cluster):
            return []
        mean, deviation = library.mean(axis=0), library.std(axis=0)
        # if all songs are alike, the deviation is only rounding error
        differs = (cluster.mean(axis=0) - mean) / np.where(deviation > 1e-6 * np.abs(mean), deviation, np.inf)
        order = [i for i in np.argsort(-np.abs(differs), kind="stable") if abs(differs[i]) >= _TYPICAL]
        return [_MEASURES[i][0 if differs[i] > 0 else 1] for i in order[:_MAX_WORDS]]

    def _measures(self, rows: IntpArray) -> Float64Array:
        new = [row for row in rows.tolist() if row not in self._measured]
        for row, song in zip(new, self._snapshot.songs_at(new), strict=True):
            self._measured[row] = self._measure(song)
        measures = np.array([self._measured[row] for row in rows.tolist()]).reshape(-1, len(_MEASURES))
        return measures[np.isfinite(measures).all(axis=1)]

    def _measure(self, song: Song) -> Float64Array:
        """Return a song's tempo, brightness, loudness and tonality, each on its own scale; nan without features."""
        files = self._snapshot.library.frame_files
        try:
            mfcc = files.frames(song.content_hash).mfcc[::_EVERY].astype(np.float64).mean(axis=0)
            aspects = files.aspects([song.content_hash])
        except FeatureVersionError:
            return np.full(len(_MEASURES), np.nan)
        tempos = aspects.rhythm[0, : len(audio.TEMPOS)].astype(np.float64)
        classes = aspects.harmony[0, : audio.N_CLASSES].astype(np.float64)
        # the second coefficient falls as energy moves to high bands; noise has equally strong pitch classes
        return np.array([tempos @ np.log(audio.TEMPOS), -mfcc[1], mfcc[0], classes @ classes])
