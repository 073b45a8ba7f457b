"""Shares of named groups of features in the similarity of two songs.

For models like Sound, the groups are aspects of the sound. The logarithm of a Gaussian has a number for each column of
the frames and for each pair of columns. Each group contains some of these pairs; fluctuation and spectral shape are
separate groups. Whitening mixes the columns only slightly, so each whitened column is in the group of the original
column. Other models have a single group.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self, TypeAlias

import numpy as np

from musicsim._arrays import Float32Array, Float64Array, Int64Array
from musicsim.audio.features import N_MFCC
from musicsim.explorer.models.encoders import FLUCTUATION, SHAPE, TIMBRE

_COVERED = 0.8  # minimum share of the similarity that is shown as groups; the remainder is one bar
REST = "everything else"
_N_COARSE = 5  # number of MFCCs for the coarse tone color: one for the level, four for the spectrum's shape

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
    "where changes occur in a sound": [
        (part, moves) for part in (_LEVEL, _TONE, _DETAIL) for moves in (_LEVEL_MOVES, _TONE_MOVES, _TONE_TURNS)
    ]
    + [(moves, _MEAN) for moves in (_LEVEL_MOVES, _TONE_MOVES, _TONE_TURNS)],
    "rhythm and fluctuation": [],
    "spectral shape": [],
}
"""Pairs of column types, keyed by group; each pair is in one group. The last two groups have no pairs."""


@dataclass(frozen=True, slots=True)
class Compared:
    """Features of two songs under a model, in named groups."""

    names: tuple[str, ...]  # names of the groups
    group: Int64Array  # (n_features,): index of each feature's group in `names`
    pair: Float32Array  # (2, n_features)
    sample: Float32Array  # (n, n_features): other songs in the library
    # L (r, n_features) of the metric M = L^T L before learning and, if the model was learned, after learning
    components: tuple[Float64Array, ...]

    @classmethod
    def concatenate(cls, parts: Sequence["Compared"]) -> Self:
        """Concatenate features; groups of the same name become one."""
        names = tuple(dict.fromkeys(name for part in parts for name in part.names))
        return cls(
            names=names,
            group=np.concatenate([np.array([names.index(name) for name in part.names])[part.group] for part in parts]),
            pair=np.hstack([part.pair for part in parts]),
            sample=np.hstack([part.sample for part in parts]),
            components=tuple(np.hstack(stage) for stage in zip(*(part.components for part in parts), strict=True)),
        )

    def shares(self) -> list[Shares]:
        """Return each group's share of the squared distance and of the similarity, before and after learning.

        The shares sum to d^2 = (a - b)^T M (a - b) and to 1 - d^2 / 2, which the pages show as similarity.

        With delta = a - b, feature w has the share delta_w (M delta)_w of the squared distance. A group's share of the
        similarity is its mean share of squared distances in the sample, minus half its share of this one. A group in
        which two songs are equal contributes all of its mean share; a group with a typical distance contributes half.
        """
        a, b = self.pair.astype(np.float64)
        delta, X = a - b, self.sample - self.sample.mean(axis=0, dtype=np.float64)
        shares = []
        for L in self.components:
            distance, typical = (
                np.bincount(self.group, values, len(self.names)).astype(np.float64)
                for values in (delta * (L.T @ (L @ delta)), ((X @ L.T) @ L * X).mean(axis=0))
            )
            # a sample with only one song or only duplicates has zero variance
            typical = typical / typical.sum() if typical.sum() > 0 else np.full(len(typical), 1.0 / len(typical))
            shares.append((distance, typical - distance / 2))
        return shares


class Amounts(NamedTuple):
    """The distance and similarity of two songs, or a part's shares of their squared distance and similarity."""

    distance: float
    similarity: float


@dataclass(frozen=True, slots=True)
class Share:
    """Contribution of a part, before and (if the model was learned) after learning; the last stage is in use."""

    words: str
    stages: tuple[Amounts, ...]


def sum_stages(shares: Sequence[Shares], features: Sequence[int]) -> tuple[Amounts, ...]:
    """Return the total shares of some features, before and after learning."""
    return tuple(Amounts(*(float(part[features].sum()) for part in stage)) for stage in shares)


def largest_shares(names: Sequence[str], shares: Sequence[Shares]) -> tuple[Share, ...]:
    """Return the groups with the largest shares of the similarity under the model in use, and the rest as one group."""
    _, similarity = shares[-1]
    order = np.argsort(-similarity, kind="stable")
    enough = np.flatnonzero(np.cumsum(similarity[order]) >= _COVERED * similarity.sum())
    n = int(enough[0]) + 1 if len(enough) else len(order)
    chosen = [(names[g], [g]) for g in order[:n].tolist()] + [(REST, order[n:].tolist())]
    return tuple(Share(words, sum_stages(shares, groups)) for words, groups in chosen if groups)


def sound_groups(n_features: int) -> Int64Array:
    """Return the index in :data:`GROUPS` of each feature of a Sound model, (n_features,)."""
    # the columns of a Gaussian's matrix are the MFCCs, their deltas, their second deltas and the mean
    kinds = np.empty(3 * N_MFCC + 1, dtype=np.int64)
    kinds[0], kinds[1:_N_COARSE], kinds[_N_COARSE:N_MFCC] = _LEVEL, _TONE, _DETAIL
    kinds[N_MFCC : 2 * N_MFCC], kinds[2 * N_MFCC : -1] = _TONE_MOVES, _TONE_TURNS
    kinds[[N_MFCC, 2 * N_MFCC]] = _LEVEL_MOVES
    kinds[-1] = _MEAN
    rows, columns = np.triu_indices(len(kinds))
    group_of = {frozenset(pair): g for g, pairs in enumerate(GROUPS.values()) for pair in pairs}
    pairs = zip(kinds[rows].tolist(), kinds[columns].tolist(), strict=True)
    group = np.empty(n_features, dtype=np.int64)
    group[TIMBRE] = [group_of[frozenset(pair)] for pair in pairs]
    group[FLUCTUATION], group[SHAPE] = len(GROUPS) - 2, len(GROUPS) - 1
    return group
