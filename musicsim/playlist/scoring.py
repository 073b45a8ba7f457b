"""Evaluation of playlist models by the probability of playlists.

Logs are natural. Every model assigns probability 0 to an immediate repeat of a song, so playlists with immediate
repeats cannot distinguish models. Means skip these playlists with a warning.
"""

import warnings
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from musicsim._arrays import BoolArray, Float64Array
from musicsim.playlist.counts import Counts

Playlists = Sequence[Sequence[int]]


def _find_valid(counts: Counts, lengths: Float64Array, stacklevel: int) -> BoolArray:
    """Return a mask of the playlists that can be evaluated; warn about the others."""
    valid = (lengths > 0) & (counts.repeats == 0)
    if not valid.any():
        raise ValueError("no playlist can be evaluated: all are empty or repeat a song immediately")
    if not valid.all():
        warnings.warn(
            f"{np.count_nonzero(~valid)} of {lengths.size} playlists are skipped, because they are empty or "
            "repeat a song immediately",
            stacklevel=stacklevel,
        )
    return valid


def _lengths(playlists: Playlists) -> Float64Array:
    return np.array([len(playlist) for playlist in playlists], dtype=np.float64)


class PlaylistScorer:
    """Mixin that adds scores to a model with `n_songs` and `_log_probability`."""

    n_songs: int

    def _log_probability(self, counts: Counts, n_playlists: int) -> Float64Array:
        """Return log P of each playlist's transitions, and of its first song if `counts` has first songs."""
        raise NotImplementedError

    def _normalize(self, playlists: Playlists) -> tuple[Float64Array, Float64Array]:
        """Return log P / length under the model and under uniform shuffle for each valid playlist."""
        counts, lengths = Counts.from_playlists(playlists, self.n_songs), _lengths(playlists)
        valid = _find_valid(counts, lengths, stacklevel=4)
        log_p = self._log_probability(counts, len(playlists))[valid]
        lengths, n = lengths[valid], self.n_songs
        uniform = -np.log(n) - (lengths - 1) * np.log(max(n - 1, 1))
        return log_p / lengths, uniform / lengths

    def _log_transitions(self, counts: Counts, n_playlists: int) -> Float64Array:
        nothing = np.empty(0, dtype=np.int64)
        return self._log_probability(replace(counts, first_songs=nothing, first_lists=nothing), n_playlists)

    def score(self, playlists: Playlists) -> float:
        """Return the mean over playlists of log P / length (L in section 7.7 of the thesis); higher is better."""
        return float(self._normalize(playlists)[0].mean())

    def relative_gain(self, playlists: Playlists) -> float:
        """Return G = 1 - L(model) / L(uniform shuffle) (section 7.7 of the thesis): 0 means equal, 1 means certain.

        Uniform shuffle draws songs with equal probability, even if they have weights, without immediate repeats.
        """
        model, uniform = self._normalize(playlists)
        if uniform.mean() == 0:
            raise ValueError("with a single song, no model can gain anything over uniform shuffle")
        return float(1.0 - model.mean() / uniform.mean())

    def transition_log_probability(self, playlists: Playlists) -> Float64Array:
        """Return log P[x1, x2, ... | x0] for each playlist, not divided by the length.

        The result is -inf if there is an immediate repeat, and 0 for a playlist with fewer than two songs.
        """
        return self._log_transitions(Counts.from_playlists(playlists, self.n_songs), len(playlists))

    def mean_transition_log_probability(self, playlists: Playlists) -> float:
        """Return the mean of log P[y | x] over all transitions of the playlists; higher is better.

        First songs are ignored, and long playlists have more weight. This is the measure in Chen et al., "Playlist
        prediction via metric embedding", KDD 2012. Uniform shuffle scores -log(n_songs - 1).
        """
        counts, lengths = Counts.from_playlists(playlists, self.n_songs), _lengths(playlists)
        valid = _find_valid(counts, lengths, stacklevel=3)
        n_transitions = (lengths[valid] - 1).sum()
        if n_transitions == 0:
            raise ValueError("no transition can be evaluated: every playlist has only one song")
        return float(self._log_transitions(counts, len(playlists))[valid].sum() / n_transitions)
