"""Similar artists, each with entry points: the songs nearest to the query."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from musicsim.errors import NotFoundError
from musicsim.explorer.requests.filters import Filters
from musicsim.explorer.search.feedback import Thumbs
from musicsim.explorer.search.query import Example, Examples, Hit, Query, examples_of, find_similar
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library.tags.artists import fold_name

N_ENTRIES = 3  # entry points per artist

_MAX_SEEDS = 8  # songs that represent the artist of a query


@dataclass(frozen=True, slots=True)
class SimilarArtist:
    """An artist, and the artist's songs that are nearest to the query, nearest first."""

    name: str
    entries: tuple[Hit, ...]


def choose_songs_of(snapshot: Snapshot, artist: str) -> Examples:
    """Return up to eight songs of an artist, evenly spaced, as a query; raises NotFoundError without any."""
    rows = np.flatnonzero(snapshot.columns.group.among([fold_name(artist)]))
    if not len(rows):
        raise NotFoundError(f"{snapshot.library.name}: no song by {artist[:100]!r} found.")
    some = np.unique(np.linspace(0, len(rows) - 1, _MAX_SEEDS).astype(int))
    return Examples(tuple(snapshot.row_ids[rows[some]].tolist()))


def find_similar_artists(
    snapshot: Snapshot,
    query: Query,
    n_artists: int,
    *,
    filters: Filters | None = None,
    exclude: Iterable[int] = (),
    thumbs: Thumbs | None = None,
) -> list[SimilarArtist]:
    """Return other artists with songs near a query, the artist of the nearest song first.

    Artists of the query itself and unknown ones are left out. Parameters and errors are those of :func:`find_similar`.
    """
    ids = [one.song_id if isinstance(one, Example) else one for one in examples_of(query).like]
    rows = snapshot.rows_of([i for i in ids if i is not None])
    codes = snapshot.columns.group.codes
    own = snapshot.row_ids[np.isin(codes, codes[rows[rows >= 0]])]
    excluded, k = [*exclude, *own.tolist()], N_ENTRIES * n_artists
    while True:
        hits = find_similar(
            snapshot, query, k, max_per_artist=N_ENTRIES, filters=filters, exclude=excluded, thumbs=thumbs
        )
        by_artist: dict[str, list[Hit]] = {}
        for hit in hits:
            if hit.song.artist:
                by_artist.setdefault(hit.song.group, []).append(hit)
        if len(by_artist) >= n_artists or len(hits) < k:
            break
        k *= 2
    return [SimilarArtist(entries[0].song.by, tuple(entries)) for entries in list(by_artist.values())[:n_artists]]
