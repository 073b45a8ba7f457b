"""Probability product kernel of timbre, between Gaussian mixtures of frames."""

import numpy as np
from scipy.special import logsumexp

from musicsim._arrays import Float64Array
from musicsim._checks import check_type
from musicsim.mixtures.kernels import compute_log_overlaps
from musicsim.mixtures.songs import SongMixtures


def gmm_kernel(
    A: SongMixtures,
    B: SongMixtures | None = None,
    *,
    exponent: float = 1.0,
    n_samples: int = 10_000,
    random_state: int | np.random.Generator | None = 0,
) -> Float64Array:
    """Return the probability product kernel between Gaussian mixtures (Jebara et al. 2004).

    Parameters
    ----------
    A : SongMixtures of n songs
    B : SongMixtures of m songs over the same features; A when None
    exponent : 1 or 0.5
        1 integrates p q in closed form. 1/2 integrates sqrt(p q) as in the thesis (2.5.2); this is estimated by
        sampling, because it has no closed form for mixtures.
    n_samples : int >= 1; number of samples from the mean of all mixtures, for exponent 1/2
    random_state : int, Generator or None; seed of the samples

    Returns
    -------
    ndarray of shape (n, m), float64, from 0 to 1; 1 for equal songs

    Notes
    -----
    The integral of p q is the sum over pairs of components of w w' N(m; m', v + v'). It is divided by the square roots
    of the integrals of p^2 and q^2. In 39 dimensions, songs hardly overlap, and the kernel is close to the identity
    (less so with exponent 1/2). The sampled kernel is an inner product of n_samples values per song. So it is positive
    semidefinite, with an error below sqrt(n / n_samples).

    With 8 components per song, it takes 64 pairs of components per pair of songs, or 8 densities per song and sample.
    It needs memory for the result and float64 copies of the mixtures, or 8 n_samples bytes per song.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.kernels import gmm_kernel
    >>> from musicsim.mixtures import fit_mixtures
    >>> rng = np.random.default_rng(0)
    >>> songs = [rng.normal(loc=kind, size=(500, 2)) for kind in (0, 0, 2)]
    >>> K = gmm_kernel(fit_mixtures(songs, n_components=2, random_state=0))
    >>> K.shape, bool(K[0, 1] > 0.9 > K[0, 2])
    ((3, 3), True)
    """
    left = _mixture_parts(A)
    right = left if B is None else _mixture_parts(B)
    if left[1].shape[2] != right[1].shape[2]:
        raise ValueError(
            f"A has {left[1].shape[2]} features, but B has {right[1].shape[2]}: fit both to frames of the same kind."
        )
    if exponent not in (0.5, 1.0):
        raise ValueError(f"exponent={exponent!r} must be 1 or 0.5.")
    if exponent == 0.5:
        return _sample_root_kernel(
            [left] if B is None else [left, right], n_samples, np.random.default_rng(random_state)
        )
    overlap = compute_log_overlaps(*left, *right)
    own_left = _self_overlap(left)
    own_right = own_left if B is None else _self_overlap(right)
    overlap -= 0.5 * own_left[:, None]
    overlap -= 0.5 * own_right[None, :]
    np.exp(overlap, out=overlap)
    return np.minimum(overlap, 1.0, out=overlap)


_Parts = tuple[Float64Array, Float64Array, Float64Array]
"""Log weights, means and variances of mixtures."""


def _sample_root_kernel(sides: list[_Parts], n_samples: int, rng: np.random.Generator) -> Float64Array:
    """Return the integrals of sqrt(p q) as means of sqrt(p / r) sqrt(q / r) over samples from r, the mean mixture."""
    sizes = np.cumsum([len(parts[0]) for parts in sides])
    drawn = []
    for song in rng.integers(sizes[-1], size=n_samples):
        side = int(np.searchsorted(sizes, song, side="right"))
        log_weights, means, variances = (part[song - sizes[side]] for part in sides[side])  # a negative index
        reach = np.cumsum(np.exp(log_weights))
        c = min(int(np.searchsorted(reach, rng.random() * reach[-1], side="right")), len(reach) - 1)
        drawn.append(rng.normal(means[c], np.sqrt(variances[c])))
    points = np.array(drawn)[:, None]
    # a point is a mixture with one component of width 0
    at_points = np.zeros((n_samples, 1)), points, np.zeros_like(points)
    logs = [compute_log_overlaps(*parts, *at_points) for parts in sides]
    log_mean = logsumexp(np.concatenate(logs), axis=0)
    roots = [np.exp(0.5 * (log - log_mean)) for log in logs]
    maps = [root / np.maximum(np.linalg.norm(root, axis=1, keepdims=True), 1e-300) for root in roots]
    return np.minimum(maps[0] @ maps[-1].T, 1.0)


def _mixture_parts(mixtures: SongMixtures) -> _Parts:
    check_type("a set of songs", mixtures, SongMixtures, "fit_mixtures computes from frames")
    weights, means, variances = (
        np.ascontiguousarray(part, dtype=np.float64) for part in (mixtures.weights, mixtures.means, mixtures.variances)
    )
    return np.log(weights), means, variances


def _self_overlap(parts: _Parts) -> Float64Array:
    """Return the log of the integral of p^2 for each song."""
    n_songs = len(parts[0])
    own = np.empty(n_songs)
    for i in range(n_songs):
        song = tuple(part[i : i + 1] for part in parts)
        own[i] = compute_log_overlaps(*song, *song)[0, 0]
    return own
