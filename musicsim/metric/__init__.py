"""Metrics learned from who is similar to whom."""

from musicsim.metric.mlr import MLR, factor
from musicsim.metric.multikernel import MultipleKernelMLR
from musicsim.metric.selection import MLRCV

__all__ = ["MLR", "MLRCV", "MultipleKernelMLR", "factor"]
