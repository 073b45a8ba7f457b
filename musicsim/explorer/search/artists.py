"""Similar artists, each with its entry points: the songs by which to get to know it."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from musicsim._arrays import Int64Array
from musicsim.errors import NotFoundError
from musicsim.explorer.requests.filters import Filters
from musicsim.explorer.search.feedback import Thumbs
from musicsim.explorer.search.query import Example, Examples, Hit, Query, examples_of, find_similar
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.library.tags.artists import fold_name

N_ENTRIES = 3
"""Songs by which an artist is introduced."""

_MAX_SEEDS = 8  # songs that stand for an artist who is searched with


@dataclass(frozen=True, slots=True)
class SimilarArtist:
    """An artist, and the songs that are nearest to what was searched with, nearest first."""

    name: str
    entries: tuple[Hit, ...]


def songs_standing_for(snapshot: Snapshot, artist: str) -> Examples:
    """Some songs of an artist, evenly from all, to be searched with; the name in any case.

    Raises NotFoundError if no song of the artist has a vector.
    """
    group, name = snapshot.columns.group, fold_name(artist)
    rows = np.flatnonzero(group.codes == group.names.index(name)) if name in group.names else _NO_ROWS
    if not len(rows):
        raise NotFoundError(f"{snapshot.library.name}: there is no song by {artist[:100]!r}.")
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
    """Other artists with songs near a query, the artist of the nearest song first.

    Artists of the query itself and unknown ones are left out; parameters and errors as of :func:`find_similar`.
    """
    own = _songs_of_same_artists(snapshot, query)
    barred, k = [*exclude, *own.tolist()], N_ENTRIES * n_artists
    while True:
        hits = find_similar(
            snapshot, query, k, max_per_artist=N_ENTRIES, filters=filters, exclude=barred, thumbs=thumbs
        )
        by_artist: dict[str, list[Hit]] = {}
        for hit in hits:
            if hit.song.artist:
                by_artist.setdefault(hit.song.group, []).append(hit)
        if len(by_artist) >= n_artists or len(hits) < k:
            break
        k *= 2
    found = list(by_artist.values())[:n_artists]
    return [SimilarArtist(entries[0].song.by, tuple(entries)) for entries in found]


_NO_ROWS = np.empty(0, dtype=np.int64)


def _songs_of_same_artists(snapshot: Snapshot, query: Query) -> Int64Array:
    """Ids of all songs by the artists of the songs of a query."""
    ids = [one.song_id if isinstance(one, Example) else one for one in examples_of(query).like]
    rows = snapshot.rows_of([i for i in ids if i is not None])
    codes = snapshot.columns.group.codes
    return snapshot.row_ids[np.isin(codes, codes[rows[rows >= 0]])]
