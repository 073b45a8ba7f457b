"""Nearest neighbours. Every index has ``fit(X)``, ``add(X) -> ids`` and ``query(Q, k) -> (distances, ids)``.

:func:`find_duplicates` finds the songs that are the same recording.
"""

from musicsim.search.duplicates import DuplicatePair, find_duplicates, group_pairs
from musicsim.search.exact import ExactIndex

__all__ = ["DuplicatePair", "ExactIndex", "find_duplicates", "group_pairs"]
