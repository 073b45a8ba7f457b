"""Measures of quality: neighbours, hubs, rankings, and splits by artist."""

from musicsim.evaluation.ranking import (
    distance_scores,
    hubness,
    k_occurrence,
    nearest_neighbours,
    paired_bootstrap,
    query_scores,
    ranking_scores,
    share_of_same,
)
from musicsim.evaluation.splits import ArtistKFold, ArtistSplit

__all__ = [
    "ArtistKFold",
    "ArtistSplit",
    "distance_scores",
    "hubness",
    "k_occurrence",
    "nearest_neighbours",
    "paired_bootstrap",
    "query_scores",
    "ranking_scores",
    "share_of_same",
]
