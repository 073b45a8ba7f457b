"""What each part of what a model compares gives to the similarity of two songs, in groups that have a name.

Of models that compare Gaussians and fluctuation the groups are parts of the sound, of others what they compare. A
Gaussian's logarithm has a number for each pair of columns of the frames, and for each column by itself. They are put
together to what can be said in a word: level, tone colour, their movement, and what goes with what. Whitening mixes the
columns of frames a little; the groups are those of the columns after it, each of which is closest to one before.
Fluctuation is a group by itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self, TypeAlias

import numpy as np
import numpy.typing as npt

from musicsim._arrays import Float32Array, Float64Array, Int64Array
from musicsim.audio.features import N_MFCC

_COVERED = 0.8
"""Share of the similarity that is said part by part; the rest is one bar."""
REST = "everything else"
_N_COARSE = 5
"""Cepstra that say the tone colour roughly: the level, and four of the spectrum's shape."""

Shares: TypeAlias = tuple[Float64Array, Float64Array]
"""Of squared distance and of similarity."""

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
        (part, moves) for part in (_LEVEL, _TONE, _DETAIL) for moves in (_LEVEL_MOVES, _TONE_MOVES, _TONE_TURNS)
    ]
    + [(moves, _MEAN) for moves in (_LEVEL_MOVES, _TONE_MOVES, _TONE_TURNS)],
    "rhythm and fluctuation": [],
}
"""Pairs of kinds of columns, by what they say; each pair is in one of them. The last is no pair of columns."""


@dataclass(frozen=True, slots=True)
class Compared:
    """What a model compares of two songs: mapped features, each in a group that has a name."""

    names: tuple[str, ...]  # of the groups
    group: Int64Array  # (n_features,)
    pair: Float32Array  # (2, n_features)
    sample: Float32Array  # (n, n_features): other songs of the library
    before: Float64Array  # (r, n_features): L of the metric M = L^T L
    after: Float64Array | None  # None without a learned metric

    @classmethod
    def joined(cls, parts: Sequence["Compared"]) -> Self:
        """Several as one; groups of one name are one group."""
        names = tuple(dict.fromkeys(name for part in parts for name in part.names))
        return cls(
            names=names,
            group=np.concatenate([np.array([names.index(name) for name in part.names])[part.group] for part in parts]),
            pair=np.hstack([part.pair for part in parts]),
            sample=np.hstack([part.sample for part in parts]),
            before=np.hstack([part.before for part in parts]),
            after=None
            if parts[0].after is None
            else np.hstack([part.after for part in parts if part.after is not None]),
        )

    def shares(self) -> tuple[Shares, Shares | None]:
        """Shares of the groups in squared distance and similarity, before and after learning."""
        a, b = self.pair
        n = len(self.names)
        before = group_shares(a, b, self.sample, self.before, self.group, n)
        return before, None if self.after is None else group_shares(a, b, self.sample, self.after, self.group, n)


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
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    sample: npt.ArrayLike,
    components: npt.ArrayLike,
    group: Int64Array,
    n_groups: int,
) -> Shares:
    """Share of each group of features in the squared distance of two songs, and in their similarity.

    Parameters
    ----------
    a, b : arrays of shape (n_features,)
        Mapped features of the songs.
    sample : array of shape (n, n_features)
        Those of songs of the library.
    components : array of shape (r, n_features)
        L of the metric M = L^T L.
    group : int64 ndarray of shape (n_features,)
        The group of each feature, less than `n_groups`.

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
    distance = np.bincount(group, delta * (L.T @ (L @ delta)), n_groups).astype(np.float64)
    X = X - X.mean(axis=0)
    usual = np.bincount(group, ((X @ L.T) @ L * X).mean(axis=0), n_groups).astype(np.float64)
    # of a single song, or of copies, nothing is usual
    usual = usual / usual.sum() if usual.sum() > 0 else np.full(len(usual), 1.0 / len(usual))
    return distance, usual - distance / 2


def largest_shares(names: Sequence[str], before: Shares, after: Shares | None) -> tuple[Share, ...]:
    """The groups with the most of the similarity under the model in use, and what is left as one more.

    `names` are those of the groups, `before` and `after` as :func:`group_shares` returns them, without and with a
    learned metric.
    """
    _, similarity = after or before
    order = np.argsort(-similarity, kind="stable")
    reached = np.flatnonzero(np.cumsum(similarity[order]) >= _COVERED * similarity.sum())
    n = int(reached[0]) + 1 if len(reached) else len(order)
    chosen = [(names[g], [g]) for g in order[:n].tolist()] + [(REST, order[n:].tolist())]
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


def sound_groups(n_features: int) -> Int64Array:
    """The place in :data:`GROUPS` of each feature of a Sound model, (n_features,)."""
    kinds = _kinds()
    rows, columns = np.triu_indices(len(kinds))
    group_of = {frozenset(pair): g for g, pairs in enumerate(GROUPS.values()) for pair in pairs}
    pairs = zip(kinds[rows].tolist(), kinds[columns].tolist(), strict=True)
    group = np.full(n_features, len(GROUPS) - 1)  # what is behind the pairs
    group[: len(rows)] = [group_of[frozenset(pair)] for pair in pairs]
    return group


def _kinds() -> Int64Array:
    """The kind of each column of a Gaussian's matrix: cepstra, their slopes, their curvatures, the mean."""
    kinds = np.empty(3 * N_MFCC + 1, dtype=np.int64)
    kinds[0], kinds[1:_N_COARSE], kinds[_N_COARSE:N_MFCC] = _LEVEL, _TONE, _DETAIL
    kinds[N_MFCC : 2 * N_MFCC], kinds[2 * N_MFCC : -1] = _TONE_MOVES, _TONE_TURNS
    kinds[[N_MFCC, 2 * N_MFCC]] = _LEVEL_MOVES
    kinds[-1] = _MEAN
    return kinds
