"""Solve the small quadratic program that all solvers share (thesis, equation 4.11), with a warm start."""

import numpy as np
from numba import njit

from musicsim._arrays import Float64Array

_CHECK_EVERY = 1000
# Number of steps per weight, before and after the interior-point method. For 100 weights, they take less than 1 ms.
_STEPS_EACH = 100


def solve_dual(H: Float64Array, b: Float64Array, C: float, start: Float64Array, tol: float) -> Float64Array:
    """Minimize 1/2 a'Ha + b'a over a >= 0, sum(a) <= C.

    The method is sequential minimal optimization. Each step moves weight within the pair with the largest second-order
    gain. The slack C - sum(a) is treated as one more weight, with a gradient of 0. Stops when the duality gap
    a'(Ha + b) - C min(0, min(Ha + b)) is at most `tol`. If this takes too many steps, an interior-point method provides
    a better start.

    H, (m, m), must be positive semidefinite, and `start`, (m,), must be feasible. The solution of a similar program is
    a good start.
    """
    a = np.append(start, max(0.0, C - start.sum()))
    H = np.ascontiguousarray(H)
    if _smo(H, b, float(C), a, float(tol), _STEPS_EACH * len(a)):
        return a[:-1]
    # if planes are nearly collinear, moving pairs of weights zigzags; an interior-point method does not
    solution = _interior_point(H, b, float(C))
    if solution is not None:
        a[:-1] = solution
        a[-1] = max(0.0, C - solution.sum())
    _smo(H, b, float(C), a, float(tol), _STEPS_EACH * len(a))
    return a[:-1]


def _interior_point(H: Float64Array, b: Float64Array, C: float) -> Float64Array | None:
    """Solve the same program with piqp, in units of C; return None if it fails."""
    import piqp

    m = len(b)
    scale = max(float(np.abs(b).max()) * C, float(np.abs(H).max()) * C * C, 1e-300)
    solver = piqp.DenseSolver()
    solver.settings.eps_abs = solver.settings.eps_duality_gap_abs = 1e-11
    solver.setup(
        np.asfortranarray(H * (C * C / scale)), b * (C / scale), None, None,
        np.asfortranarray(np.ones((1, m))), None, np.ones(1), np.zeros(m), None,
    )  # fmt: skip
    solver.solve()
    a = np.maximum(np.asarray(solver.result.x), 0.0)
    return a * (C / max(1.0, float(a.sum()))) if np.isfinite(a).all() else None


@njit(cache=True)
def _curvature(H, i, j):
    """Return ||e_i - e_j||_H^2; the last index is the slack, whose curvature is 0."""
    m = H.shape[0]
    curvature = 0.0
    if i < m:
        curvature += H[i, i]
    if j < m:
        curvature += H[j, j]
        if i < m:
            curvature -= 2.0 * H[i, j]
    return curvature


@njit(cache=True)
def _length(available, rise, curvature):
    """Return the weight to move: enough to reach the minimum along the pair, but at most all available weight."""
    return available if rise >= available * curvature else rise / curvature


@njit(cache=True)
def _smo(H, b, C, a, tol, max_steps):
    m = len(b)
    gradient = np.zeros(m + 1)
    gradient[:m] = H @ a[:m] + b
    for step in range(max_steps):
        if step % _CHECK_EVERY == _CHECK_EVERY - 1:  # removes the accumulated rounding errors of small steps
            gradient[:m] = H @ a[:m] + b
        up = np.argmin(gradient)
        down, gain, gap = -1, 0.0, 0.0
        for j in range(m + 1):
            rise = gradient[j] - gradient[up]
            if a[j] <= 0.0 or rise <= 0.0:
                continue
            gap += a[j] * rise
            curvature = _curvature(H, up, j)
            length = _length(a[j], rise, curvature)
            this = length * (rise - 0.5 * length * curvature)
            if this > gain:
                down, gain = j, this
        if gap <= tol or down < 0:
            return True
        length = _length(a[down], gradient[down] - gradient[up], _curvature(H, up, down))
        a[down] -= length
        a[up] += length
        for i in range(m):
            gradient[i] += length * ((H[up, i] if up < m else 0.0) - (H[down, i] if down < m else 0.0))
    return False
