"""Factors of listeners and songs: short vectors whose products predict who plays which song.

A list of songs may take the place of a listener.
"""

from typing import Any

import numpy as np
from scipy import sparse

from musicsim._arrays import Float64Array
from musicsim.playlist._factor_kernels import ascend, solve_rows
from musicsim.playlist.counts import check_counts

_SPREAD = 0.1  # standard deviation of initial factors, relative to 1 / sqrt(n_factors)
_STEPS = 3  # steps of conjugate gradients per pass


def _check_plays(plays: Any) -> sparse.csr_matrix:
    return check_counts(plays, np.float64, "plays", "how often each listener played each song")


def _draw_factors(n_rows: int, n_factors: int, rng: np.random.Generator) -> Float64Array:
    return rng.normal(scale=_SPREAD / np.sqrt(n_factors), size=(n_rows, n_factors))


def bpr_factors(
    plays: Any,
    n_factors: int,
    *,
    learning_rate: float,
    penalty: float,
    n_passes: int,
    random_state: int | np.random.Generator | None = None,
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Fit factors that rank each listener's songs above others: Bayesian personalized ranking.

    Parameters
    ----------
    plays : sparse or dense matrix of shape (n_listeners, n_songs), not negative; only its zeros matter
    n_factors : int >= 1
    learning_rate, penalty : float; step length, and weight of the squared norms (lambda)
    n_passes : int; steps per play
    random_state : int, numpy Generator or None

    Returns
    -------
    listeners, songs, bias : ndarrays of shapes (n_listeners, n_factors), (n_songs, n_factors) and (n_songs,), float64
        A listener's score of a song is their product plus the song's bias (popularity).

    Raises
    ------
    ValueError
        If plays are negative or infinite.

    See Also
    --------
    als_factors : Uses the number of plays as weights.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.playlist import bpr_factors
    >>> plays = np.kron(np.eye(2), np.ones((6, 4)))  # two groups of listeners, each with its own four songs
    >>> plays[0, 3] = 0  # a song that the first listener does not know yet
    >>> listeners, songs, bias = bpr_factors(plays, 2, learning_rate=0.05, penalty=0.01, n_passes=200, random_state=0)
    >>> scores = listeners @ songs.T + bias
    >>> bool(scores[0, 3] > scores[0, 4:].max())
    True
    """
    plays, rng = _check_plays(plays), np.random.default_rng(random_state)
    listeners = _draw_factors(plays.shape[0], n_factors, rng)
    songs = _draw_factors(plays.shape[1], n_factors, rng)
    bias = np.zeros(plays.shape[1])
    owner = np.repeat(np.arange(plays.shape[0], dtype=np.int32), np.diff(plays.indptr))
    for _ in range(n_passes):
        drawn, others = rng.integers(plays.nnz, size=plays.nnz), rng.integers(plays.shape[1], size=plays.nnz)
        ascend(plays.indptr, plays.indices, owner, drawn, others, listeners, songs, bias, learning_rate, penalty)
    return listeners, songs, bias


def als_factors(
    plays: Any,
    n_factors: int,
    *,
    penalty: float,
    n_passes: int,
    random_state: int | np.random.Generator | None = None,
    alpha: float = 1.0,
) -> tuple[Float64Array, Float64Array]:
    """Fit factors whose products are near 1 for played songs and near 0 for others: weighted least squares.

    Parameters
    ----------
    plays : sparse or dense matrix of shape (n_listeners, n_songs), not negative
    n_factors : int >= 1
    penalty : float > 0; weight of the squared norms (lambda)
    n_passes : int; each improves all listeners and then all songs
    random_state : int, numpy Generator or None
    alpha : float; a pair with r plays has the weight 1 + alpha r

    Returns
    -------
    listeners, songs : ndarrays of shapes (n_listeners, n_factors) and (n_songs, n_factors), float64

    Raises
    ------
    ValueError
        If plays are negative or infinite.

    See Also
    --------
    solve_als : Factors of further listeners.

    Notes
    -----
    Hu, Koren and Volinsky (ICDM 2008), equations 3 to 5. Each pass takes three steps of conjugate gradients from the
    last solution (Takács, Pilászy and Tikk, RecSys 2011): O((n_listeners + n_songs) n_factors^2 + plays.nnz n_factors).

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.playlist import als_factors
    >>> plays = np.kron(np.eye(2), np.ones((6, 4)))  # two groups of listeners, each with its own four songs
    >>> plays[0, 3] = 0  # a song that the first listener does not know yet
    >>> listeners, songs = als_factors(plays, 2, penalty=0.1, n_passes=10, random_state=0)
    >>> scores = listeners @ songs.T
    >>> bool(scores[0, 3] > scores[0, 4:].max())
    True
    """
    plays, rng = _check_plays(plays), np.random.default_rng(random_state)
    by_song = plays.T.tocsr()
    listeners = np.zeros((plays.shape[0], n_factors))
    songs = _draw_factors(plays.shape[1], n_factors, rng)
    for _ in range(n_passes):
        _solve(plays, songs, listeners, penalty, alpha, _STEPS)
        _solve(by_song, listeners, songs, penalty, alpha, _STEPS)
    return listeners, songs


def solve_als(plays: Any, songs: Float64Array, *, penalty: float, alpha: float = 1.0) -> Float64Array:
    """Return the factors of listeners for given factors of songs, (n_listeners, n_factors): equation 4 of Hu et al.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.playlist import als_factors, solve_als
    >>> plays = np.kron(np.eye(2), np.ones((6, 4)))
    >>> _, songs = als_factors(plays, 2, penalty=0.1, n_passes=10, random_state=0)
    >>> newcomer = solve_als([[0, 0, 0, 0, 1, 1, 0, 0]], songs, penalty=0.1)  # played two songs of the second group
    >>> np.argsort(newcomer @ songs.T)[0, 4:] >= 4
    array([ True,  True,  True,  True])
    """
    plays, songs = _check_plays(plays), np.asarray(songs, dtype=np.float64)
    listeners = np.zeros((plays.shape[0], songs.shape[1]))
    _solve(plays, songs, listeners, penalty, alpha, 2 * songs.shape[1])
    return listeners


def _solve(
    plays: sparse.csr_matrix, others: Float64Array, solved: Float64Array, penalty: float, alpha: float, n_steps: int
) -> None:
    base = others.T @ others + penalty * np.eye(others.shape[1])
    solve_rows(plays.indptr, plays.indices, alpha * plays.data.astype(np.float64), others, base, solved, n_steps)
