"""Local metrics: each region of songs has its own metric, and a query uses those near it."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from musicsim import metric
from musicsim._arrays import Float64Array, FloatingArray

_PREFIX = "local_"


@dataclass(frozen=True, slots=True)
class LocalMetrics:
    """Metrics on the vectors of a model; their mean over songs is plain distance (SIGIR 2017, 4.4)."""

    anchors: Float64Array  # (m, d): the center of each region
    metrics: Float64Array  # (m, d, d)
    decay: float  # the weight of metric r at x falls as `exp(-decay (x - p_r)^T M_r (x - p_r))` (equation 11)

    @classmethod
    def from_fit(cls, learned: "metric.LGMMLByExample", components: Float64Array) -> "LocalMetrics":
        """Convert a fit on vectors x to the vectors ``components @ x``.

        `components` (d, d) is invertible, and ``components.T @ components`` is proportional to the fit's mean metric.
        """
        back = np.linalg.inv(components)
        metrics = np.einsum("ji,rjk,kl->ril", back, learned.metrics_, back, optimize=True)
        # scale the metrics so that their mean is the identity
        unit = float(np.trace(back.T @ learned.mean_metric_ @ back)) / len(back)
        return cls(learned.anchors_ @ components.T, metrics / unit, 0.5 * float(learned.rho) * unit)

    def weights_at(self, x: FloatingArray) -> Float64Array:
        """Return the weight of each metric at a point, (m,), sum 1."""
        offsets = np.asarray(x, dtype=np.float64) - self.anchors
        squared = np.einsum("ri,rij,rj->r", offsets, self.metrics, offsets, optimize=True)
        weights: Float64Array = np.exp(-self.decay * (squared - squared.min()))
        return weights / weights.sum()

    def arrays(self) -> dict[str, Any]:
        """The arrays of :meth:`from_arrays`."""
        return {
            f"{_PREFIX}anchors": self.anchors,
            f"{_PREFIX}metrics": self.metrics,
            f"{_PREFIX}decay": np.float64(self.decay),
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, Any]) -> "LocalMetrics | None":
        """Restore from :meth:`arrays`; None without local metrics."""
        if f"{_PREFIX}anchors" not in arrays:
            return None
        anchors, metrics = arrays[f"{_PREFIX}anchors"], arrays[f"{_PREFIX}metrics"]
        return cls(anchors, metrics, float(arrays[f"{_PREFIX}decay"]))
