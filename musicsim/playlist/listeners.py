"""Groups of songs by their listeners: the edges from collaborative filtering (thesis, section 7.6.2)."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from scipy import sparse

from musicsim._arrays import Float64Array, Int64Array
from musicsim._checks import check_whole
from musicsim.blas import one_blas_thread
from musicsim.playlist.cooccurrence import group_vectors
from musicsim.playlist.counts import check_counts

_LEARNING_RATE, _REGULARIZATION = 0.05, 1e-4  # the latter is lambda in the thesis
_BPR_PASSES = 100
_ALS_PASSES = 15


def _song_factors(plays: sparse.csr_matrix, n_factors: int, method: str, seed: int) -> Float64Array:
    """Return a vector for each song, (n_songs, n_factors), without the bias of BPR (popularity)."""
    options: Any = {"factors": n_factors, "regularization": _REGULARIZATION, "num_threads": 1, "random_state": seed}
    if method == "bpr":
        from implicit.cpu.bpr import BayesianPersonalizedRanking

        model = BayesianPersonalizedRanking(learning_rate=_LEARNING_RATE, iterations=_BPR_PASSES, **options)
    else:
        from implicit.cpu.als import AlternatingLeastSquares

        model = AlternatingLeastSquares(iterations=_ALS_PASSES, **options)
    with one_blas_thread():  # otherwise, the library implicit warns about slow threads
        model.fit(plays, show_progress=False)
    return np.asarray(model.item_factors[:, :n_factors], dtype=np.float64)


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
    The library implicit runs with one thread, so that a seed is reproducible: its threads update shared factors without
    locks. Groups depend on the directions of the factors, not on their lengths or biases (popularity). This needs 16
    bytes per play, and 12 (n_listeners + n_songs) n_factors bytes.
    """
    if method not in ("bpr", "als"):
        raise ValueError(f"method={method!r} must be 'bpr' or 'als'")
    check_whole("n_factors", n_factors, 1)
    matrix = check_counts(plays, np.float32, "plays", "how often each listener played each song")
    played = np.flatnonzero(np.bincount(matrix.indices, minlength=matrix.shape[1]))
    rng = np.random.default_rng(random_state)
    vectors = np.zeros((matrix.shape[1], 0))
    if any(2 * k <= played.size for k in sizes):  # otherwise there are no groups
        used = matrix[:, played]
        used = used[np.flatnonzero(np.diff(used.indptr))]
        vectors = np.zeros((matrix.shape[1], n_factors))
        vectors[played] = _song_factors(used, n_factors, method, int(rng.integers(2**31)))
    return group_vectors(vectors, sizes, random_state=rng)
