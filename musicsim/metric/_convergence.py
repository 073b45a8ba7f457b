"""What iterative solvers of convex problems share: when they are near enough, and how far to run ahead."""

import numpy as np

__all__ = ["next_momentum", "relative_gap"]


def relative_gap(objective: float, bound: float) -> float:
    """(objective - bound) / objective, 0 where the objective is 0."""
    return max(0.0, objective - bound) / objective if objective > 0 else 0.0


def next_momentum(momentum: float) -> tuple[float, float]:
    """Nesterov's next momentum, and how far to run ahead of a step, as a share of it."""
    faster = (1.0 + np.sqrt(1.0 + 4.0 * momentum * momentum)) / 2.0
    return faster, (momentum - 1.0) / faster
