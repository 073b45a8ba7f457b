"""What models of playlists share: the measures of how well they foretell, and the chain of songs.

Logs are natural. A song followed by itself has probability 0 in every model here, so that a playlist with
an immediate repeat could not tell one model from another: the means leave it out and warn.
"""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from musicsim.playlist._likelihood import Counts

__all__ = [
    "PlaylistScorer",
    "Playlists",
    "Scored",
    "SongChain",
    "checked_counts",
    "count_openings",
    "count_plays",
    "smoothed",
    "sum_by_playlist",
]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
Playlists = Sequence[Sequence[int]]


class Scored(Protocol):
    """What `PlaylistScorer` needs of a model."""

    @property
    def n_songs(self) -> int: ...

    def _log_probability(self, counts: Counts, n_playlists: int) -> FloatArray:
        """Return log P of each playlist: its first song, if `counts` has it, and its transitions."""
        ...


def _judged(counts: Counts, lengths: FloatArray, stacklevel: int) -> BoolArray:
    """Tell which playlists can be judged; warn about the others."""
    judged = (lengths > 0) & (counts.repeats == 0)
    if not judged.any():
        raise ValueError("no playlist can be judged: all are empty or repeat a song immediately")
    if not judged.all():
        warnings.warn(
            f"{np.count_nonzero(~judged)} of {lengths.size} playlists are left out: they are empty "
            f"or repeat a song immediately",
            stacklevel=stacklevel,
        )
    return judged


def _lengths(playlists: Playlists) -> FloatArray:
    return np.array([len(playlist) for playlist in playlists], dtype=np.float64)


def _normalised(model: Scored, playlists: Playlists) -> tuple[FloatArray, FloatArray]:
    """Return log P / length of model and of uniform shuffle, for each playlist that can be judged."""
    counts, lengths = Counts.of(playlists, model.n_songs), _lengths(playlists)
    judged = _judged(counts, lengths, stacklevel=4)
    log_p = model._log_probability(counts, len(playlists))[judged]
    lengths, n = lengths[judged], model.n_songs
    uniform = -np.log(n) - (lengths - 1) * np.log(max(n - 1, 1))
    return log_p / lengths, uniform / lengths


def _log_transitions(model: Scored, counts: Counts, n_playlists: int) -> FloatArray:
    """Return the log of the product of the transitions of each playlist."""
    nothing = np.empty(0, dtype=np.int64)
    return model._log_probability(replace(counts, first_songs=nothing, first_lists=nothing), n_playlists)


class PlaylistScorer:
    """Mixin: the figures of merit of a model that has `n_songs` and `_log_probability`."""

    def score(self: Scored, playlists: Playlists) -> float:
        """Return the mean over playlists of log P / length, L of section 7.7; higher is better."""
        return float(_normalised(self, playlists)[0].mean())

    def relative_gain(self: Scored, playlists: Playlists) -> float:
        """Return G = 1 - L(model) / L(uniform shuffle), of section 7.7: 0 as good, 1 certainty.

        Uniform shuffle draws the first song among all and each next one among the others, all equally
        likely (also where songs have weights).
        """
        model, uniform = _normalised(self, playlists)
        if uniform.mean() == 0:
            raise ValueError("a collection of one song leaves nothing to gain over uniform shuffle")
        return float(1.0 - model.mean() / uniform.mean())

    def transition_log_probability(self: Scored, playlists: Playlists) -> FloatArray:
        """Return log P[x1, x2, ... | x0] for each playlist, natural log, not divided by the length.

        -inf for an immediate repeat; 0 for a playlist of one song or none.
        """
        return _log_transitions(self, Counts.of(playlists, self.n_songs), len(playlists))

    def mean_transition_log_probability(self: Scored, playlists: Playlists) -> float:
        """Return the mean of log P[y | x] over all transitions of the playlists; higher is better.

        First songs do not count, and long playlists count for more: the measure of Chen et al., "Playlist
        prediction via metric embedding", KDD 2012. Uniform shuffle has -log(n_songs - 1).
        """
        counts, lengths = Counts.of(playlists, self.n_songs), _lengths(playlists)
        judged = _judged(counts, lengths, stacklevel=3)
        n_transitions = (lengths[judged] - 1).sum()
        if n_transitions == 0:
            raise ValueError("no transition can be judged: every playlist has one song only")
        return float(_log_transitions(self, counts, len(playlists))[judged].sum() / n_transitions)


def checked_counts(playlists: Playlists, n_songs: int, pseudo_count: float) -> Counts:
    """Count the playlists that `fit` was given; check them and the parameters most models share."""
    if not isinstance(n_songs, int | np.integer) or n_songs < 1:
        raise ValueError(f"n_songs={n_songs!r} must be a whole number of at least 1")
    if not 0 < pseudo_count < np.inf:
        raise ValueError(f"pseudo_count={pseudo_count} must be above 0: else new songs are impossible")
    counts = Counts.of(playlists, n_songs)
    if counts.first_songs.size == 0:
        raise ValueError("playlists hold no songs: there is nothing to learn from")
    return counts


def count_plays(counts: Counts, n_songs: int) -> FloatArray:
    """Return how often each song was played, an immediate repeat counted once."""
    played = np.concatenate([counts.first_songs, counts.pairs[counts.pair_of, 1]])
    return np.asarray(np.bincount(played, minlength=n_songs), dtype=np.float64)


def count_openings(counts: Counts, n_songs: int) -> FloatArray:
    """Return how often each song came first: better for P[x0] than plays, by 0.15 nats on yes.com."""
    return np.asarray(np.bincount(counts.first_songs, minlength=n_songs), dtype=np.float64)


def smoothed(counts: FloatArray, pseudo_count: float) -> FloatArray:
    """Return the counts, each raised by `pseudo_count`, as shares of their sum."""
    return (counts + pseudo_count) / (counts + pseudo_count).sum()


def sum_by_playlist(counts: Counts, n_playlists: int, start: FloatArray, move: FloatArray) -> FloatArray:
    """Add up log P of the first songs, `start` (n_first,), and of the distinct transitions, `move`."""
    log_p = np.zeros(n_playlists)
    np.add.at(log_p, counts.list_of, move[counts.pair_of])
    log_p[counts.first_lists] += start
    return log_p


class SongChain(PlaylistScorer, BaseEstimator):
    """A Markov chain of songs: the first is drawn by `_first`, the others by `_log_moves`."""

    n_songs: int
    _first: FloatArray

    def __sklearn_is_fitted__(self) -> bool:
        return "_first" in self.__dict__

    def _log_moves(self, pairs: IntArray) -> FloatArray:
        """Return log P[y | x] of each row (x, y) of `pairs`: sorted by x, none with x = y."""
        raise NotImplementedError

    def _log_probability(self, counts: Counts, n_playlists: int) -> FloatArray:
        start = np.log(self.first_probabilities()[counts.first_songs])
        log_p = sum_by_playlist(counts, n_playlists, start, self._log_moves(counts.pairs))
        log_p[counts.repeats > 0] = -np.inf
        return log_p

    def log_probability(self, playlists: Playlists) -> FloatArray:
        """Return log P[playlist] for each playlist, natural log, not divided by the length.

        -inf for an immediate repeat, 0 for an empty playlist.
        """
        return self._log_probability(Counts.of(playlists, self.n_songs), len(playlists))

    def first_probabilities(self) -> FloatArray:
        """Return P[x0] for every song, shape (n_songs,)."""
        check_is_fitted(self)
        return self._first

    def transition_probabilities(self, song: int) -> FloatArray:
        """Return P[y | song] for every song y, shape (n_songs,): sums to 1, and is 0 at `song` itself."""
        if not isinstance(song, int | np.integer) or not 0 <= song < self.n_songs:
            raise ValueError(f"song={song!r} is no song; the model has {self.n_songs}, from 0")
        others = np.delete(np.arange(self.n_songs), song)
        row = np.zeros(self.n_songs)
        row[others] = np.exp(self._log_moves(np.stack([np.full_like(others, song), others], axis=1)))
        return row
