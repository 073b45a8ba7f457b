"""Weights of families as on lists that the edges were not made of.

Groups and neighbours by company explain the lists they were made of better than any other. Weights fitted on the
same lists give them too much: next to everything, where songs were listed a few times only. So company is made of
some of the lists, weights are fitted on the others, and the weights fitted on all lists take on the shares of the
kinds of knowledge that come out. Measured on lists kept back (experiments.playlists): pairs of Art of the Mix,
where most songs are listed once or twice, gain .3 nats a transition, radio lists with many plays a song lose nothing.
"""

from collections.abc import Mapping

import numpy as np

from musicsim.playlist.edges import edge_families
from musicsim.playlist.model import PlaylistModel

Kinds = tuple[str, ...]

_NEXT_TO_NOTHING = 1e-9


def _shares(model: PlaylistModel) -> dict[Kinds, float]:
    shares: dict[Kinds, float] = {}
    for kinds, weight in zip(edge_families(model.hypergraph.names), model.weights_.tolist(), strict=True):
        shares[kinds] = shares.get(kinds, 0.0) + weight
    return shares


def kind_factors(fitted: PlaylistModel, held_out: PlaylistModel) -> dict[Kinds, float]:
    """Return how much more weight each kind of edge has in one model than in another.

    Parameters
    ----------
    fitted : PlaylistModel
        Fitted on the lists that its edges were made of.
    held_out : PlaylistModel
        Of edges made of some of these lists, fitted on the others.

    Returns
    -------
    dict
        By the kinds of `edge_families`, a conjunction's apart from its parts'. Kinds that only one of the two
        has are left out.
    """
    ours, theirs = _shares(fitted), _shares(held_out)
    return {
        kinds: (theirs[kinds] + _NEXT_TO_NOTHING) / (share + _NEXT_TO_NOTHING)
        for kinds, share in ours.items()
        if kinds in theirs
    }


def reweighted(model: PlaylistModel, factors: Mapping[Kinds, float]) -> PlaylistModel:
    """Return a model with the weights of each kind of edge multiplied; kinds without a factor keep theirs.

    Parameters
    ----------
    factors : mapping
        Of `kind_factors`.
    """
    kinds = edge_families(model.hypergraph.names)
    weights = model.weights_ * np.array([factors.get(kind, 1.0) for kind in kinds])
    again = PlaylistModel(**model.get_params(deep=False))
    return again.set_params(weights=weights / weights.sum())
