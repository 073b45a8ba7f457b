"""Linear projections whose signs are the same on every machine and with any number of threads.

The library of matrix products sums in an order that depends on the processor and on the number of threads, so that a
sum close to 0 may come out on either side. Here rows and weights are whole numbers, small enough that every
product and every sum of products is exact in float64: the order no longer matters, nor does a fused multiply-add.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from musicsim._arrays import Float64Array, Int64Array

_ROW_BITS = 24
"""Of an entry of a row, as many as float32 has; beyond ``2 ** _HEADROOM`` times what training rows reach it is cut."""
_HEADROOM = 3
_SUM_BITS = 52
"""Whole numbers up to 2 ** 53 are exact; weights are rounded so that no sum comes near."""


@dataclass(frozen=True, slots=True)
class ExactProjection:
    """x -> x W + b, of rows and weights rounded to grids on which it is exact."""

    center: Float64Array  # (d,): what is taken off each column before rounding
    exponents: Int64Array  # (d,): `2 ** exponents` is the step of each column's grid
    weights: Float64Array  # (d, r), whole numbers
    bias: Float64Array  # (r,), whole numbers
    units: Float64Array  # (r,): what 1 in the products of whole numbers stands for, a power of two

    @classmethod
    def of(cls, X: Float64Array, weights: Float64Array, bias: Float64Array) -> Self:
        """The projection x -> (x - mean) W + b, W (d, r), with a grid for rows like those of X (n, d)."""
        center = X.mean(axis=0)
        reach = np.abs(X - center).max(axis=0)
        # frexp: reach < 2 ** exponent; a column that never changes says nothing
        exponents = np.frexp(np.where(reach > 0, reach, 1.0))[1].astype(np.int64) + (_HEADROOM - _ROW_BITS)
        steps = np.ldexp(weights, exponents[:, None])
        steps[reach == 0] = 0.0
        sums = np.abs(steps).sum(axis=0) * 2.0**_ROW_BITS + np.abs(bias)
        # rounding adds a half a weight at most, which the bit between 52 and 53 has room for
        finest = np.frexp(np.where(sums > 0, sums, 1.0))[1] - _SUM_BITS
        units = np.ldexp(1.0, finest)
        return cls(center, exponents, np.rint(steps / units), np.rint(bias / units), units)

    def sums(self, X: Float64Array) -> Float64Array:
        """``X W + b`` in `units`: whole numbers, exact."""
        limit = 2.0**_ROW_BITS
        rows = np.rint(np.ldexp(X - self.center, -self.exponents))
        np.clip(rows, -limit, limit, out=rows)
        products: Float64Array = rows @ self.weights
        products += self.bias
        return products

    def values(self, X: Float64Array) -> Float64Array:
        """``X W + b``; each entry is exact but for one rounding, of rows and weights on their grids."""
        return self.sums(X) * self.units
