"""Measures of quality: neighbours, hubs, rankings, splits by artist, and files of ranking sets."""

from experiments._letor_files import RankingRows, load_letor, load_lightgbm
from musicsim.evaluation.graded import graded_scores
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
    "RankingRows",
    "distance_scores",
    "graded_scores",
    "hubness",
    "k_occurrence",
    "load_letor",
    "load_lightgbm",
    "nearest_neighbours",
    "paired_bootstrap",
    "query_scores",
    "ranking_scores",
    "share_of_same",
]
