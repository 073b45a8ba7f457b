"""Measures of how well a model predicts playlists, for any model that gives the probability of one.

Logs are natural. A song followed by itself has probability 0 in every model here, so that a playlist with
an immediate repeat could not tell one model from another: the means leave it out and warn.
"""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from musicsim._arrays import BoolArray, Float64Array
from musicsim.playlist.counts import Counts

Playlists = Sequence[Sequence[int]]


class Scored(Protocol):
    """Model that `PlaylistScorer` can judge."""

    @property
    def n_songs(self) -> int: ...

    def _log_probability(self, counts: Counts, n_playlists: int) -> Float64Array:
        """Return log P of each playlist: its first song, if `counts` has it, and its transitions."""
        ...


def _judged(counts: Counts, lengths: Float64Array, stacklevel: int) -> BoolArray:
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


def _lengths(playlists: Playlists) -> Float64Array:
    return np.array([len(playlist) for playlist in playlists], dtype=np.float64)


def _normalised(model: Scored, playlists: Playlists) -> tuple[Float64Array, Float64Array]:
    """Return log P / length of model and of uniform shuffle, for each playlist that can be judged."""
    counts, lengths = Counts.of(playlists, model.n_songs), _lengths(playlists)
    judged = _judged(counts, lengths, stacklevel=4)
    log_p = model._log_probability(counts, len(playlists))[judged]
    lengths, n = lengths[judged], model.n_songs
    uniform = -np.log(n) - (lengths - 1) * np.log(max(n - 1, 1))
    return log_p / lengths, uniform / lengths


def _log_transitions(model: Scored, counts: Counts, n_playlists: int) -> Float64Array:
    """Return the log of the product of the transitions of each playlist."""
    nothing = np.empty(0, dtype=np.int64)
    return model._log_probability(replace(counts, first_songs=nothing, first_lists=nothing), n_playlists)


class PlaylistScorer:
    """Mixin with the figures of merit of a model that has `n_songs` and `_log_probability`."""

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

    def transition_log_probability(self: Scored, playlists: Playlists) -> Float64Array:
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
