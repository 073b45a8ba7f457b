"""Measures of quality: neighbours and hubs."""

from musicsim.evaluation.ranking import hubness, k_occurrence, nearest_neighbours, share_of_same

__all__ = ["hubness", "k_occurrence", "nearest_neighbours", "share_of_same"]
