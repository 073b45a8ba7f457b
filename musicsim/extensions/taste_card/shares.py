"""Shares of the parts of the sound in a listener's answers, with bands.

An answer chooses one of several options, such as the odd song. Each option has a cost for each part: a squared distance
in that part, divided by its mean over the library (:func:`musicsim.explorer.survey.tastes.answer_costs`). The listener
chooses option c with probability proportional to exp(-psi . cost_c). A part's share is psi_g / sum(psi). The sum
measures how decided the listener is, so it is estimated, too.

The estimate minimizes a convex function over psi >= 0: the negative log likelihood plus |psi|^2 / (2 * 20^2). With this
weak normal prior, the minimum is unique and finite even if the answers never contradict a part.

A band contains all shares that a likelihood ratio test does not reject at the 5% level (profile likelihood). The other
parts' psi may be negative in this test, because the test would be too strict or too lax if true shares are near 0. The
critical value is that of F with 1 and n - p degrees of freedom instead of chi squared, for small n.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from musicsim import blas
from musicsim._arrays import BoolArray, Float64Array

_PRIOR_SD = 20.0
_MAX_STEPS, _TOLERANCE = 100, 1e-10  # of Newton's method; the tolerance is the decrease of the loss
_PRECISION = 1e-4  # of the ends of a band


@dataclass(frozen=True, slots=True)
class Band:
    """A share of the distances, with the ends of its 95% band, from 0 to 1."""

    share: float
    low: float
    high: float


class Choices:
    """Answers as differences of costs between the other options and the chosen one."""

    def __init__(self, differences: Sequence[Float64Array]) -> None:
        """`differences` has an array for each answer, (n_others, n_parts); positive: the chosen option costs less."""
        self._D = np.zeros((len(differences), max(map(len, differences)), differences[0].shape[1]))
        self._is_none = np.ones(self._D.shape[:2], dtype=np.bool_)  # True if an answer has fewer options
        self.n_answers, _, self.n_parts = self._D.shape
        for row, given in enumerate(differences):
            self._D[row, : len(given)], self._is_none[row, : len(given)] = given, False

    def are_predicted(self, psi: Float64Array) -> BoolArray:
        """Return True for each answer whose chosen option costs less than all others, (n,)."""
        return np.all((self._D @ psi > 0) | self._is_none, axis=1)

    def loss(self, psi: Float64Array) -> tuple[float, Float64Array, Float64Array]:
        """Return the function to minimize, its gradient (p,) and its Hessian (p, p)."""
        utilities = np.where(self._is_none, -np.inf, -(self._D @ psi))
        top = utilities.max(axis=1, initial=0.0)  # the chosen option has utility 0
        odds = np.exp(utilities - top[:, None])
        total = odds.sum(axis=1) + np.exp(-top)
        p = odds / total[:, None]
        means = np.einsum("no,nog->ng", p, self._D)
        value = float((top + np.log(total)).sum() + psi @ psi / (2 * _PRIOR_SD**2))
        gradient = psi / _PRIOR_SD**2 - means.sum(axis=0)
        hessian = np.einsum("no,nog,noh->gh", p, self._D, self._D) - means.T @ means + np.eye(len(psi)) / _PRIOR_SD**2
        return value, gradient, hessian


class Fit:
    """The shares that fit the answers best, and their bands."""

    def __init__(self, choices: Choices) -> None:
        self._choices, self._units = choices, np.eye(choices.n_parts)

    @cached_property
    def free(self) -> tuple[float, Float64Array]:
        """The smallest loss for any psi, and its psi."""
        return self._minimize(self._units)

    @cached_property
    def psi(self) -> Float64Array:
        """The best psi >= 0, (n_parts,)."""
        from scipy.optimize import minimize

        found = minimize(
            lambda psi: self._choices.loss(psi)[:2], np.maximum(self.free[1], 0.0), jac=True, method="L-BFGS-B",
            bounds=[(0, None)] * len(self._units), options={"ftol": 1e-14, "gtol": 1e-9},
        )  # fmt: skip
        return np.asarray(found.x)

    @cached_property
    def bands(self) -> list[Band]:
        """The shares with their bands; equal shares if the answers follow no part."""
        from scipy.stats import f

        total, n_parts = self.psi.sum(), len(self._units)
        shares = self.psi / total if total > 0 else np.full(n_parts, 1 / n_parts)
        critical = float(f.ppf(0.95, 1, max(self._choices.n_answers - n_parts, 1)))
        with blas.one_blas_thread():  # the matrices are small
            return [self._band(part, share, critical / 2) for part, share in enumerate(shares.tolist())]

    def _band(self, part: int, share: float, margin: float) -> Band:
        least, psi = self.free
        best = float(np.clip(psi[part] / psi.sum(), 0, 1)) if psi.sum() > 0 else share
        # if even the best share from 0 to 1 is rejected, the band contains the shares that explain almost as much
        limit = margin + max(least, self.profile(part, best) - margin)
        ends = []
        for end in (0.0, 1.0):
            inside, outside = best, end
            if self.profile(part, end) <= limit:
                inside = end
            while abs(inside - outside) > _PRECISION:
                middle = (inside + outside) / 2
                inside, outside = (middle, outside) if self.profile(part, middle) <= limit else (inside, middle)
            ends.append(inside)
        return Band(share, min(ends[0], share), max(ends[1], share))

    def profile(self, part: int, share: float) -> float:
        """Return the smallest loss for a share of one part; the psi of the parts sum to 0 or more."""
        others = np.delete(self._units, part, axis=1)
        sums_to_zero = others[:, 1:] - others[:, :1]
        # a basis of the psi with psi[part] = share * sum(psi); if the share is 1, the others sum to 0
        own = self._units[:, [part]]
        basis = np.hstack([own, sums_to_zero]) if share == 1 else others + share / (1 - share) * own
        value, psi = self._minimize(basis)
        return value if psi.sum() >= 0 else self._minimize(sums_to_zero)[0]

    def _minimize(self, basis: Float64Array) -> tuple[float, Float64Array]:
        """Return the smallest loss over the span of the columns of `basis` (p, k), and its psi, by Newton's method."""
        psi = np.zeros(len(basis))
        value, gradient, hessian = self._choices.loss(psi)
        for _ in range(_MAX_STEPS):
            step = basis @ np.linalg.solve(basis.T @ hessian @ basis, basis.T @ gradient)
            decrease, length = float(gradient @ step), 1.0
            if decrease < _TOLERANCE:
                break
            # halve the step until the loss falls by a quarter of the linear prediction
            while (now := self._choices.loss(psi - length * step))[
                0
            ] > value - length * decrease / 4 and length > 1e-12:
                length /= 2
            psi = psi - length * step
            value, gradient, hessian = now
        return value, psi
