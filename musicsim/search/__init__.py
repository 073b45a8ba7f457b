"""Nearest neighbours: ``fit(X)``, ``add(X) -> ids``, ``remove(ids)``, ``query(Q, k) -> (distances, ids)``.

:class:`ExactIndex` compares with every row; :class:`SpillTree` is the tree of the thesis, :class:`SpillForest` its
modern form, and :func:`tune` sets one up for a recall. :func:`find_duplicates` finds the songs that are the same
recording; :class:`MutualProximity` adjusts distances so that no song is near everything.
"""

from musicsim.search.duplicates import DuplicatePair, find_duplicates, group_pairs
from musicsim.search.exact import ExactIndex
from musicsim.search.forest import SpillForest
from musicsim.search.proximity import MutualProximity, mutual_proximity
from musicsim.search.spill_tree import SpillTree
from musicsim.search.tuning import Calibration, calibrate, tune

__all__ = [
    "Calibration",
    "DuplicatePair",
    "ExactIndex",
    "MutualProximity",
    "SpillForest",
    "SpillTree",
    "calibrate",
    "find_duplicates",
    "group_pairs",
    "mutual_proximity",
    "tune",
]
