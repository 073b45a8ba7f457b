"""Songs that words describe, those first that fit most: without a song to be similar to."""

import numpy as np
import numpy.typing as npt

from musicsim.explorer.requests.search import SearchRequest
from musicsim.explorer.search.feedback import Thumbs
from musicsim.explorer.search.query import Example, Hit, find_requested, limited_per_artist
from musicsim.explorer.snapshot.filtering import passing
from musicsim.explorer.snapshot.snapshot import Snapshot
from musicsim.explorer.snapshot.words import understood
from musicsim.library import Song

__all__ = ["find_hits", "rows_fitting"]


def rows_fitting(snapshot: Snapshot, request: SearchRequest) -> npt.NDArray[np.int64]:
    """Rows that pass the words and the other filters of a request, int64, those first that fit most.

    A song fits the more, the further out it is in what the words are about (the slowest of the slow), by the mean of
    its ranks; equal ones are in the order of their rows. Raises as :func:`passing`.
    """
    mask = passing(snapshot, request)
    rows = np.arange(snapshot.n_indexed) if mask is None else np.flatnonzero(mask)
    ranks = np.zeros(len(rows))
    for part in understood(snapshot, request.words).parts:
        if part.along is not None:
            name, sign = part.along
            values = -sign * (-1 if part.is_not else 1) * getattr(snapshot.columns, name)[rows]
            ranks += np.argsort(np.argsort(values, kind="stable"), kind="stable")
    return rows[np.argsort(ranks, kind="stable")]


def find_hits(
    snapshot: Snapshot, query: int | Example | None, request: SearchRequest, thumbs: Thumbs | None = None
) -> list[Hit]:
    """:func:`find_requested` where there is anything to be similar to, else the songs that fit the words best."""
    if query is not None or request.like:
        return find_requested(snapshot, query, request, thumbs)
    rows = rows_fitting(snapshot, request)
    rows = rows[~np.isin(rows, snapshot.rows_of(request.unlike))]
    chosen = limited_per_artist(snapshot, rows, request.k, request.per_artist or None)
    return [Hit(song, None, 0.0, _facts(song)) for song in snapshot.songs_at(rows[chosen])]


def _facts(song: Song) -> str:
    """What can be heard of a song, in words."""
    tempo = f"{song.tempo:.0f} beats/min" if song.tempo else ""
    return " · ".join(fact for fact in (tempo, song.key_words) if fact)
