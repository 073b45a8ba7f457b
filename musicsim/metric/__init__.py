"""Metrics learned from who is similar to whom."""

from musicsim.metric.feedback import Feedback, adapt_weights, feedback_metric
from musicsim.metric.gmml import GMML, geometric_mean
from musicsim.metric.lgmml import LGMML
from musicsim.metric.local import LGMMLByExample
from musicsim.metric.mlr import MLR, factor
from musicsim.metric.multikernel import MultipleKernelMLR
from musicsim.metric.selection import MLRCV

__all__ = [
    "GMML",
    "LGMML",
    "MLR",
    "MLRCV",
    "Feedback",
    "LGMMLByExample",
    "MultipleKernelMLR",
    "adapt_weights",
    "factor",
    "feedback_metric",
    "geometric_mean",
]
