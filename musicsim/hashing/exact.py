"""Linear projections whose signs are the same on every machine and with any number of threads.

BLAS sums in an order that depends on the processor and the number of threads, so the sign of a sum near 0 may differ.
Here, rows and weights are small integers, so float64 sums of their products are exact in any order.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy import sparse

from musicsim._arrays import Float64Array, Int64Array
from musicsim._sparse_rows import Rows, column_extremes, column_means

# Bits per entry of a row, as in float32; entries are clipped at ``2 ** _HEADROOM`` times the largest training entry.
_ROW_BITS = 24
_HEADROOM = 3
_SUM_BITS = 52  # Integers up to 2 ** 53 are exact; weights are rounded so that all sums are smaller


@dataclass(frozen=True, slots=True)
class ExactProjection:
    """The map x -> (x - center) W + b, exact for rows and weights that are rounded to grids."""

    center: Float64Array  # (d,): subtracted from each column before rounding
    exponents: Int64Array  # (d,): `2 ** exponents` are the grid steps of the columns
    weights: Float64Array  # (d, r), integers
    bias: Float64Array  # (r,), integers
    units: Float64Array  # (r,): scale of the integer products, a power of two

    @classmethod
    def build(cls, X: Rows, weights: Float64Array, bias: Float64Array) -> Self:
        """Return the projection x -> (x - mean) W + b with W (d, r), on a grid for rows like those of X (n, d)."""
        center = column_means(X)
        lows, highs = column_extremes(X)
        reach = np.maximum(highs - center, center - lows)
        # frexp gives reach < 2 ** exponent; constant columns are ignored
        exponents = np.frexp(np.where(reach > 0, reach, 1.0))[1].astype(np.int64) + (_HEADROOM - _ROW_BITS)
        steps = np.ldexp(weights, exponents[:, None])
        steps[reach == 0] = 0.0
        sums = np.abs(steps).sum(axis=0) * 2.0**_ROW_BITS + np.abs(bias)
        # rounding adds at most 1/2 per weight, so sums of 52 bits stay below 2 ** 53
        finest = np.frexp(np.where(sums > 0, sums, 1.0))[1] - _SUM_BITS
        units = np.ldexp(1.0, finest)
        return cls(center, exponents, np.rint(steps / units), np.rint(bias / units), units)

    def sums(self, X: Rows) -> Float64Array:
        """Return ``(X - center) W + b`` in `units`, as exact integers."""
        products: Float64Array
        if sparse.issparse(X):
            # Only entries differ from a row of zeros. Integers are exact, so the result is that of dense rows.
            zeros = _round(-self.center, self.exponents)
            columns = X.indices
            entries = _round(X.data - self.center[columns], self.exponents[columns]) - zeros[columns]
            products = sparse.csr_array((entries, columns, X.indptr), shape=X.shape) @ self.weights
            products += zeros @ self.weights + self.bias
            return products
        products = _round(X - self.center, self.exponents) @ self.weights
        products += self.bias
        return products

    def values(self, X: Rows) -> Float64Array:
        """Return ``(X - center) W + b`` for rows and weights on their grids; each entry is rounded once."""
        return self.sums(X) * self.units


def _round(centered: Float64Array, exponents: Int64Array) -> Float64Array:
    """Return entries in steps of their grids, as integers, clipped."""
    rows: Float64Array = np.rint(np.ldexp(centered, -exponents))
    limit = 2.0**_ROW_BITS
    return np.clip(rows, -limit, limit, out=rows)
