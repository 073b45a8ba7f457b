"""Penalties of a metric: its trace, or the L2,1 norm of its rows.

Both are the maximum of <G, W> over G in a set. `dual_scale` measures how far a combination of planes is outside of this
set; lower bounds of all solvers are based on it.
"""

import numpy as np

from musicsim._arrays import Float64Array
from musicsim.metric.cone import Cone


class Trace:
    """sum of r_i W_ii, linear on the cone (equation 4.1); `slope` is a feasible G, here the only one."""

    is_linear = True

    def __init__(self, cone: Cone) -> None:
        self.cone = cone
        self.slope = cone.unit

    def value(self, W: Float64Array) -> float:
        return float(self.slope @ W)

    def gradient(self, W: Float64Array) -> Float64Array:
        return self.slope

    def project_slope(self, G: Float64Array) -> Float64Array:
        """Return the nearest feasible G."""
        return self.slope

    def shrink(self, W: Float64Array, t: float) -> Float64Array:
        """Return argmin over V of t value(V) + 1/2 ||V - W||^2, without regard to the cone."""
        return W - t * self.slope

    def dual_scale(self, A: Float64Array, P: Float64Array | None) -> float:
        """Return t with <A, W> <= t value(W) on the cone; P, in the cone, helps to find a small one."""
        return self.cone.reach(A)


class RowNorms:
    """Sum of the Euclidean norms of the rows of W (Lim, McFee and Lanckriet, ICML 2013), for one full block."""

    is_linear = False

    def __init__(self, cone: Cone) -> None:
        (self._width,) = cone.widths
        self._cone = cone
        self.slope = np.zeros(cone.size)

    def _rows(self, flat: Float64Array) -> tuple[Float64Array, Float64Array]:
        rows = flat.reshape(self._width, self._width)
        return rows, np.sqrt(np.einsum("ij,ij->i", rows, rows))

    def value(self, W: Float64Array) -> float:
        return float(self._rows(W)[1].sum())

    def gradient(self, W: Float64Array) -> Float64Array:
        rows, norms = self._rows(W)
        half = rows / np.maximum(norms, 1e-300)[:, None]
        return (0.5 * (half + half.T)).ravel()

    def project_slope(self, G: Float64Array) -> Float64Array:
        rows, norms = self._rows(G)
        return (rows / np.maximum(norms, 1.0)[:, None]).ravel()

    def shrink(self, W: Float64Array, t: float) -> Float64Array:
        rows, norms = self._rows(W)
        return (rows * np.maximum(0.0, 1.0 - t / np.maximum(norms, 1e-300))[:, None]).ravel()

    def dual_scale(self, A: Float64Array, P: Float64Array | None) -> float:
        # <A, W> <= <A + P, W> <= max row norm of (A + P) times the sum of the row norms of W
        raised = self._cone.project(A).point if P is None else A + P
        return min(float(self._rows(each)[1].max()) for each in (A, raised))


Regularizer = Trace | RowNorms
