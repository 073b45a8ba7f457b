"""Sittings: what a person listened to without a long pause. Songs of one sitting are alike, whoever listens."""

import numpy as np
import numpy.typing as npt

MAX_PAUSE_S = 30 * 60
"""Seconds between two starts within one sitting: the custom for visits to web pages, where Catledge and Pitkow
(1995, "Characterizing browsing strategies in the World-Wide Web") found 25.5 minutes. Few songs last longer."""

IntArray = npt.NDArray[np.int64]


def sittings_of(
    listener: IntArray, song_id: IntArray, at: IntArray, longest_pause_s: float = MAX_PAUSE_S
) -> IntArray:
    """Part listens into sittings.

    Parameters
    ----------
    listener, song_id, at : int64 (n_listens,)
        Who started which song at which second, in any order. A song of -1, which nobody knows, keeps a sitting going
        and is left out of it.
    longest_pause_s : float
        Seconds between two starts of one sitting.

    Returns
    -------
    int64 (n, 2)
        Number of a sitting and song id: distinct pairs, sorted, of sittings with two songs at least; sittings are
        numbered from 0 on.

    Notes
    -----
    Memory: 60 bytes a listen while it works, 16 bytes a pair in the end.
    """
    order = np.lexsort((at, listener))
    listener, song_id, at = listener[order], song_id[order], at[order]
    begins = np.r_[True, (np.diff(listener) != 0) | (np.diff(at) > longest_pause_s)][: len(order)]
    known = song_id >= 0
    pairs = np.unique(np.column_stack((np.cumsum(begins)[known], song_id[known])), axis=0)
    _, which, n_songs = np.unique(pairs[:, 0], return_inverse=True, return_counts=True)
    pairs = pairs[n_songs[which] > 1]
    pairs[:, 0] = np.unique(pairs[:, 0], return_inverse=True)[1]
    return pairs
