"""Nearest neighbours. Every index has ``fit(X)``, ``add(X) -> ids`` and ``query(Q, k) -> (distances, ids)``.

:func:`find_duplicates` finds the songs that are the same recording; :class:`MutualProximity` adjusts
distances so that no song is near everything.
"""

from musicsim.search.duplicates import DuplicatePair, find_duplicates, group_pairs
from musicsim.search.exact import ExactIndex
from musicsim.search.proximity import MutualProximity, mutual_proximity

__all__ = [
    "DuplicatePair",
    "ExactIndex",
    "MutualProximity",
    "find_duplicates",
    "group_pairs",
    "mutual_proximity",
]
