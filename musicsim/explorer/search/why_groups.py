"""What each part of the sound gives to the similarity of two songs that are compared by Gaussians and fluctuation.

A Gaussian's logarithm has a number for each pair of columns of the frames, and for each column by itself. They are put
together to what can be said in a word: level, tone colour, their movement, and what goes with what. Whitening mixes the
columns of frames a little; the groups are those of the columns after it, each of which is closest to one before.
Fluctuation is a group by itself.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from musicsim._arrays import Float64Array, Int64Array
from musicsim.audio.features import N_MFCC

_COVERED = 0.8
"""Share of the similarity that is said part by part; the rest is one bar."""
_REST = "everything else"
_N_COARSE = 5
"""Cepstra that say the tone colour roughly: the level, and four of the spectrum's shape."""

_LEVEL, _TONE, _DETAIL, _LEVEL_MOVES, _TONE_MOVES, _TONE_TURNS, _MEAN = range(7)
GROUPS = {
    "tone colour": [(_TONE, _MEAN)],
    "fine tone colour": [(_DETAIL, _MEAN)],
    "how much the loudness varies": [(_LEVEL, _LEVEL), (_LEVEL, _MEAN), (_MEAN, _MEAN)],
    "how much the tone colour varies": [(_TONE, _TONE), (_TONE, _DETAIL), (_DETAIL, _DETAIL)],
    "tone colour of loud and quiet moments": [(_LEVEL, _TONE), (_LEVEL, _DETAIL)],
    "attacks and swells": [(_LEVEL_MOVES, _LEVEL_MOVES)],
    "tone colour of attacks": [(_LEVEL_MOVES, _TONE_MOVES), (_LEVEL_MOVES, _TONE_TURNS)],
    "slow changes of tone colour": [(_TONE_MOVES, _TONE_MOVES)],
    "fast changes of tone colour": [(_TONE_MOVES, _TONE_TURNS), (_TONE_TURNS, _TONE_TURNS)],
    "where in a sound it changes": [
        (part, moves)
        for part in (_LEVEL, _TONE, _DETAIL)
        for moves in (_LEVEL_MOVES, _TONE_MOVES, _TONE_TURNS)
    ]
    + [(moves, _MEAN) for moves in (_LEVEL_MOVES, _TONE_MOVES, _TONE_TURNS)],
    "rhythm and fluctuation": [],
}
"""Pairs of kinds of columns, by what they say; each pair is in one of them. The last is no pair of columns."""


@dataclass(frozen=True, slots=True)
class Share:
    """What a part of the sound adds to similarity and squared distance; "after" is None without a learned metric."""

    words: str
    similarity_before: float
    similarity_after: float | None
    distance_before: float
    distance_after: float | None

    @property
    def similarity(self) -> float:
        """Under the model in use."""
        return self.similarity_before if self.similarity_after is None else self.similarity_after

    @property
    def distance(self) -> float:
        """Under the model in use."""
        return self.distance_before if self.distance_after is None else self.distance_after


def group_shares(
    a: npt.ArrayLike, b: npt.ArrayLike, sample: npt.ArrayLike, components: npt.ArrayLike
) -> tuple[Float64Array, Float64Array]:
    """Share of each of :data:`GROUPS` in the squared distance of two songs, and in their similarity.

    Parameters
    ----------
    a, b : arrays of shape (n_features,)
        Mapped features of a :class:`~musicsim.explorer.models.encoders.SoundEncoder`, or of the
        :class:`~musicsim.explorer.models.encoders.GaussianEncoder` of older versions.
    sample : array of shape (n, n_features)
        Those of songs of the library.
    components : array of shape (r, n_features)
        L of the metric M = L^T L.

    Returns
    -------
    distance, similarity : float64 ndarrays of shape (n_groups,)
        They sum to d^2 = (a - b)^T M (a - b) and to 1 - d^2 / 2, the similarity that is shown.

    Notes
    -----
    With delta = a - b, a number w has delta_w (M delta)_w of the distance. Of the similarity a group has what it has,
    on average, of the squared distances of the sample, less half of its share of this distance: a group in which two
    songs are the same gives all that it can, one in which they are as far apart as others half of it.
    """
    a, b, X, L = (np.asarray(x, dtype=np.float64) for x in (a, b, sample, components))
    delta = a - b
    distance = _by_group((delta * (L.T @ (L @ delta)))[None])[0]
    X = X - X.mean(axis=0)
    usual = _by_group(((X @ L.T) @ L * X).mean(axis=0, keepdims=True))[0]
    # of a single song, or of copies, nothing is usual
    usual = usual / usual.sum() if usual.sum() > 0 else np.full(len(usual), 1.0 / len(usual))
    return distance, usual - distance / 2


def largest_shares(
    before: tuple[Float64Array, Float64Array], after: tuple[Float64Array, Float64Array] | None
) -> tuple[Share, ...]:
    """The groups with the most of the similarity under the model in use, and what is left as one more.

    `before` and `after` are those of :func:`group_shares`, (n_groups,) each, without and with a learned metric.
    """
    _, similarity = after or before
    order = np.argsort(-similarity, kind="stable")
    reached = np.flatnonzero(np.cumsum(similarity[order]) >= _COVERED * similarity.sum())
    n = int(reached[0]) + 1 if len(reached) else len(order)
    names = list(GROUPS)
    chosen = [(names[g], [g]) for g in order[:n].tolist()] + [(_REST, order[n:].tolist())]
    return tuple(
        Share(
            words,
            similarity_before=float(before[1][which].sum()),
            similarity_after=None if after is None else float(after[1][which].sum()),
            distance_before=float(before[0][which].sum()),
            distance_after=None if after is None else float(after[0][which].sum()),
        )
        for words, which in chosen
        if which
    )


def _kinds() -> Int64Array:
    """The kind of each column of a Gaussian's matrix: cepstra, their slopes, their curvatures, the mean."""
    kinds = np.empty(3 * N_MFCC + 1, dtype=np.int64)
    kinds[0], kinds[1:_N_COARSE], kinds[_N_COARSE:N_MFCC] = _LEVEL, _TONE, _DETAIL
    kinds[N_MFCC : 2 * N_MFCC], kinds[2 * N_MFCC : -1] = _TONE_MOVES, _TONE_TURNS
    kinds[[N_MFCC, 2 * N_MFCC]] = _LEVEL_MOVES
    kinds[-1] = _MEAN
    return kinds


def _by_group(values: Float64Array) -> Float64Array:
    """Sums over the numbers of each group, (n, n_groups), of values (n, n_features)."""
    kinds = _kinds()
    rows, columns = np.triu_indices(len(kinds))
    group_of = {frozenset(pair): g for g, pairs in enumerate(GROUPS.values()) for pair in pairs}
    pairs = zip(kinds[rows].tolist(), kinds[columns].tolist(), strict=True)
    group = np.full(values.shape[1], len(GROUPS) - 1)  # what is behind the pairs
    group[: len(rows)] = [group_of[frozenset(pair)] for pair in pairs]
    return np.stack([np.bincount(group, row, len(GROUPS)) for row in values])
