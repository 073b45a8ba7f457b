"""Nearest neighbours. Every index has ``fit(X)``, ``add(X) -> ids`` and ``query(Q, k) -> (distances, ids)``."""

from musicsim.search.exact import ExactIndex

__all__ = ["ExactIndex"]
