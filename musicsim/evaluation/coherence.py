"""How much the order of a playlist matters: are songs in a row more alike than songs of the list in a random order?"""

import numpy as np
import numpy.typing as npt


def order_coherence(features: npt.ArrayLike, lag: int = 1) -> float:
    """Return how much more alike songs in a row are than they would be on average if the list were shuffled.

    The measure is 1 - mean |x_i - x_(i + lag)|² / mean |x_i - x_j|², where the second mean is over all pairs of
    different places. A shuffle makes both means equal in expectation, so random orders have mean 0 exactly, whatever
    the songs and the length. Close songs next to each other give up to 1; lists that alternate give less than 0. In
    long lists of one feature, it is the autocorrelation at this lag. With lag 1, it is a scaled form of the ratio of
    J. von Neumann, Distribution of the Ratio of the Mean Square Successive Difference to the Variance, 1941.

    Parameters
    ----------
    features : array-like of shape (n_songs,) or (n_songs, n_features)
        The songs in the list's order. For categories, use one column per category. A song with nan is unknown: pairs
        with it do not count, but it keeps its place.
    lag : int >= 1; distance between the places of a pair

    Returns
    -------
    float
        At most 1; nan if all known songs are equal or no pair is known.

    Raises
    ------
    ValueError
        If `lag` is less than 1, or `features` has more than two dimensions.

    Examples
    --------
    >>> import numpy as np
    >>> from musicsim.evaluation import order_coherence
    >>> tempo = np.array([80.0, 84.0, 90.0, 96.0, 100.0, 118.0, 120.0, 124.0])
    >>> round(order_coherence(tempo), 2)  # a slow rise
    0.89
    >>> round(order_coherence(tempo[[0, 7, 1, 6, 2, 5, 3, 4]]), 2)  # slow and fast songs alternate
    -0.71
    """
    rows = np.asarray(features, dtype=np.float64)
    if rows.ndim not in (1, 2):
        raise ValueError(f"features has shape {rows.shape}; it must be (n_songs,) or (n_songs, n_features).")
    if lag < 1:
        raise ValueError(f"lag={lag} must be at least 1.")
    rows = rows[:, np.newaxis] if rows.ndim == 1 else rows
    known = np.asarray(np.isfinite(rows).all(axis=1))
    pairs = known[:-lag] & known[lag:]
    n_known = np.count_nonzero(known)
    if not pairs.any() or n_known < 3:
        return float("nan")
    centered = rows - rows[known].mean(axis=0)  # before squares are subtracted, which would lose digits
    # over all pairs of n places: the sum of squares times 2 / (n - 1)
    expected = 2.0 * np.square(centered[known]).sum() / (n_known - 1)
    in_a_row = np.square(centered[lag:][pairs] - centered[:-lag][pairs]).sum(axis=1).mean()
    return float(1.0 - in_a_row / expected) if expected > 0 else float("nan")
