"""Cones of metrics, whose blocks are positive semidefinite matrices or nonnegative vectors, and penalties on metrics.

For solvers, a metric is one flat vector: the raveled (w, w) matrices of the blocks, or the diagonal. Each block has a
diagonal weight r, and its penalty is sum(r * diag(W)). In scaled coordinates (:mod:`musicsim.metric.coordinates`), the
trace of a metric has weights other than 1.

The trace and the row norms are the maximum of <G, W> over a set of G. `dual_scale` measures how far a combination of
planes is outside this set; the lower bounds of all solvers are based on it. If the set has only one G, the penalty has
a fixed `slope`, and is ``constant + <slope, W> + curvature / 2 ||W||^2``. Only the distance from the plain
metric has a curvature.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import linalg

from musicsim._arrays import Float64Array


@dataclass(frozen=True, slots=True)
class ConeProjection:
    """The nearest point of the cone, flat, and the factor L of each block, W = L^T L (None for a diagonal)."""

    point: Float64Array
    factors: list[Float64Array] | None


class Cone:
    """The cone with one block per entry of `widths` (the block's number of columns of X), full or diagonal.

    `weights`, (sum of widths,), are the positive r, by default 1. `size` is the length of a flat metric. `unit` is
    diag(r), flat: the gradient of the penalty. `n_projections` counts the eigendecompositions of blocks so far.
    """

    def __init__(self, widths: Sequence[int], structure: str, weights: npt.ArrayLike | None = None) -> None:
        self.widths = tuple(int(w) for w in widths)
        self.structure = structure
        d = sum(self.widths)
        self.weights = np.ones(d) if weights is None else np.asarray(weights, dtype=np.float64)
        self.size = d if structure == "diagonal" else sum(w * w for w in self.widths)
        self.n_projections = 0
        matrices = (np.diag(r).ravel() for r in self._split(self.weights))
        self.unit = self.weights if structure == "diagonal" else np.concatenate([*matrices])

    def _split(self, columns: Float64Array) -> list[Float64Array]:
        return np.split(columns, np.cumsum(self.widths)[:-1])

    def blocks(self, flat: Float64Array) -> Iterator[Float64Array]:
        """Yield views of the (w, w) matrices of a flat metric, or of the pieces of a diagonal metric."""
        if self.structure == "diagonal":
            yield from self._split(flat)
            return
        start = 0
        for w in self.widths:
            yield flat[start : start + w * w].reshape(w, w)
            start += w * w

    def project(self, flat: Float64Array) -> ConeProjection:
        """Project the symmetric part of a flat metric onto the cone, in the Frobenius norm."""
        if self.structure == "diagonal":
            return ConeProjection(np.maximum(flat, 0.0), None)
        points, factors = [], []
        for matrix in self.blocks(flat):
            block = 0.5 * (matrix + matrix.T)
            # a Cholesky decomposition, forty times faster than eigenvalues, shows that a block is inside the cone
            lower, info = linalg.lapack.dpotrf(block, lower=1, clean=1)
            if info == 0:
                points.append(block.ravel())
                factors.append(np.ascontiguousarray(lower.T))
                continue
            self.n_projections += 1
            values, vectors = linalg.eigh(block, driver="evd", check_finite=False)
            first = int(np.searchsorted(values, 0.0, side="right"))
            # W is exactly L^T L, so that both give the same scores
            factor = (vectors[:, first:] * np.sqrt(values[first:])).T
            points.append((factor.T @ factor).ravel())
            factors.append(np.ascontiguousarray(factor))
        return ConeProjection(np.concatenate(points) if len(points) > 1 else points[0], factors)

    def reach(self, flat: Float64Array) -> float:
        """Return the smallest t for which t diag(r) - A is in the cone (the largest eigenvalue of A if r is 1)."""
        if self.structure == "diagonal":
            return float((flat / self.weights).max())
        largest = -np.inf
        for block, r in zip(self.blocks(flat), self._split(self.weights), strict=True):
            scale, w = 1.0 / np.sqrt(r), len(r)
            top = linalg.eigh(
                scale[:, None] * block * scale, eigvals_only=True, subset_by_index=[w - 1, w - 1], check_finite=False
            )
            largest = max(largest, float(top[0]))
        return largest


class _Norm:
    """A penalty without curvature, which is least at W = 0."""

    constant, curvature = 0.0, 0.0

    def __init__(self, cone: Cone) -> None:
        self.cone = cone
        self.start = np.zeros(cone.size)

    def dual_scale(self, A: Float64Array, P: Float64Array | None) -> float:
        """Return a t with <A, W> <= t value(W) on the cone; a P in the cone helps to find a small t."""
        raise NotImplementedError

    def lower_bound(self, loss: float, A: Float64Array, P: Float64Array | None) -> float:
        """Return a bound below value(W) + loss - <A, W> on the cone; A and the loss may be scaled down."""
        return loss / max(1.0, self.dual_scale(A, P))


class Trace(_Norm):
    """Sum of r_i W_ii, linear on the cone (equation 4.1); `slope` is the only feasible G."""

    has_fixed_slope = True

    def __init__(self, cone: Cone) -> None:
        super().__init__(cone)
        self.slope = cone.unit

    def value(self, W: Float64Array) -> float:
        return float(self.slope @ W)

    def gradient(self, W: Float64Array) -> Float64Array:
        return self.slope

    def project_slope(self, G: Float64Array) -> Float64Array:
        return self.slope

    def shrink(self, W: Float64Array, t: float) -> Float64Array:
        """Return argmin over V of t value(V) + 1/2 ||V - W||^2, ignoring the cone."""
        return W - t * self.slope

    def dual_scale(self, A: Float64Array, P: Float64Array | None) -> float:
        return self.cone.reach(A)


class RowNorms(_Norm):
    """Sum of the Euclidean norms of the rows of W (Lim, McFee and Lanckriet, ICML 2013), for a single full block."""

    has_fixed_slope = False

    def __init__(self, cone: Cone) -> None:
        super().__init__(cone)
        (self._width,) = cone.widths
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
        # <A, W> <= <A + P, W> <= (largest row norm of A + P) * (sum of the row norms of W)
        raised = self.cone.project(A).point if P is None else A + P
        return min(float(self._rows(each)[1].max()) for each in (A, raised))


class PlainDistance:
    """1/2 ||W / m - I||^2, the squared distance from the plain metric m I in units of the plain metric."""

    has_fixed_slope = True

    def __init__(self, cone: Cone, multiple: float) -> None:
        self.cone = cone
        self.start = multiple * cone.unit
        self.curvature = 1.0 / multiple**2
        self.slope = -self.curvature * self.start
        self.constant = self.value(np.zeros(cone.size))

    def value(self, W: Float64Array) -> float:
        away = W - self.start
        return 0.5 * self.curvature * float(away @ away)

    def gradient(self, W: Float64Array) -> Float64Array:
        return self.curvature * (W - self.start)

    def project_slope(self, G: Float64Array) -> Float64Array:
        return self.slope

    def shrink(self, W: Float64Array, t: float) -> Float64Array:
        """Return argmin over V of t value(V) + 1/2 ||V - W||^2, ignoring the cone."""
        return (W - t * self.slope) / (1.0 + t * self.curvature)

    def lower_bound(self, loss: float, A: Float64Array, P: Float64Array | None) -> float:
        """Return the minimum of value(W) + loss - <A, W> on the cone."""
        W = self.cone.project(self.start + A / self.curvature).point
        return self.value(W) + loss - float(A @ W)


Regularizer = Trace | RowNorms | PlainDistance
