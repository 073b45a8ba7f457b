"""The hypergraph of a library: edges of every family its songs have something to say to, and weights to begin with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

import numpy as np

from musicsim import playlist
from musicsim._arrays import Float64Array
from musicsim.explorer.playlists.song_labels import Sources, play_counts
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library import SavedPlaylist
from musicsim.library.genres import usual_spellings
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
    lists = [
        [name.lower() for name in (genre, *(tag for tag, _ in tags.get(song_id, ()))) if name]
        for song_id, genre in zip(snapshot.row_ids.tolist(), snapshot.columns.genre.texts(), strict=True)
    ]
    usual = usual_spellings(Counter(name for names in lists for name in names))
    return [list(dict.fromkeys(usual.get(name, name) for name in names)) for names in lists]


def _albums(snapshot: Snapshot, names: Sequence[tuple[str, str]]) -> list[str | None]:
    """Of each song its album and whose it is."""
    albums = snapshot.library.albums()
    known = (albums.get(song_id) for song_id in snapshot.row_ids.tolist())
    return [
        f"{album[0]} ({album[1] or by})" if album else None
        for album, (_, by) in zip(known, names, strict=True)
    ]


def build_hypergraph(snapshot: Snapshot, sources: Sources, *, own: bool) -> playlist.Hypergraph:
    """Edges of every family, of `sources` aligned with the snapshot's songs.

    With `own` the listener's own playlists are edges: not while weights are fitted on those very lists.
    """
    columns, names = snapshot.columns, snapshot.names_at()
    n = len(names)
    plays = play_counts(snapshot)
    fewest = max(2, n // _MIN_SHARE)
    words: dict[Hashable, str] = dict(enumerate(sources.topic_words))
    return playlist.build_edges(
        n,
        clusters=snapshot.clusters,
        listener_clusters=sources.listeners,
        cooccurrence_clusters=sources.company,
        cooccurrence_neighbours=sources.neighbours if sources.neighbours.shape[1] else None,
        song_names=[f"{title} by {by}" for title, by in names],
        artists=columns.artist.texts(),
        albums=_albums(snapshot, names),
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
    share = {
        family: min(FAMILIES[part][1] for part in family) * (0.1 if len(family) > 1 else 1.0)
        for family in counts
    }
    weights = np.array([share[family] / counts[family] for family in families])
    return weights / weights.sum()
