"""Random-effects meta-analysis: REML, with the intervals of Hartung, Knapp, Sidik and Jonkman.

Library i measures ``y_i ~ N(theta_i, v_i)``, and libraries differ: ``theta_i ~ N(mu, tau^2)``. `tau` is estimated by
restricted maximum likelihood (Viechtbauer, J. Educ. Behav. Stat. 30, 2005). The interval of `mu` has the modification
of Röver, Knapp and Friede (BMC Med. Res. Methodol. 15:99, 2015): it is never narrower than without the correction of
Hartung and Knapp. Prediction intervals follow Higgins, Thompson and Spiegelhalter (J. R. Stat. Soc. A 172, 2009,
equation 12).
"""

from dataclasses import dataclass
from math import nan, sqrt

import numpy as np
import numpy.typing as npt

from musicsim._arrays import Float64Array

_N_GRID = 100  # number of values of tau^2 around which the likelihood is searched for its maximum
_SMALLEST = 1e-6  # smallest positive value of tau^2 on the grid, as a share of the largest


@dataclass(frozen=True, slots=True)
class Combined:
    """The mean of all libraries, and the spread between them."""

    n: int  # number of libraries
    mean: float
    low: float
    high: float
    tau: float  # standard deviation of the true differences; nan for one library
    i2: float  # share of the spread that sampling errors do not explain, from 0 to 1; nan for one library
    predicted_low: float  # prediction interval for the true difference in another library; nan below three libraries
    predicted_high: float


def combine_effects(effects: npt.ArrayLike, errors: npt.ArrayLike, *, level: float = 0.95) -> Combined:
    """Combine effects with their standard errors.

    Parameters
    ----------
    effects, errors : array-like of shape (n,), n >= 1; finite, and `errors` are above 0
    level : float, 0 < level < 1; probability of the intervals

    Raises
    ------
    ValueError
        If an effect is not finite, or an error is not above 0.

    Notes
    -----
    A single library has a normal interval. Two libraries have an interval, but it is very wide (one degree of freedom).
    """
    from scipy.stats import norm, t

    y, s = np.atleast_1d(np.asarray(effects, np.float64)), np.atleast_1d(np.asarray(errors, np.float64))
    if y.shape != s.shape or y.ndim != 1 or not len(y):
        raise ValueError(f"effects has shape {y.shape} and errors has shape {s.shape}; both must be (n,), n >= 1.")
    if not (np.isfinite(y).all() and np.isfinite(s).all() and (s > 0).all()):
        raise ValueError("effects must be finite, and errors must be finite and above 0.")
    n, tail = len(y), (1 + level) / 2
    if n == 1:
        half = float(norm.ppf(tail) * s[0])
        return Combined(1, float(y[0]), float(y[0]) - half, float(y[0]) + half, nan, nan, nan, nan)
    v = s**2
    tau2 = estimate_tau2(y, v)
    w = 1 / (v + tau2)
    mean = float(w @ y / w.sum())
    error = sqrt(max(1.0, float(w @ (y - mean) ** 2) / (n - 1)) / float(w.sum()))
    half = float(t.ppf(tail, n - 1)) * error
    fixed = 1 / v
    typical = (n - 1) * fixed.sum() / (fixed.sum() ** 2 - (fixed**2).sum())  # typical sampling variance
    ahead = float(t.ppf(tail, n - 2)) * sqrt(tau2 + error**2) if n > 2 else nan
    i2 = tau2 / (tau2 + float(typical))
    return Combined(n, mean, mean - half, mean + half, sqrt(tau2), i2, mean - ahead, mean + ahead)


def estimate_tau2(y: Float64Array, v: Float64Array) -> float:
    """Return the variance between libraries that maximizes the restricted likelihood.

    The likelihood may have several maxima. The best point of a grid is therefore refined, and compared with 0.
    """
    from scipy.optimize import minimize_scalar

    largest = float(np.ptp(y)) ** 2  # the likelihood falls beyond the squared range
    if largest == 0:
        return 0.0
    grid = np.concatenate([[0.0], np.geomspace(_SMALLEST * largest, largest, _N_GRID)])
    best = int(np.argmin(_deviance(grid, y, v)))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, _N_GRID)]
    found = minimize_scalar(
        lambda tau2: float(_deviance(np.array([tau2]), y, v)[0]), bounds=(low, high), method="bounded",
        options={"xatol": 1e-9 * high},
    )  # fmt: skip
    return float(found.x) if found.fun < _deviance(grid[:1], y, v)[0] else 0.0


def _deviance(tau2: Float64Array, y: Float64Array, v: Float64Array) -> Float64Array:
    """Return minus twice the restricted log likelihood for each `tau2`, without its constant."""
    w = 1 / (v + tau2[:, None])
    total = w.sum(axis=1)
    mean = (w @ y) / total
    spread: Float64Array = -np.log(w).sum(axis=1) + np.log(total) + (w * (y - mean[:, None]) ** 2).sum(axis=1)
    return spread
