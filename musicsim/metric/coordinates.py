"""Coordinates in which a metric is learned: the same problem, better conditioned.

The curvature of the slack along a pair of columns grows with the product of their variances, so with a decaying
spectrum a first-order method is slow along small variances. Any invertible map B of the songs gives the same problem
for B^-T W B^-1 with an adapted penalty. B consists of the principal axes, each divided by a power of its deviation:
1/2, between equal curvature (1) and equal penalty (0), needed the fewest cuts (28; with 0, 51). Directions in which all
songs are equal are dropped, because 0 is the best metric there.
"""

from dataclasses import dataclass

import numpy as np

from musicsim._arrays import BoolArray, Float64Array, Int64Array

_POWER = 0.5
_ZERO = 1e-7  # Deviation relative to the largest below which a direction counts as constant: about the root of rounding
_ROUNDING = 1e-12  # The same, relative to the root mean square of X: the rounding of a constant column


def _varies(deviations: Float64Array, X: Float64Array) -> BoolArray:
    largest, size = deviations.max(initial=0.0), np.sqrt(np.mean(X * X)) if X.size else 0.0
    return np.asarray(deviations > max(_ZERO * largest, _ROUNDING * size))


@dataclass(frozen=True, slots=True)
class Axes:
    """Map ``X @ basis`` for a full metric; `weights` are those of the trace of the learned metric."""

    weights: Float64Array
    basis: Float64Array

    @classmethod
    def principal(cls, X: Float64Array) -> "Axes":
        """Return principal axes, for the trace as penalty."""
        centered = X - X.mean(axis=0)
        variances, axes = np.linalg.eigh(centered.T @ centered / len(X))
        deviations = np.sqrt(np.maximum(variances, 0.0))
        varies = _varies(deviations, X)
        scale = deviations[varies] ** -_POWER
        return cls(scale**2, axes[:, varies] * scale)

    @classmethod
    def identity(cls, n_columns: int) -> "Axes":
        """Return the columns of X, for a penalty that depends on the coordinates."""
        return cls(np.ones(n_columns), np.eye(n_columns))

    def apply(self, X: Float64Array) -> Float64Array:
        return X @ self.basis

    def metric(self, flat: Float64Array) -> Float64Array:
        """Return the metric in the original coordinates, (d, d)."""
        metric = self.basis @ flat.reshape(len(self.weights), -1) @ self.basis.T
        return 0.5 * (metric + metric.T)


@dataclass(frozen=True, slots=True)
class Columns:
    """Map ``X[:, columns] * scale`` for a diagonal metric; `weights` as in :class:`Axes`."""

    weights: Float64Array
    columns: Int64Array
    scale: Float64Array
    n_columns: int

    @classmethod
    def from_songs(cls, X: Float64Array, penalty: Float64Array | None = None) -> "Columns":
        """Return scaled columns, for a penalty with weights of columns, by default 1."""
        deviations = X.std(axis=0)
        columns = np.flatnonzero(_varies(deviations, X))
        scale = deviations[columns] ** -_POWER
        weights = scale**2 if penalty is None else scale**2 * penalty[columns]
        return cls(weights, columns, scale, X.shape[1])

    def apply(self, X: Float64Array) -> Float64Array:
        return X[:, self.columns] * self.scale

    def metric(self, flat: Float64Array) -> Float64Array:
        """Return the metric in the original coordinates, (d, d)."""
        diagonal = np.zeros(self.n_columns)
        diagonal[self.columns] = flat * self.scale**2
        return np.diag(diagonal)
