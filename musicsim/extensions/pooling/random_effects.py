"""Random-effects meta-analysis: REML, with the intervals of Hartung, Knapp, Sidik and Jonkman.

Library i measures ``y_i ~ N(theta_i, v_i)``, and libraries differ: ``theta_i ~ N(mu, tau^2)``. `tau` is estimated by
restricted maximum likelihood (Viechtbauer, J. Educ. Behav. Stat. 30, 2005). The interval of `mu` has the modification
of Röver, Knapp and Friede (BMC Med. Res. Methodol. 15:99, 2015), so it is never narrower than without the correction.
Prediction intervals follow Higgins, Thompson and Spiegelhalter (J. R. Stat. Soc. A 172, 2009, equation 12).
"""

from dataclasses import dataclass
from math import nan, sqrt

import numpy as np
import numpy.typing as npt

from musicsim._arrays import Float64Array


@dataclass(frozen=True, slots=True)
class Combined:
    """The mean over libraries with its 95% interval, and the spread between libraries."""

    n: int  # number of libraries
    mean: float
    low: float
    high: float
    tau: float  # standard deviation of the true differences; nan for one library
    i2: float  # share of the spread that sampling errors do not explain, from 0 to 1; nan for one library
    predicted_low: float  # 95% prediction interval for another library's true difference; nan below three libraries
    predicted_high: float


def combine_effects(effects: npt.ArrayLike, errors: npt.ArrayLike) -> Combined:
    """Combine finite effects (n,) with their standard errors (n,), which are above 0; n >= 1.

    The interval of a single library is normal. The interval of two libraries has one degree of freedom.
    """
    from scipy.stats import t

    y, v = np.asarray(effects, np.float64), np.asarray(errors, np.float64) ** 2
    n = len(y)
    tau2 = estimate_tau2(y, v)
    w = 1 / (v + tau2)
    mean = float(w @ y / w.sum())
    if n == 1:
        half = 1.959964 * sqrt(v[0])
        return Combined(1, mean, mean - half, mean + half, nan, nan, nan, nan)
    error = sqrt(max(1.0, float(w @ (y - mean) ** 2) / (n - 1)) / float(w.sum()))
    half = float(t.ppf(0.975, n - 1)) * error
    predicted = float(t.ppf(0.975, n - 2)) * sqrt(tau2 + error**2) if n > 2 else nan
    fixed = 1 / v
    typical = (n - 1) * fixed.sum() / (fixed.sum() ** 2 - fixed @ fixed)  # typical sampling variance
    i2 = tau2 / (tau2 + float(typical))
    return Combined(n, mean, mean - half, mean + half, sqrt(tau2), i2, mean - predicted, mean + predicted)


def estimate_tau2(y: Float64Array, v: Float64Array) -> float:
    """Return the variance between libraries with the largest restricted likelihood."""
    from scipy.optimize import minimize_scalar

    def deviance(tau2: float) -> float:
        """Return minus twice the restricted log likelihood, without its constant."""
        w = 1 / (v + tau2)
        return float(w @ (y - w @ y / w.sum()) ** 2 - np.log(w).sum() + np.log(w.sum()))

    largest = float(np.ptp(y)) ** 2  # the likelihood falls beyond the squared range
    if largest == 0:
        return 0.0
    found = minimize_scalar(deviance, bounds=(0, largest), options={"xatol": 1e-9 * largest})
    return float(found.x) if found.fun < deviance(0) else 0.0
