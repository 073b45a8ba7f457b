"""Weights of edge families corrected by held-out playlists.

Groups and neighbors by company explain the playlists they were computed from better than any others. Weights fitted on
the same playlists overrate them, by far if songs are listed only a few times. So company is computed from some of the
playlists, and weights are fitted on the others. The weights fitted on all playlists then get the resulting shares of
the kinds of knowledge. Measured on held-out playlists (experiments.playlists): pairs of Art of the Mix, where most
songs are listed once or twice, gain 0.3 nats per transition; radio playlists with many plays per song lose nothing.
"""

from collections.abc import Mapping

import numpy as np

from musicsim.playlist.edges import edge_families
from musicsim.playlist.model import PlaylistModel

Kinds = tuple[str, ...]

_TINY = 1e-9


def _shares(model: PlaylistModel) -> dict[Kinds, float]:
    shares: dict[Kinds, float] = {}
    for kinds, weight in zip(edge_families(model.hypergraph.names), model.weights_.tolist(), strict=True):
        shares[kinds] = shares.get(kinds, 0.0) + weight
    return shares


def kind_factors(fitted: PlaylistModel, held_out: PlaylistModel) -> dict[Kinds, float]:
    """Return the ratio of the weights of each kind of edge, held-out to fitted.

    `fitted` was fitted on the playlists that its edges come from; `held_out` has edges from some of these playlists,
    and was fitted on the others. Keys are the kinds of `edge_families` that both models have; a conjunction has its
    own.
    """
    old, new = _shares(fitted), _shares(held_out)
    return {kinds: (new[kinds] + _TINY) / (share + _TINY) for kinds, share in old.items() if kinds in new}


def reweight(model: PlaylistModel, factors: Mapping[Kinds, float]) -> PlaylistModel:
    """Return a model with the weights of each kind of edge multiplied by its factor (default 1) from `kind_factors`."""
    kinds = edge_families(model.hypergraph.names)
    weights = model.weights_ * np.array([factors.get(kind, 1.0) for kind in kinds])
    return PlaylistModel(**model.get_params(deep=False)).set_params(weights=weights / weights.sum())
