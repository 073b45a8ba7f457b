"""The hypergraph of a library: edges of every family that its songs have data for, and default weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from functools import cache

import numpy as np

from musicsim import playlist
from musicsim._arrays import Float64Array
from musicsim.explorer.playlists.song_labels import Sources, play_counts
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library.db.columns import Labels
from musicsim.library.stores.genres import usual_spellings
from musicsim.library.stores.playlists import OWN_PLAYLISTS

_MAX_OWN = 100
_MIN_SHARE = 256  # smallest edge: 1/256 of the songs; thesis 7.7 leaves out smaller ones among its 98,359 songs
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
"""Families of edges: label, and default share of the weight (sound first)."""


def _own_playlists(snapshot: Snapshot) -> dict[str, list[int]]:
    """Return the rows of the songs in the listener's own playlists by name, latest first."""
    own = sorted(snapshot.library.playlists(source=OWN_PLAYLISTS), key=lambda saved: saved.created_at, reverse=True)
    rows_by_name: dict[str, list[int]] = {}
    for saved in own[:_MAX_OWN]:
        rows = snapshot.rows_of(saved.song_ids)
        rows_by_name.setdefault(saved.name, rows[rows >= 0].tolist())
    return rows_by_name


def _tags(snapshot: Snapshot) -> list[list[str]]:
    """Return for each song its genre, then its tags, heaviest first: in lower case, by their most used spelling."""
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
    artist = snapshot.columns.artist
    frequent = artist.is_in(name for name, n in artist.counts().items() if n >= min_songs)
    return Labels(np.where(frequent, artist.codes, -1), artist.names).texts()


def _albums(snapshot: Snapshot, min_songs: int) -> list[str | None]:
    """Return the album and its artist for each song; None if fewer than `min_songs` songs have an album of the name."""
    albums = snapshot.library.albums(min_songs)
    texts: list[str | None] = [None] * snapshot.n_indexed
    rows = np.array([row for row, i in enumerate(snapshot.row_ids.tolist()) if i in albums], dtype=np.int64)
    for row, (_, song_artist) in zip(rows.tolist(), snapshot.names_at(rows), strict=True):
        album, artist = albums[int(snapshot.row_ids[row])]
        texts[row] = f"{album} ({artist or song_artist})"
    return texts


def build_hypergraph(snapshot: Snapshot, sources: Sources, *, own: bool) -> playlist.Hypergraph:
    """Build the edges of every family; `sources` are aligned with the snapshot's songs.

    With `own`, the listener's own playlists are edges. Leave them out to fit weights on these playlists.
    """
    columns, n = snapshot.columns, snapshot.n_indexed
    min_size = max(2, n // _MIN_SHARE)
    words: dict[Hashable, str] = dict(enumerate(sources.topic_words))
    neighbours = sources.neighbours if sources.neighbours.shape[1] else None
    return playlist.build_edges(
        n,
        clusters=snapshot.clusters,
        listener_clusters=sources.listeners,
        cooccurrence_clusters=sources.company,
        cooccurrence_neighbours=neighbours,
        song_names=None if neighbours is None else [f"{title} by {by}" for title, by in snapshot.names_at()],
        artists=_artists(snapshot, min_size),
        albums=_albums(snapshot, min_size),
        tags=_tags(snapshot),
        years=columns.year.tolist(),
        familiarity=play_counts(snapshot),
        topics=[[t for t in line if t >= 0] for line in sources.topics.tolist()] if words else None,
        topic_words=words or None,
        playlists=_own_playlists(snapshot) if own else None,
        conjunctions=True,
        min_size=min_size,
        min_joint_size=max(_MIN_IN_BOTH, min_size),
    )


def default_weights(names: Sequence[str]) -> Float64Array:
    """Return weights by family, equal within a family, for a library without playlists."""
    families = playlist.edge_families(names)
    counts = Counter(families)
    # a conjunction has a tenth of the share of its lighter family: conjunctions are many, and precise
    share = {family: min(FAMILIES[part][1] for part in family) * (0.1 if len(family) > 1 else 1.0) for family in counts}
    weights = np.array([share[family] / counts[family] for family in families])
    return weights / weights.sum()
