"""Groups and neighbors of songs by co-occurrence in playlists, with the settings of the experiments."""

from collections.abc import Sequence

import numpy as np

from musicsim._arrays import Int64Array
from musicsim.playlist import cooccurrence_vectors, group_vectors, nearest_by_direction


def cooccurrence_clusters(playlists: Sequence[Sequence[int]], n_songs: int, seed: int) -> dict[str, Int64Array]:
    """Return three groupings each into 16, 64, 256 and 800 groups."""
    rng = np.random.default_rng(seed)
    vectors = cooccurrence_vectors(playlists, n_songs, random_state=rng)
    return group_vectors(vectors, (16, 64, 256, 800), n_repeats=3, random_state=rng)


def cooccurrence_neighbors(playlists: Sequence[Sequence[int]], n_songs: int, seed: int) -> Int64Array:
    """Return the nearest songs to each song.

    Their number is 16/3 times the square root of the number of songs (300 for 3,168 songs), at least 10. This was the
    best value tested on the smaller yes.com playlists.
    """
    vectors = cooccurrence_vectors(playlists, n_songs, random_state=seed)
    return nearest_by_direction(vectors, max(10, round(16 / 3 * n_songs**0.5)))
