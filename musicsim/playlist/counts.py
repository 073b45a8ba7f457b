"""Counts of transitions and first songs in playlists, and checks of tables of counts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from musicsim._arrays import Int64Array


def _flatten(playlists: Sequence[Sequence[int]], n_songs: int) -> tuple[Int64Array, Int64Array]:
    """Check the playlists; return all their songs as one array, and their lengths."""
    parts = []
    for number, playlist in enumerate(playlists):
        songs = np.asarray(playlist)
        if songs.size == 0:
            songs = songs.astype(np.int64).reshape(0)
        if songs.ndim != 1 or songs.dtype.kind not in "iu":
            raise ValueError(f"playlists[{number}] must be a list of song rows (int), not {playlist!r:.60}")
        parts.append(songs)
    lengths = np.array([part.size for part in parts], dtype=np.int64)
    songs = np.concatenate([np.empty(0, dtype=np.int64), *parts]).astype(np.int64)
    wrong = np.flatnonzero((songs < 0) | (songs >= n_songs))
    if wrong.size:
        number = int(np.searchsorted(np.cumsum(lengths), wrong[0], side="right"))
        raise ValueError(f"playlists[{number}] has song {songs[wrong[0]]}, but the model has songs 0 to {n_songs - 1}")
    return songs, lengths


@dataclass(frozen=True, slots=True)
class Counts:
    """Playlists as counts, with equal transitions merged.

    `pairs` has shape (n_pairs, 2). For every transition, in the order of the playlists, `pair_of` is the row in
    `pairs`, and `list_of` is the playlist. `first_songs` are the first songs of the non-empty playlists `first_lists`.
    Transitions from a song to itself are excluded; `repeats` counts them per playlist.
    """

    pairs: Int64Array
    pair_of: Int64Array
    list_of: Int64Array
    first_songs: Int64Array
    first_lists: Int64Array
    repeats: Int64Array

    @classmethod
    def from_playlists(cls, playlists: Sequence[Sequence[int]], n_songs: int) -> "Counts":
        songs, lengths = _flatten(playlists, n_songs)
        owner = np.repeat(np.arange(lengths.size), lengths)
        inside = owner[1:] == owner[:-1]
        same = inside & (songs[1:] == songs[:-1])
        moves = np.flatnonzero(inside & ~same)
        keys, pair_of = np.unique(songs[moves] * n_songs + songs[moves + 1], return_inverse=True)
        starts = (np.cumsum(lengths) - lengths)[lengths > 0]
        return cls(
            pairs=np.stack(np.divmod(keys, max(n_songs, 1)), axis=1),
            pair_of=pair_of,
            list_of=owner[moves],
            first_songs=songs[starts],
            first_lists=np.flatnonzero(lengths > 0),
            repeats=np.bincount(owner[1:][same], minlength=lengths.size),
        )


def check_counts(table: Any, dtype: npt.DTypeLike, argument: str, meaning: str) -> sparse.csr_matrix:
    """Return a table of counts in CSR format without stored zeros; raise ValueError for negative or infinite entries.

    The result is a matrix, because scikit-learn < 1.6 does not always accept sparse arrays.
    """
    matrix = sparse.csr_matrix(table, dtype=dtype)
    if not np.all(np.isfinite(matrix.data)) or np.any(matrix.data < 0):
        raise ValueError(f"{argument} must be finite and not negative: {meaning}")
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix
