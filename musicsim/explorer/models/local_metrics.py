"""Metrics of a model that differ from place to place: songs are compared by what tells songs apart around the query."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from musicsim import metric
from musicsim._arrays import Float64Array, FloatingArray

_PREFIX = "local_"


@dataclass(frozen=True, slots=True)
class LocalMetrics:
    """Metrics on the vectors of a model, whose mean over songs is plain distance (SIGIR 2017, 4.4)."""

    anchors: Float64Array  # (m, d): where each belongs
    metrics: Float64Array  # (m, d, d)
    decay: float  # the weight of metric r at x falls as `exp(-decay (x - p_r)^T M_r (x - p_r))` (equation 11)

    @classmethod
    def of(cls, learned: "metric.LGMMLByExample", components: Float64Array) -> "LocalMetrics":
        """Of a fit on vectors x, for the vectors ``components @ x``.

        These, (d, d) and invertible, factor its mean metric in any unit.
        """
        back = np.linalg.inv(components)
        metrics = np.einsum("ji,rjk,kl->ril", back, learned.metrics_, back, optimize=True)
        # components^T components is the mean metric in a unit of its own: here the mean is the identity
        unit = float(np.trace(back.T @ learned.mean_metric_ @ back)) / len(back)
        return cls(learned.anchors_ @ components.T, metrics / unit, 0.5 * float(learned.rho) * unit)

    def weights_at(self, x: FloatingArray) -> Float64Array:
        """The share of each metric at a place, (m,), sums to 1."""
        away = np.asarray(x, dtype=np.float64) - self.anchors
        lengths = np.einsum("ri,rij,rj->r", away, self.metrics, away, optimize=True)
        weights: Float64Array = np.exp(-self.decay * (lengths - lengths.min()))
        return weights / weights.sum()

    def arrays(self) -> dict[str, Any]:
        """What it is made of, for an archive without pickle."""
        return {
            f"{_PREFIX}anchors": self.anchors,
            f"{_PREFIX}metrics": self.metrics,
            f"{_PREFIX}decay": np.float64(self.decay),
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, Any]) -> "LocalMetrics | None":
        """What :meth:`arrays` took apart; None where there is none."""
        if f"{_PREFIX}anchors" not in arrays:
            return None
        anchors, metrics = arrays[f"{_PREFIX}anchors"], arrays[f"{_PREFIX}metrics"]
        return cls(anchors, metrics, float(arrays[f"{_PREFIX}decay"]))
