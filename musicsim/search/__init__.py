"""Nearest neighbours: ``fit(X)``, ``add(X) -> ids``, ``remove(ids)``, ``query(Q, k) -> (distances, ids)``.

:class:`ExactIndex` compares with every row; :class:`SpillTree` is the tree of the thesis, :class:`SpillForest` its
modern form, and :func:`tune` sets one up for a recall; :class:`CompactIndex` leaves the vectors on the disk,
:class:`FaissIndex` offers what faiss has. :class:`HammingIndex` and :class:`HammingCascade` do the same for bit codes.
:func:`find_duplicates` finds the songs that are the same recording; :class:`MutualProximity` adjusts distances so that
no song is near everything.
"""

from experiments._faiss_index import FaissIndex
from musicsim.search._folders import kind_of_index
from musicsim.search.cascade import HammingCascade
from musicsim.search.compact import CompactIndex
from musicsim.search.duplicates import DuplicatePair, find_duplicates, group_pairs
from musicsim.search.exact import ExactIndex
from musicsim.search.forest import SpillForest
from musicsim.search.hamming import HammingIndex
from musicsim.search.proximity import MutualProximity, mutual_proximity
from musicsim.search.spill_tree import SpillTree
from musicsim.search.tuning import Calibration, calibrate, tune

__all__ = [
    "Calibration",
    "CompactIndex",
    "DuplicatePair",
    "ExactIndex",
    "FaissIndex",
    "HammingCascade",
    "HammingIndex",
    "MutualProximity",
    "SpillForest",
    "SpillTree",
    "calibrate",
    "find_duplicates",
    "group_pairs",
    "kind_of_index",
    "mutual_proximity",
    "tune",
]
