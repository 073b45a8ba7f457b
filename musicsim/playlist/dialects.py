"""Dialects: one walk for all playlists, and one walk per category (thesis, sections 7.4 and 7.7.1)."""

import itertools
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from musicsim._checks import check_number
from musicsim.playlist.held_out import reweight
from musicsim.playlist.hypergraph import Hypergraph
from musicsim.playlist.model import PlaylistModel


@dataclass(frozen=True, slots=True)
class DialectGain:
    """Relative gains of two walks over uniform shuffle, on the same playlists from one category.

    Examples
    --------
    >>> from musicsim.playlist import Dialects, build_edges
    >>> graph = build_edges(4, tags=[["calm"], ["calm", "90s"], ["loud", "90s"], ["loud"]])
    >>> lists, kinds = [[0, 1], [1, 0], [2, 1], [1, 2]], ["sleep", "sleep", "party", "party"]
    >>> gain = Dialects(graph).fit(lists, kinds).gains(lists, kinds)["sleep"]
    >>> gain.n_playlists, gain.of_dialect > gain.of_global  # on the playlists that it was fitted to
    (2, True)
    """

    n_playlists: int  # number of evaluated playlists
    of_dialect: float  # gain of the category's walk
    of_global: float  # gain of the walk for all playlists


class Dialects(BaseEstimator):
    """Learn that people order songs differently for each kind of playlist, such as parties or sleep.

    Fit one walk per category of playlists, and one for all playlists, on the same hypergraph.

    Parameters
    ----------
    hypergraph : Hypergraph
    prior : float >= 1, or array of shape (n_edges,); prior for the global walk; see `PlaylistModel`
    strength : float >= 0
        Regularization of dialects toward the global walk: the prior acts like this many observed transitions with the
        global weights. With 0, as in the thesis, categories are independent.
    min_playlists : int >= 1; categories with fewer playlists have no separate walk

    Attributes
    ----------
    global_ : PlaylistModel; fitted to all playlists, including those without a category
    models_ : dict from category to PlaylistModel; in order of decreasing number of playlists
    n_playlists_ : dict from category to int

    See Also
    --------
    PlaylistModel : One walk for all playlists.

    References
    ----------
    - B. McFee, More like this: machine learning approaches to music similarity, PhD thesis, UC San Diego, 2012, section
      7.4.

    Examples
    --------
    >>> from musicsim.playlist import Dialects, build_edges
    >>> graph = build_edges(4, tags=[["calm"], ["calm", "90s"], ["loud", "90s"], ["loud"]])
    >>> lists = [[0, 1], [1, 0], [2, 1], [1, 2]]
    >>> dialects = Dialects(graph).fit(lists, ["sleep", "sleep", "party", "party"])
    >>> sleep, party = (dialects.model(kind).transition_probabilities(1) for kind in ("sleep", "party"))
    >>> bool(sleep[0] > party[0]), bool(sleep[2] < party[2])
    (True, True)
    """

    def __init__(
        self,
        hypergraph: Hypergraph,
        *,
        prior: float | npt.ArrayLike = 1.0,
        strength: float = 0.0,
        min_playlists: int = 1,
    ) -> None:
        self.hypergraph, self.prior, self.strength, self.min_playlists = hypergraph, prior, strength, min_playlists

    def fit(self, playlists: Sequence[Sequence[int]], categories: Sequence[str | None]) -> "Dialects":
        """Learn the walk for all playlists, then one walk per category; a playlist's category can be None."""
        check_number("strength", self.strength, 0)
        groups = self._groups(playlists, categories)
        self.global_ = PlaylistModel(self.hypergraph, prior=self.prior).fit(playlists)
        self.models_ = {}
        self.n_playlists_ = {}
        dialect_prior = 1.0 + self.strength * self.global_.weights_
        for category, rows in groups.items():
            # a walk cannot be fitted to empty playlists
            if len(rows) >= self.min_playlists and any(len(playlists[row]) for row in rows):
                with warnings.catch_warnings():  # one warning, from the global fit, is enough
                    warnings.simplefilter("ignore", ConvergenceWarning)
                    model = PlaylistModel(self.hypergraph, prior=dialect_prior)
                    self.models_[category] = model.fit([playlists[row] for row in rows])
                self.n_playlists_[category] = len(rows)
        return self

    def model(self, category: str | None = None) -> PlaylistModel:
        """Return a category's walk, or the global walk for None and for categories without a separate walk."""
        if not hasattr(self, "global_"):
            raise NotFittedError("these Dialects are not fitted yet: call fit first.")
        return self.global_ if category is None else self.models_.get(category, self.global_)

    def reweight(self, factors: Mapping[tuple[str, ...], float]) -> "Dialects":
        """Return the same walks with the weights of each kind of edge multiplied by its factor; see `kind_factors`."""
        dialects = Dialects(**self.get_params(deep=False))
        dialects.global_ = reweight(self.model(), factors)
        dialects.models_ = {category: reweight(model, factors) for category, model in self.models_.items()}
        dialects.n_playlists_ = self.n_playlists_
        return dialects

    def gains(self, playlists: Sequence[Sequence[int]], categories: Sequence[str | None]) -> dict[str, DialectGain]:
        """Return the gains of each category's walk and of the global walk on the category's playlists (fig. 7.2).

        Categories without a separate walk, or without a playlist that can be evaluated, are skipped.
        """
        global_model = self.model()
        gains = {}
        for category, rows in self._groups(playlists, categories).items():
            valid = [list(playlists[row]) for row in rows]
            valid = [p for p in valid if p and all(a != b for a, b in itertools.pairwise(p))]
            if category in self.models_ and valid:
                pair = (model.relative_gain(valid) for model in (self.models_[category], global_model))
                gains[category] = DialectGain(len(valid), *pair)
        return gains

    @staticmethod
    def _groups(playlists: Sequence[Sequence[int]], categories: Sequence[str | None]) -> dict[str, list[int]]:
        """Return the rows of each category's playlists; categories are sorted by descending size, then by name."""
        if len(categories) != len(playlists):
            raise ValueError(f"categories has {len(categories)} entries, but there are {len(playlists)} playlists")
        groups: dict[str, list[int]] = {}
        for row, category in enumerate(categories):
            if category:
                groups.setdefault(category, []).append(row)
        return dict(sorted(groups.items(), key=lambda pair: (-len(pair[1]), pair[0])))
