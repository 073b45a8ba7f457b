"""Playlist models without edges: baselines for the hypergraph walk.

*Conventions.* Songs are rows 0 to n_songs - 1, logs are natural. Every model has `fit`, `log_probability`,
`first_probabilities`, `transition_probabilities` and the measures of `PlaylistScorer`, like `PlaylistModel`. A song
never follows itself: P[y | x] is a distribution over the other n_songs - 1 songs, so all models share one support.
`StationaryModel` is the exception. `fit` drops immediate repeats.

Mean log P of a transition on yes.com radio playlists, 80 % for training (by playlist, seed 0):

====================================  =========  ========
model                                 yes_small  yes_big
====================================  =========  ========
`UniformShuffle`                      -8.061     -9.187
`Popularity`                          -7.630     -8.609
`BigramModel`                         -7.125     -8.246
`LatentMarkovEmbedding`               -5.857     -6.733
====================================  =========  ========
"""

import warnings
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from experiments.support.markov_embedding import Ascent, Points, TransitionTable, climb, log_moves
from experiments.support.song_chain import (
    SongChain,
    checked_counts,
    count_openings,
    count_plays,
    smoothed,
    sum_by_playlist,
)
from musicsim._arrays import Float64Array, Int64Array
from musicsim.playlist.counts import Counts
from musicsim.playlist.hypergraph import Hypergraph
from musicsim.playlist.model import PlaylistModel
from musicsim.playlist.scoring import Playlists, PlaylistScorer

__all__ = ["BigramModel", "LatentMarkovEmbedding", "Popularity", "StationaryModel", "UniformShuffle"]


# the estimate needs transitions seen once, twice, three and four times
_USUAL_DISCOUNTS = np.array([0.5, 1.0, 1.5])


class UniformShuffle(SongChain):
    """All songs equally likely: P[x0] = 1/n, P[y | x] = 1/(n - 1). Nothing is learned.

    Parameters
    ----------
    n_songs : int >= 1
    """

    def __init__(self, n_songs: int) -> None:
        self.n_songs = n_songs

    def fit(self, playlists: Playlists) -> "UniformShuffle":
        """Validate the playlists; nothing is learned."""
        checked_counts(playlists, self.n_songs, 1.0)
        return self

    def first_probabilities(self) -> Float64Array:
        """Return P[x0] for every song, shape (n_songs,)."""
        return np.full(self.n_songs, 1.0 / self.n_songs)

    def _log_moves(self, pairs: Int64Array) -> Float64Array:
        return np.full(len(pairs), -np.log(max(self.n_songs - 1, 1)))


class Popularity(SongChain):
    """Songs by play count, independent of the previous song: P[x0] = p, P[y | x] = p_y / (1 - p_x).

    Parameters
    ----------
    n_songs : int >= 1
    pseudo_count : float > 0
        Plays added to those of every song, so that no song is impossible.
    """

    def __init__(self, n_songs: int, pseudo_count: float = 0.5) -> None:
        self.n_songs = n_songs
        self.pseudo_count = pseudo_count

    def fit(self, playlists: Playlists) -> "Popularity":
        """Count the plays in playlists (lists of song rows)."""
        counts = checked_counts(playlists, self.n_songs, self.pseudo_count)
        self._first = smoothed(count_plays(counts, self.n_songs), self.pseudo_count)
        return self

    def _log_moves(self, pairs: Int64Array) -> Float64Array:
        p = self.first_probabilities()
        return np.log(p[pairs[:, 1]]) - np.log1p(-p[pairs[:, 0]])


def _estimated_discounts(count: Float64Array) -> Float64Array:
    """Return the discounts of transitions seen once, twice, and three times or more.

    Source: Chen and Goodman, "An empirical study of smoothing techniques for language modeling", 1999, modified
    Kneser-Ney. D_k = k - (k + 1) Y n_(k+1) / n_k with Y = n_1 / (n_1 + 2 n_2), where n_k is the number of transitions
    seen k times.
    """
    seen = np.array([np.count_nonzero(count == k) for k in range(1, 5)], dtype=np.float64)
    if np.any(seen == 0):
        return _USUAL_DISCOUNTS
    k = np.arange(1.0, 4.0)
    discounts = k - (k + 1.0) * seen[0] / (seen[0] + 2.0 * seen[1]) * seen[1:] / seen[:-1]
    return discounts if np.all(discounts > 0) else _USUAL_DISCOUNTS


class BigramModel(SongChain):
    """Bigrams of songs with interpolated Kneser-Ney smoothing.

    P[y | x] = max(c(x, y) - D, 0) / c(x) + the freed mass * q_y / (1 - q_x). Here c are the transition
    counts of training, and q is the back-off distribution. A song without successor in training has q alone.

    Parameters
    ----------
    n_songs : int >= 1
    discount : float in (0, 1], or None
        D. None: three discounts, for transitions seen once, twice, and more often, estimated from the
        counts ("modified Kneser-Ney"); 0.5, 1 and 1.5 if there are too few counts.
    back_off : {"kneser-ney", "popularity", "uniform"}
        q is proportional to the number of different predecessors of y, to the plays of y, or
        constant.
    pseudo_count : float > 0
        Added to each of these numbers and, for P[x0], to the number of times each song came first.

    Attributes
    ----------
    discounts_ : ndarray of shape (3,)
        D of transitions seen once, twice, and three times or more.

    Notes
    -----
    Mean log P of a held-out transition on yes.com playlists, small and big:

    ============  ====================  ====================
    back-off      one discount          three discounts
    ============  ====================  ====================
    kneser-ney    -7.142, -8.258        -7.125, -8.246
    popularity    -7.167, -8.275        -7.148, -8.262
    uniform       -7.303, -8.626        -7.294, -8.617
    ============  ====================  ====================

    ("one": n_1 / (n_1 + 2 n_2)). Memory: 16 bytes per distinct transition and 24 per song.

    Examples
    --------
    >>> model = BigramModel(3, discount=0.5).fit([[0, 1], [0, 1], [1, 2]])
    >>> model.transition_probabilities(0).round(3).tolist()
    [0.0, 0.875, 0.125]
    """

    def __init__(
        self,
        n_songs: int,
        discount: float | None = None,
        back_off: Literal["kneser-ney", "popularity", "uniform"] = "kneser-ney",
        pseudo_count: float = 1.0,
    ) -> None:
        self.n_songs = n_songs
        self.discount = discount
        self.back_off = back_off
        self.pseudo_count = pseudo_count

    def fit(self, playlists: Playlists) -> "BigramModel":
        """Count the transitions in playlists (lists of song rows)."""
        if self.discount is not None and not 0 < self.discount <= 1:
            raise ValueError(f"discount={self.discount} must lie in (0, 1], or be None")
        n = self.n_songs
        counts = checked_counts(playlists, n, self.pseudo_count)
        table = TransitionTable.of(counts, n)
        given = self.discount
        self.discounts_ = np.full(3, given) if given is not None else _estimated_discounts(table.count)
        source, target = counts.pairs.T
        taken = self.discounts_[np.minimum(table.count, 3).astype(np.int64) - 1]
        left = np.maximum(table.source_count, 1.0)
        self._keys = source * n + target
        self._kept = (table.count - taken) / left[source]
        freed = np.bincount(source, weights=taken, minlength=n) / left
        self._freed = np.where(table.source_count > 0, freed, 1.0)
        plays = count_plays(counts, n)
        self._first = smoothed(count_openings(counts, n), self.pseudo_count)
        self._backing = smoothed(self._back_off_counts(target, plays), self.pseudo_count)
        return self

    def _back_off_counts(self, target: Int64Array, plays: Float64Array) -> Float64Array:
        if self.back_off == "kneser-ney":
            return np.bincount(target, minlength=self.n_songs).astype(np.float64)
        if self.back_off == "popularity":
            return plays
        if self.back_off == "uniform":
            return np.zeros(self.n_songs)
        raise ValueError(f"back_off={self.back_off!r} must be 'kneser-ney', 'popularity' or 'uniform'")

    def _log_moves(self, pairs: Int64Array) -> Float64Array:
        check_is_fitted(self)
        x, y = pairs.T
        wanted = x * self.n_songs + y
        place = np.searchsorted(self._keys, wanted)
        known = np.append(self._keys, -1)[place] == wanted
        kept = np.where(known, np.append(self._kept, 0.0)[place], 0.0)
        return np.log(kept + self._freed[x] * self._backing[y] / (1.0 - self._backing[x]))


class LatentMarkovEmbedding(SongChain):
    """Songs as points: the next song is probably near the current one.

    P[y | x] is proportional to exp(b_y - |X_y - X_x|^2) over the songs y other than x. P[x0] is proportional to
    the number of times x0 came first in training, plus `pseudo_count`.

    Parameters
    ----------
    n_songs : int >= 1
    n_dimensions : int >= 1
    regularization : float >= 0
        Factor of the sum of squared coordinates, which is subtracted from the log-likelihood.
    popularity : bool
        False: b_y = 0, the paper's basic model. True: learn one bias per song.
    learning_rate : float > 0, the step of Adam
    batch_size : int >= 1, sources per step
    max_iter : int >= 1, passes through all sources
    n_iter_no_change : int >= 1
        Stop after this number of passes without improvement on held-out playlists.
    validation_fraction : float, 0 <= validation_fraction < 1
        The share of playlists held out for this. If there are too few to hold one out, the training
        playlists are used. The fit then runs for about `max_iter` passes, and overfits.
    pseudo_count : float > 0
    random_state : int, numpy Generator or None
        Seed of the initial points, the held-out playlists and the order of sources.

    Attributes
    ----------
    coordinates_ : ndarray of shape (n_songs, n_dimensions)
    bias_ : ndarray of shape (n_songs,)
    history_ : list of float
        Mean log P of a held-out transition after each pass; the points of the best pass are kept.
    n_iter_ : int
    converged_ : bool
        False if `max_iter` (with a `ConvergenceWarning`) or the callback stopped the ascent.

    Notes
    -----
    Source: Chen, Moore, Turnbull and Joachims, "Playlist prediction via metric embedding", KDD 2012. This is the
    single-point model, with one bias per song as its extension by popularity. Departures: the partition function
    sums over all songs, even in fitting, where the paper uses landmarks. A song never follows itself. The ascent
    is Adam on random blocks of sources.

    The bias is the default, because it adds 0.15 nats per held-out transition on yes.com's small set (-5.857 with
    it, -6.005 without, 16 dimensions). Using 8 or 32 dimensions changes less than 0.01, a different seed 0.01.
    A fit takes 2 s there and 9 s on the big set (one core).

    Memory: a few float64 matrices of (batch_size, n_songs) and of (n_songs, n_dimensions).
    """

    def __init__(
        self,
        n_songs: int,
        n_dimensions: int = 16,
        regularization: float = 1.0,
        *,
        popularity: bool = True,
        learning_rate: float = 0.01,
        batch_size: int = 128,
        max_iter: int = 100,
        n_iter_no_change: int = 2,
        validation_fraction: float = 0.1,
        pseudo_count: float = 1.0,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.n_songs = n_songs
        self.n_dimensions = n_dimensions
        self.regularization = regularization
        self.popularity = popularity
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.n_iter_no_change = n_iter_no_change
        self.validation_fraction = validation_fraction
        self.pseudo_count = pseudo_count
        self.random_state = random_state

    def _check_parameters(self) -> None:
        for name in ("n_dimensions", "batch_size", "max_iter", "n_iter_no_change"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)} must be at least 1")
        if not 0 <= self.regularization < np.inf:
            raise ValueError(f"regularization={self.regularization} must be 0 or more")
        if not 0 < self.learning_rate < np.inf:
            raise ValueError(f"learning_rate={self.learning_rate} must be above 0")
        if not 0 <= self.validation_fraction < 1:
            raise ValueError(f"validation_fraction={self.validation_fraction} must lie in [0, 1)")

    def fit(
        self, playlists: Playlists, callback: Callable[[dict[str, Any]], bool | None] | None = None
    ) -> "LatentMarkovEmbedding":
        """Learn the points from playlists (lists of song rows).

        `callback` gets a dict with ``iteration``, ``objective`` (the last of `history_`) and ``best`` after every pass.
        If it returns True, the fit stops and keeps the best points so far.
        """
        self._check_parameters()
        counts = checked_counts(playlists, self.n_songs, self.pseudo_count)
        if counts.pair_of.size == 0:
            raise ValueError("playlists hold no transitions: points need songs that follow each other")
        rng = np.random.default_rng(self.random_state)
        order = rng.permutation(len(playlists))
        n_held_out = int(self.validation_fraction * len(playlists))
        held_out, training = (
            Counts.from_playlists([playlists[i] for i in part], self.n_songs) for part in np.split(order, [n_held_out])
        )
        if training.pair_of.size == 0:
            held_out, training = training, counts
        how = Ascent(
            learning_rate=self.learning_rate,
            batch_size=self.batch_size,
            max_iter=self.max_iter,
            n_iter_no_change=self.n_iter_no_change,
            regularization=self.regularization,
            with_bias=self.popularity,
        )
        start = self._start(training, rng)
        points, self.history_ = climb(start, training, held_out, how, rng, callback)
        self._first = smoothed(count_openings(counts, self.n_songs), self.pseudo_count)
        self.coordinates_, self.bias_ = points.coordinates, points.bias
        self.n_iter_ = len(self.history_)
        best = int(np.argmax(self.history_)) + 1
        self.converged_ = self.n_iter_ - best >= self.n_iter_no_change
        if self.n_iter_ == self.max_iter and not self.converged_:
            warnings.warn(
                f"max_iter={self.max_iter} passes: pass {best} was the best on held-out playlists, and the "
                f"next might be better",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _start(self, training: Counts, rng: np.random.Generator) -> Points:
        """Return points close together with the log of the plays as bias: nearly `Popularity`."""
        coordinates = rng.normal(scale=0.01, size=(self.n_songs, self.n_dimensions))
        bias = np.log(smoothed(count_plays(training, self.n_songs), self.pseudo_count))
        return Points(coordinates, bias - bias.mean() if self.popularity else np.zeros(self.n_songs))

    def _log_moves(self, pairs: Int64Array) -> Float64Array:
        check_is_fitted(self)
        return log_moves(Points(self.coordinates_, self.bias_), pairs)


class StationaryModel(PlaylistScorer, BaseEstimator):
    """Hypergraph model without memory: every song is drawn like a first song.

    Parameters
    ----------
    hypergraph : Hypergraph
    prior, uniform_floor, max_iter, tol : as in `PlaylistModel`

    Attributes
    ----------
    weights_ : ndarray of shape (n_edges,), sums to 1

    Notes
    -----
    Source: section 7.7.2 of the thesis. `PlaylistModel` is fitted to every song as a playlist of length one. log P is
    the sum of log P[x_t] under its distribution of first songs. As printed there, draws are independent, so unlike all
    other models this one may repeat a song immediately. `log_probability` is therefore finite for such playlists, but
    the means of `PlaylistScorer` skip them anyway.
    """

    def __init__(
        self,
        hypergraph: Hypergraph,
        *,
        prior: float | npt.ArrayLike = 1.0,
        uniform_floor: float = 1e-3,
        max_iter: int = 500,
        tol: float = 1e-7,
    ) -> None:
        self.hypergraph = hypergraph
        self.prior = prior
        self.uniform_floor = uniform_floor
        self.max_iter = max_iter
        self.tol = tol

    @property
    def n_songs(self) -> int:
        """Number of songs of the hypergraph."""
        return self.hypergraph.n_songs

    def fit(self, playlists: Playlists) -> "StationaryModel":
        """Learn the weights from playlists (lists of song rows)."""
        checked_counts(playlists, self.n_songs, 1.0)
        model = PlaylistModel(
            self.hypergraph, prior=self.prior, uniform_floor=self.uniform_floor, max_iter=self.max_iter, tol=self.tol
        )
        model.fit([[song] for playlist in playlists for song in playlist])
        self.weights_ = model.weights_
        self._first = model.first_probabilities()
        return self

    def first_probabilities(self) -> Float64Array:
        """Return P[x0] for every song, shape (n_songs,)."""
        check_is_fitted(self)
        return self._first

    def transition_probabilities(self, song: int) -> Float64Array:
        """Return P[y | song] for every song y, shape (n_songs,): P[x0], independent of `song`."""
        return self.first_probabilities()

    def _log_probability(self, counts: Counts, n_playlists: int) -> Float64Array:
        with np.errstate(divide="ignore"):
            log_first = np.log(self.first_probabilities())
        start, move = log_first[counts.first_songs], log_first[counts.pairs[:, 1]]
        return sum_by_playlist(counts, n_playlists, start, move)

    def log_probability(self, playlists: Playlists) -> Float64Array:
        """Return log P[playlist] for each playlist, natural log, not divided by the length."""
        return self._log_songs(playlists, 0)

    def transition_log_probability(self, playlists: Playlists) -> Float64Array:
        """Return the sum of log P[x_t] over all songs except the first, for each playlist."""
        return self._log_songs(playlists, 1)

    def _log_songs(self, playlists: Playlists, start: int) -> Float64Array:
        Counts.from_playlists(playlists, self.n_songs)  # raises an error that identifies an invalid playlist
        with np.errstate(divide="ignore"):
            log_first = np.log(self.first_probabilities())
        return np.array([log_first[np.asarray(p[start:], dtype=np.int64)].sum() for p in playlists])
