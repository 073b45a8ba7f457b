"""The hypergraph of a library: edges of every family its songs have something to say to, and weights to begin with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from functools import cache

import numpy as np

from musicsim import playlist
from musicsim._arrays import Float64Array
from musicsim.explorer.playlists.song_labels import Sources, play_counts
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library import SavedPlaylist
from musicsim.library.db.columns import Labels
from musicsim.library.stores.genres import usual_spellings
from musicsim.library.stores.playlists import OWN_PLAYLISTS

_MAX_OWN = 100
_MIN_SHARE = 256  # of the songs: thesis 7.7 leaves out what is smaller, in its 98,359 songs
_MIN_IN_BOTH = 3

FAMILIES: dict[str, tuple[str, float]] = {
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
"""Families of edges: words, and the share of the weight before any playlist was seen (sound first)."""


def own_playlists(snapshot: Snapshot) -> dict[str, list[int]]:
    """Rows of the songs of the listener's own playlists by name, the latest first."""
    lists: Sequence[SavedPlaylist] = sorted(
        snapshot.library.playlists(source=OWN_PLAYLISTS), key=lambda p: p.created_at, reverse=True
    )
    found: dict[str, list[int]] = {}
    for saved in lists[:_MAX_OWN]:
        rows = snapshot.rows_of(saved.song_ids)
        found.setdefault(saved.name, rows[rows >= 0].tolist())
    return found


def _tags(snapshot: Snapshot) -> list[list[str]]:
    """Of each song the genre, then the tags, heaviest first: each by its most used spelling, in small letters."""
    tags = snapshot.tags_of()
    small = cache(str.lower)
    genres = snapshot.columns.genre.texts()

    def named(song_id: int, genre: str | None) -> list[str]:
        return [small(name) for name in (genre, *(tag for tag, _ in tags.get(song_id, ()))) if name]

    lists = list(zip(snapshot.row_ids.tolist(), genres, strict=True))
    usual = usual_spellings(Counter(name for song in lists for name in named(*song)))
    # songs of one genre that have no tags share a list: a million of them take 8 MB
    alone = cache(lambda genre: [usual.get(small(genre), small(genre))] if genre else [])
    return [
        list(dict.fromkeys(usual.get(name, name) for name in named(song_id, genre)))
        if song_id in tags
        else alone(genre)
        for song_id, genre in lists
    ]


def _artists(snapshot: Snapshot, fewest: int) -> list[str | None]:
    """Of each song its artist, if so many songs have that one."""
    artist = snapshot.columns.artist
    n_songs = artist.counts()
    return Labels(
        np.where(artist.among(name for name, n in n_songs.items() if n >= fewest), artist.codes, -1), artist.names
    ).texts()


def _albums(snapshot: Snapshot, fewest: int) -> list[str | None]:
    """Of each song its album and whose it is, if so many songs are on albums of that name."""
    albums = snapshot.library.albums(fewest)
    found: list[str | None] = [None] * snapshot.n_indexed
    on_one = np.array([row for row, i in enumerate(snapshot.row_ids.tolist()) if i in albums], dtype=np.int64)
    for row, (_, by) in zip(on_one.tolist(), snapshot.names_at(on_one), strict=True):
        album, artist = albums[int(snapshot.row_ids[row])]
        found[row] = f"{album} ({artist or by})"
    return found


def build_hypergraph(snapshot: Snapshot, sources: Sources, *, own: bool) -> playlist.Hypergraph:
    """Edges of every family, of `sources` aligned with the snapshot's songs.

    With `own` the listener's own playlists are edges: not while weights are fitted on those very lists.
    """
    columns, n = snapshot.columns, snapshot.n_indexed
    plays = play_counts(snapshot)
    fewest = max(2, n // _MIN_SHARE)
    words: dict[Hashable, str] = dict(enumerate(sources.topic_words))
    neighbours = sources.neighbours if sources.neighbours.shape[1] else None
    return playlist.build_edges(
        n,
        clusters=snapshot.clusters,
        listener_clusters=sources.listeners,
        cooccurrence_clusters=sources.company,
        cooccurrence_neighbours=neighbours,
        song_names=None if neighbours is None else [f"{title} by {by}" for title, by in snapshot.names_at()],
        artists=_artists(snapshot, fewest),
        albums=_albums(snapshot, fewest),
        tags=_tags(snapshot),
        years=columns.year.tolist(),
        familiarity=plays,
        topics=[[t for t in line if t >= 0] for line in sources.topics.tolist()] if words else None,
        topic_words=words or None,
        playlists=own_playlists(snapshot) if own else None,
        conjunctions=True,
        min_size=fewest,
        min_joint_size=max(_MIN_IN_BOTH, fewest),
    )


def default_weights(names: Sequence[str]) -> Float64Array:
    """Weights by family, equal within one, for a library without playlists; conjunctions weigh as the lighter part."""
    families = playlist.edge_families(names)
    counts: dict[tuple[str, ...], int] = {}
    for family in families:
        counts[family] = counts.get(family, 0) + 1
    # a pair of families has a tenth of what its lighter one has: they are many pairs, and precise
    share = {family: min(FAMILIES[part][1] for part in family) * (0.1 if len(family) > 1 else 1.0) for family in counts}
    weights = np.array([share[family] / counts[family] for family in families])
    return weights / weights.sum()
