"""Correct the weights of kinds of edges with held-out playlists.

Groups and neighbors by co-occurrence explain their own playlists better than they explain other playlists. So weights
that are fitted to the same playlists are too high, especially if songs occur only a few times. Therefore, co-occurrence
is computed from some of the playlists, and weights are fitted to the others. The weights fitted to all playlists are
then scaled, so that each kind of edge has the resulting share. For held-out playlists from Art of the Mix, where most
songs occur once or twice, this gains 0.3 nats per transition (experiments.playlists). For radio playlists, where songs
occur often, this does not hurt.
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
    """Return, for each kind of edge, its weight in the held-out model divided by its weight in the fitted model.

    `fitted` was fitted to the playlists from which its edges were computed. The edges of `held_out` were computed from
    some of these playlists, and the model was fitted to the others. Kinds are as in `edge_families` (a conjunction has
    several). Kinds that are not in both models are omitted.

    Examples
    --------
    >>> from musicsim.playlist import PlaylistModel, build_edges, kind_factors
    >>> graph = build_edges(4, tags=[["calm"], ["calm"], ["loud"], ["loud"]])
    >>> fitted = PlaylistModel(graph).fit([[0, 1], [1, 0], [2, 3]])
    >>> held_out = PlaylistModel(graph).fit([[0, 2], [0, 1]])
    >>> factors = kind_factors(fitted, held_out)
    >>> factors["tag",] < 1  # tags explain fewer steps of the playlists that were held out
    True
    """
    old, new = _shares(fitted), _shares(held_out)
    return {kinds: (new[kinds] + _TINY) / (share + _TINY) for kinds, share in old.items() if kinds in new}


def reweight(model: PlaylistModel, factors: Mapping[Kinds, float]) -> PlaylistModel:
    """Return a model with the weights of each kind of edge multiplied by its factor from `kind_factors` (default 1).

    Examples
    --------
    >>> from musicsim.playlist import PlaylistModel, build_edges, reweight
    >>> graph = build_edges(4, tags=[["calm"], ["calm"], ["loud"], ["loud"]])
    >>> model = PlaylistModel(graph).fit([[0, 1], [1, 0], [2, 3]])
    >>> weaker = reweight(model, {("tag",): 0.1})
    >>> bool(weaker.transition_probabilities(0)[1] < model.transition_probabilities(0)[1])
    True
    """
    kinds = edge_families(model.hypergraph.names)
    weights = model.weights_ * np.array([factors.get(kind, 1.0) for kind in kinds])
    return PlaylistModel(**model.get_params(deep=False)).set_params(weights=weights / weights.sum())
