"""Groups of songs by their listeners: the edges from collaborative filtering (thesis, section 7.6.2)."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from scipy import sparse

from musicsim._arrays import Float64Array, Int64Array
from musicsim._checks import check_whole
from musicsim.playlist.cooccurrence import group_vectors
from musicsim.playlist.counts import check_counts
from musicsim.playlist.factors import als_factors, bpr_factors

_LEARNING_RATE, _PENALTY = 0.05, 1e-4  # the latter is lambda in the thesis
_BPR_PASSES = 100
_ALS_PASSES = 15


def _song_factors(plays: sparse.csr_matrix, n_factors: int, method: str, rng: np.random.Generator) -> Float64Array:
    """Return a vector for each song, (n_songs, n_factors), without the bias of BPR (popularity)."""
    if method == "bpr":
        return bpr_factors(
            plays, n_factors, learning_rate=_LEARNING_RATE, penalty=_PENALTY, n_passes=_BPR_PASSES, random_state=rng
        )[1]
    return als_factors(plays, n_factors, penalty=_PENALTY, n_passes=_ALS_PASSES, random_state=rng)[1]


def listener_clusters(
    plays: Any,
    sizes: Sequence[int] = (16, 64, 256),
    *,
    n_factors: int = 32,
    method: Literal["bpr", "als"] = "bpr",
    random_state: int | np.random.Generator | None = None,
) -> dict[str, Int64Array]:
    """Group songs by the listeners who play them, at several granularities.

    Parameters
    ----------
    plays : sparse or dense matrix of shape (n_listeners, n_songs), not negative; each listener's plays of each song
    sizes : sequence of int; numbers of groups; sizes above half the number of played songs are skipped
    n_factors : int >= 1; length of the vectors of songs and listeners
    method : {"bpr", "als"}
        "bpr" is Bayesian personalized ranking (Rendle et al., UAI 2009), as in the thesis. Played songs rank above
        others; the number of plays has no effect. "als" is weighted least squares (Hu, Koren and Volinsky, ICDM 2008),
        with the number of plays as weights.
    random_state : int, numpy Generator or None

    Returns
    -------
    dict from label to int array of shape (n_songs,)
        Argument of `build_edges(listener_clusters=...)`; -1 for songs without plays. Empty if too few were played.

    Notes
    -----
    Groups depend on the directions of the factors, not on their lengths or biases (popularity). This needs 44 bytes per
    play, and 12 (n_listeners + n_songs) n_factors bytes.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.playlist import listener_clusters
    >>> plays = np.kron(np.eye(2), np.ones((6, 4)))  # two groups of listeners, each with its own four songs
    >>> clusters = listener_clusters(plays, [2], n_factors=2, method="als", random_state=0)["2"]
    >>> len(set(clusters[:4])), len(set(clusters[4:])), bool(clusters[0] != clusters[4])
    (1, 1, True)
    """
    if method not in ("bpr", "als"):
        raise ValueError(f"method={method!r} must be 'bpr' or 'als'")
    check_whole("n_factors", n_factors, 1)
    matrix = check_counts(plays, np.float64, "plays", "how often each listener played each song")
    played = np.flatnonzero(np.bincount(matrix.indices, minlength=matrix.shape[1]))
    rng = np.random.default_rng(random_state)
    vectors = np.zeros((matrix.shape[1], 0))
    if any(2 * k <= played.size for k in sizes):  # otherwise there are no groups
        used = matrix[:, played]
        used = used[np.flatnonzero(np.diff(used.indptr))]
        vectors = np.zeros((matrix.shape[1], n_factors))
        vectors[played] = _song_factors(used, n_factors, method, rng)
    return group_vectors(vectors, sizes, random_state=rng)
