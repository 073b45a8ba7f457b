"""Which songs pass a filter: the one rule of searches, maps and playlists, whoever asks for them."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from musicsim.explorer.requests.filters import Filters
from musicsim.explorer.snapshot.snapshot import Snapshot

__all__ = ["passing"]


def passing(snapshot: Snapshot, filters: Filters) -> npt.NDArray[np.bool_] | None:
    """Which rows pass, bool (n_indexed,); None where the filter is empty."""
    columns = snapshot.columns
    parts = [
        getattr(columns, name).among(wanted)
        for name, wanted in (
            ("artist", filters.artists),
            ("genre", filters.genres),
            ("folder", filters.folders),
        )
        if wanted
    ]
    if filters.no_artists:
        parts.append(~columns.artist.among(filters.no_artists))
    if filters.tags:
        parts.append(_tagged(snapshot, filters.tags))
    if filters.no_tags:
        parts.append(~_tagged(snapshot, filters.no_tags))
    if filters.years is not None:
        first, last = filters.years
        parts.append((columns.year > 0) & (first <= columns.year) & (columns.year <= last))
    if filters.duration_s is not None:
        shortest, longest = filters.duration_s
        parts.append((shortest <= columns.duration_s) & (columns.duration_s <= longest))
    return np.logical_and.reduce(parts) if parts else None


def _tagged(snapshot: Snapshot, tags: Iterable[str]) -> npt.NDArray[np.bool_]:
    """Which rows have one of some words as a tag or as their genre."""
    ids = snapshot.library.listening.songs_tagged(tags)
    return snapshot.columns.genre.among(tags) | np.isin(snapshot.row_ids, ids)
