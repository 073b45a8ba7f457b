"""Playlists that explain themselves: random walks on a hypergraph of songs."""

from musicsim.playlist.edges import build_edges, describe_edge
from musicsim.playlist.hypergraph import Hypergraph
from musicsim.playlist.model import Playlist, PlaylistModel, Transition

__all__ = ["Hypergraph", "Playlist", "PlaylistModel", "Transition", "build_edges", "describe_edge"]
