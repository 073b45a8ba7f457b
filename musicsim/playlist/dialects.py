"""Dialects: one walk for all playlists, and one for each category of them (thesis, sections 7.4 and 7.7.1)."""

import itertools
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from musicsim._checks import check_number
from musicsim.playlist.held_out import reweighted
from musicsim.playlist.hypergraph import Hypergraph
from musicsim.playlist.model import PlaylistModel


@dataclass(frozen=True, slots=True)
class DialectGain:
    """Relative gains over uniform shuffle on the same playlists of one category."""

    n_playlists: int  # playlists that were judged
    # gain of the category's own walk, and of the one of all playlists
    of_dialect: float
    of_global: float


class Dialects(BaseEstimator):
    """A walk for every category of playlists beside one for all of them, on one hypergraph.

    Parameters
    ----------
    prior : float >= 1, or array of shape (n_edges,)
        Of the walk of all playlists; see `PlaylistModel`.
    strength : float >= 0
        How much a dialect leans on the walk of all playlists: its prior is as if so many transitions had been
        seen with the global weights. 0, the default, is the thesis's: each category for itself.
    min_playlists : int >= 1
        Categories with fewer playlists get no walk of their own.
    edge_probability, uniform_floor, max_iter, tol
        See `PlaylistModel`.
    random_state : int, numpy Generator or None
        Seed of what the walks generate; `fit` involves no chance.

    Attributes
    ----------
    global_ : PlaylistModel
        Fitted on all playlists, those without a category too.
    models_ : dict from category to PlaylistModel
        By falling number of playlists.
    n_playlists_ : dict from category to int
    """

    def __init__(
        self,
        hypergraph: Hypergraph,
        *,
        prior: float | npt.ArrayLike = 1.0,
        strength: float = 0.0,
        min_playlists: int = 1,
        edge_probability: Literal["thesis", "bayes"] = "thesis",
        uniform_floor: float = 1e-3,
        max_iter: int = 500,
        tol: float = 1e-7,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.hypergraph = hypergraph
        self.prior = prior
        self.strength = strength
        self.min_playlists = min_playlists
        self.edge_probability = edge_probability
        self.uniform_floor = uniform_floor
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def _model(self, prior: float | npt.ArrayLike) -> PlaylistModel:
        return PlaylistModel(
            self.hypergraph,
            edge_probability=self.edge_probability,
            prior=prior,
            uniform_floor=self.uniform_floor,
            max_iter=self.max_iter,
            tol=self.tol,
            random_state=self.random_state,
        )

    def fit(self, playlists: Sequence[Sequence[int]], categories: Sequence[str | None]) -> "Dialects":
        """Learn the walk of all playlists, then one of each category.

        Parameters
        ----------
        playlists : sequence of lists of song rows
        categories : sequence of str or None, one a playlist; None: of no category

        Raises
        ------
        ValueError
            If there is not one category a playlist, or `strength` is negative.
        """
        check_number("strength", self.strength, 0)
        groups = self._groups(playlists, categories)
        self.global_ = self._model(self.prior).fit(playlists)
        self.models_ = {}
        self.n_playlists_ = {}
        leaning = 1.0 + self.strength * self.global_.weights_
        for category, rows in groups.items():
            # a category whose lists are all empty teaches nothing
            if len(rows) >= self.min_playlists and any(len(playlists[row]) for row in rows):
                with warnings.catch_warnings():  # one warning, of the global fit, is enough
                    warnings.simplefilter("ignore", ConvergenceWarning)
                    self.models_[category] = self._model(leaning).fit([playlists[row] for row in rows])
                self.n_playlists_[category] = len(rows)
        return self

    def model(self, category: str | None = None) -> PlaylistModel:
        """Return the walk of a category; that of all playlists for None or a category without its own."""
        if not hasattr(self, "global_"):
            raise NotFittedError("These Dialects are not fitted yet; call fit.")
        return self.global_ if category is None else self.models_.get(category, self.global_)

    def reweighted(self, factors: Mapping[tuple[str, ...], float]) -> "Dialects":
        """Return the same walks with the weights of each kind of edge multiplied; see `held_out`."""
        again = Dialects(**self.get_params(deep=False))
        again.global_ = reweighted(self.model(), factors)
        again.models_ = {category: reweighted(model, factors) for category, model in self.models_.items()}
        again.n_playlists_ = dict(self.n_playlists_)
        return again

    def gains(self, playlists: Sequence[Sequence[int]], categories: Sequence[str | None]) -> dict[str, DialectGain]:
        """Return what each category's own walk gains on its playlists, and what the global one does (fig. 7.2).

        Categories without a walk of their own, or without a playlist that can be judged, are left out.
        """
        if not hasattr(self, "global_"):
            raise NotFittedError("These Dialects are not fitted yet; call fit.")
        found = {}
        for category, rows in self._groups(playlists, categories).items():
            judged = [list(playlists[row]) for row in rows]
            judged = [p for p in judged if p and all(a != b for a, b in itertools.pairwise(p))]
            if category in self.models_ and judged:
                gains = (m.relative_gain(judged) for m in (self.models_[category], self.global_))
                found[category] = DialectGain(len(judged), *gains)
        return found

    @staticmethod
    def _groups(playlists: Sequence[Sequence[int]], categories: Sequence[str | None]) -> dict[str, list[int]]:
        """Rows of the playlists of each category, the largest first; equal ones by name."""
        if len(categories) != len(playlists):
            raise ValueError(f"categories has {len(categories)} entries for {len(playlists)} playlists; give one each")
        groups: dict[str, list[int]] = {}
        for row, category in enumerate(categories):
            if category:
                groups.setdefault(category, []).append(row)
        return dict(sorted(groups.items(), key=lambda pair: (-len(pair[1]), pair[0])))
