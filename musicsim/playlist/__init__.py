"""Playlists that explain themselves: random walks on a hypergraph of songs."""

from experiments._playlist_rivals import (
    BigramModel,
    LatentMarkovEmbedding,
    Popularity,
    StationaryModel,
    UniformShuffle,
)
from musicsim.playlist._bridge import Weighing
from musicsim.playlist.company import company_clusters, company_neighbours
from musicsim.playlist.dialects import DialectGain, Dialects
from musicsim.playlist.edges import build_edges, describe_edge, edge_families
from musicsim.playlist.held_out import kind_factors, reweighted
from musicsim.playlist.hypergraph import Hypergraph
from musicsim.playlist.listeners import listener_clusters
from musicsim.playlist.model import Playlist, PlaylistModel, Transition
from musicsim.playlist.topics import LyricsTopics, lyrics_topics

__all__ = [
    "BigramModel",
    "DialectGain",
    "Dialects",
    "Hypergraph",
    "LatentMarkovEmbedding",
    "LyricsTopics",
    "Playlist",
    "PlaylistModel",
    "Popularity",
    "StationaryModel",
    "Transition",
    "UniformShuffle",
    "Weighing",
    "build_edges",
    "company_clusters",
    "company_neighbours",
    "describe_edge",
    "edge_families",
    "kind_factors",
    "listener_clusters",
    "lyrics_topics",
    "reweighted",
]
