"""Corrections for several comparisons at once."""

import numpy as np
import numpy.typing as npt

from musicsim._arrays import Float64Array
from musicsim._checks import check_whole
from musicsim.evaluation.ranking import paired_groups


def sign_flip_p(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    groups: npt.ArrayLike | None = None,
    n: int = 10_000,
    random_state: int | np.random.Generator | None = None,
) -> float:
    """Return the p-value of the difference between the scores of two methods for the same queries.

    Without a difference, the sign of each artist's summed difference is random. The p-value is the share of random
    signs with which the sum is at least as far from 0; it is at least 1 / (n + 1).

    Parameters
    ----------
    a, b, groups : as in :func:`bootstrap_pairs`
    n : int >= 1; number of random draws
    random_state : int, numpy Generator or None

    See Also
    --------
    holm : For several models.
    bootstrap_pairs : Size of the difference.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.evaluation import sign_flip_p
    >>> learned, plain = np.array([0.7, 0.8, 0.6, 0.9, 0.8]), np.array([0.5, 0.7, 0.5, 0.7, 0.7])
    >>> round(sign_flip_p(learned, plain, random_state=0), 1)  # two of 32 signs are as far from 0
    0.1
    """
    check_whole("n", n, 1)
    sums, _ = paired_groups(a, b, groups)
    rng = np.random.default_rng(random_state)
    # the tolerance counts sums that are equal except for rounding
    limit = abs(sums.sum()) - 1e-12 * np.abs(sums).sum()
    n_far = sum(abs(sums @ rng.choice([-1.0, 1.0], len(sums))) >= limit for _ in range(n))
    return float((1 + n_far) / (1 + n))


def holm(p_values: npt.ArrayLike) -> Float64Array:
    """Return p-values adjusted for their number by Holm's method.

    The i-th smallest of m p-values is multiplied by ``m - i + 1``, and is at least the adjusted smaller ones and at
    most 1. If all values below 0.05 are called differences, the probability of a false one is at most 0.05.

    Parameters
    ----------
    p_values : array-like of shape (m,), from 0 to 1; for example, of each model against the plain distance

    Returns
    -------
    float64 ndarray of shape (m,), in the same order

    References
    ----------
    - S. Holm, A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics 6, 1979.

    Examples
    --------
    >>> from musicsim.evaluation import holm
    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    p = np.asarray(p_values, dtype=np.float64)
    if p.ndim != 1 or not ((p >= 0) & (p <= 1)).all():
        raise ValueError(f"p_values has shape {p.shape}; it must be (m,), with numbers from 0 to 1.")
    order = np.argsort(p, kind="stable")
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    return adjusted
