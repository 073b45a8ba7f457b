"""Shares of named groups of features in the similarity of two songs.

For models like Sound, the groups are aspects of the sound. The logarithm of a Gaussian has a number for each column of
the frames and for each pair of columns. Each group contains some of these pairs; fluctuation is a separate group.
Whitening mixes the columns slightly, but each whitened column stays closest to one original column, whose group it
gets. Other models have a single group.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self, TypeAlias

import numpy as np
import numpy.typing as npt

from musicsim._arrays import Float32Array, Float64Array, Int64Array
from musicsim.audio import FLUCTUATION_SIZE
from musicsim.audio.features import N_MFCC

_COVERED = 0.8  # share of the similarity that is shown as groups; the remainder is one bar
REST = "everything else"
N_SOUND_FEATURES = (3 * N_MFCC + 1) * (3 * N_MFCC + 2) // 2 + FLUCTUATION_SIZE
"""Number of features of a Sound model: pairs of columns of a Gaussian's matrix, and fluctuation."""
_N_COARSE = 5  # MFCC for the coarse tone color: one for the level, four for the spectrum's shape

Shares: TypeAlias = tuple[Float64Array, Float64Array]  # shares of the squared distance, and of the similarity

_LEVEL, _TONE, _DETAIL, _LEVEL_MOVES, _TONE_MOVES, _TONE_TURNS, _MEAN = range(7)
GROUPS = {
    "tone color": [(_TONE, _MEAN)],
    "fine tone color": [(_DETAIL, _MEAN)],
    "how much the loudness varies": [(_LEVEL, _LEVEL), (_LEVEL, _MEAN), (_MEAN, _MEAN)],
    "how much the tone color varies": [(_TONE, _TONE), (_TONE, _DETAIL), (_DETAIL, _DETAIL)],
    "tone color of loud and quiet moments": [(_LEVEL, _TONE), (_LEVEL, _DETAIL)],
    "attacks and swells": [(_LEVEL_MOVES, _LEVEL_MOVES)],
    "tone color of attacks": [(_LEVEL_MOVES, _TONE_MOVES), (_LEVEL_MOVES, _TONE_TURNS)],
    "slow changes of tone color": [(_TONE_MOVES, _TONE_MOVES)],
    "fast changes of tone color": [(_TONE_MOVES, _TONE_TURNS), (_TONE_TURNS, _TONE_TURNS)],
    "where in a sound it changes": [
        (part, moves) for part in (_LEVEL, _TONE, _DETAIL) for moves in (_LEVEL_MOVES, _TONE_MOVES, _TONE_TURNS)
    ]
    + [(moves, _MEAN) for moves in (_LEVEL_MOVES, _TONE_MOVES, _TONE_TURNS)],
    "rhythm and fluctuation": [],
}
"""Group -> pairs of kinds of columns; each pair is in one group. The last group is empty."""


@dataclass(frozen=True, slots=True)
class Compared:
    """Features of two songs under a model, in named groups."""

    names: tuple[str, ...]  # names of the groups
    group: Int64Array  # (n_features,): index of each feature's group in `names`
    pair: Float32Array  # (2, n_features)
    sample: Float32Array  # (n, n_features): other songs in the library
    before: Float64Array  # (r, n_features): L of the metric M = L^T L
    after: Float64Array | None  # None without a learned metric

    @classmethod
    def concatenate(cls, parts: Sequence["Compared"]) -> Self:
        """Concatenate features; groups of the same name become one."""
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
        """Return the shares of the groups before and after learning."""
        a, b = self.pair

        def shares_of(components: Float64Array) -> Shares:
            return group_shares(a, b, self.sample, components, self.group, len(self.names))

        return shares_of(self.before), None if self.after is None else shares_of(self.after)


@dataclass(frozen=True, slots=True)
class Share:
    """Contribution of a group to similarity and squared distance; "after" is None without a learned metric."""

    words: str
    similarity_before: float
    similarity_after: float | None
    distance_before: float
    distance_after: float | None

    @property
    def similarity(self) -> float:
        """Share of the similarity under the model in use."""
        return self.similarity_before if self.similarity_after is None else self.similarity_after

    @property
    def distance(self) -> float:
        """Share of the squared distance under the model in use."""
        return self.distance_before if self.distance_after is None else self.distance_after


def group_shares(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    sample: npt.ArrayLike,
    components: npt.ArrayLike,
    group: Int64Array,
    n_groups: int,
) -> Shares:
    """Return each feature group's share of the squared distance between two songs, and of their similarity.

    The songs a and b (n_features,) and `sample` (n, n_features), other songs in the library, are mapped features.
    `components` (r, n_features) is L of the metric M = L^T L; `group` (n_features,) is the group of each feature. The
    shares (n_groups,) sum to d^2 = (a - b)^T M (a - b) and to 1 - d^2 / 2, which the pages show as similarity.

    With delta = a - b, feature w has the share delta_w (M delta)_w of the squared distance. A group's share of the
    similarity is its mean share of squared distances in the sample, minus half its share of this one. A group in
    which two songs are equal contributes all of its mean share; a group with a typical distance contributes half.
    """
    a, b, X, L = (np.asarray(x, dtype=np.float64) for x in (a, b, sample, components))
    delta = a - b
    distance = np.bincount(group, delta * (L.T @ (L @ delta)), n_groups).astype(np.float64)
    X = X - X.mean(axis=0)
    typical = np.bincount(group, ((X @ L.T) @ L * X).mean(axis=0), n_groups).astype(np.float64)
    # a single song, or duplicates alone, have no variance
    typical = typical / typical.sum() if typical.sum() > 0 else np.full(len(typical), 1.0 / len(typical))
    return distance, typical - distance / 2


def largest_shares(names: Sequence[str], before: Shares, after: Shares | None) -> tuple[Share, ...]:
    """Return the groups with the largest shares of the similarity under the model in use, and the rest as one."""
    _, similarity = after or before
    order = np.argsort(-similarity, kind="stable")
    enough = np.flatnonzero(np.cumsum(similarity[order]) >= _COVERED * similarity.sum())
    n = int(enough[0]) + 1 if len(enough) else len(order)
    chosen = [(names[g], [g]) for g in order[:n].tolist()] + [(REST, order[n:].tolist())]
    return tuple(
        Share(
            words,
            similarity_before=float(before[1][groups].sum()),
            similarity_after=None if after is None else float(after[1][groups].sum()),
            distance_before=float(before[0][groups].sum()),
            distance_after=None if after is None else float(after[0][groups].sum()),
        )
        for words, groups in chosen
        if groups
    )


def sound_groups(n_features: int) -> Int64Array:
    """Return the index in :data:`GROUPS` of each feature of a Sound model, (n_features,)."""
    # kind of each column of a Gaussian's matrix: MFCCs, their deltas, their second deltas, the mean
    kinds = np.empty(3 * N_MFCC + 1, dtype=np.int64)
    kinds[0], kinds[1:_N_COARSE], kinds[_N_COARSE:N_MFCC] = _LEVEL, _TONE, _DETAIL
    kinds[N_MFCC : 2 * N_MFCC], kinds[2 * N_MFCC : -1] = _TONE_MOVES, _TONE_TURNS
    kinds[[N_MFCC, 2 * N_MFCC]] = _LEVEL_MOVES
    kinds[-1] = _MEAN
    rows, columns = np.triu_indices(len(kinds))
    group_of = {frozenset(pair): g for g, pairs in enumerate(GROUPS.values()) for pair in pairs}
    pairs = zip(kinds[rows].tolist(), kinds[columns].tolist(), strict=True)
    group = np.full(n_features, len(GROUPS) - 1)  # fluctuation comes after the pairs
    group[: len(rows)] = [group_of[frozenset(pair)] for pair in pairs]
    return group
