"""Songs that vote on what a song is labelled with: the nearest by vectors, or by bit codes learned from the labels."""

from typing import Protocol

import numpy as np
import numpy.typing as npt

from musicsim.errors import ModelError
from musicsim.explorer.snapshot import Snapshot
from musicsim.hashing import RankHash
from musicsim.search import HammingIndex

__all__ = ["CodeVoters", "VectorVoters", "Voters"]

Rows = npt.NDArray[np.int64]

_BITS, _STEPS, _NOISE = 128, 500, 0.6
_MOST_LEARNED = 5_000
_AT_ONCE = 10_000  # rows whose vectors are read together


class Voters(Protocol):
    """Labelled songs, asked for those near a song."""

    def nearest(self, row: int, k: int) -> Rows:
        """At most k labelled rows, nearest first, without the row itself."""


class VectorVoters:
    """Near is what the model in use finds near."""

    def __init__(self, snapshot: Snapshot, rows: Rows) -> None:
        self._snapshot = snapshot
        self._labelled = np.zeros(snapshot.n_indexed, bool)
        self._labelled[rows] = True

    def nearest(self, row: int, k: int) -> Rows:
        vectors = self._snapshot.vectors_at([row])
        _, near = self._snapshot.index.query(vectors, k + 1, allowed=self._labelled)
        return np.asarray(near[0][near[0] != row][:k])


class CodeVoters:
    """Near are codes that share bits; the bits are learned so that songs with the same labels share most.

    The score of a hierarchy (WWW 2012, equation 10): of two songs the one is to be nearer that shares more levels,
    counted from the widest class. Songs equally many bits away are in the order of their vectors.

    Parameters
    ----------
    snapshot : Snapshot
    rows : int64 ndarray of shape (n_labelled,)
    labels : int64 ndarray of shape (n_labelled, n_levels)
        -1 is unknown.
    random_state : int

    Raises
    ------
    ModelError
        If the labels do not differ, or none is there twice.

    Notes
    -----
    Learned on at most 5,000 songs in about 3 s; 16 bytes a song.
    """

    def __init__(self, snapshot: Snapshot, rows: Rows, labels: Rows, random_state: int = 0) -> None:
        self._snapshot, self._rows = snapshot, rows
        if not any(_is_learnable(level) for level in labels.T):
            raise ModelError(
                "Two labels at least are needed to learn codes from, one of them of several songs."
            )
        sample = np.sort(np.random.default_rng(random_state).permutation(len(rows))[:_MOST_LEARNED])
        self._hash = RankHash(
            _BITS, "hierarchy", method="ranknet", ranknet_steps=_STEPS, noise=_NOISE, random_state=random_state
        ).fit(snapshot.vectors_at(rows[sample]), labels[sample])  # fmt: skip
        parts = [rows[start : start + _AT_ONCE] for start in range(0, len(rows), _AT_ONCE)]
        codes = [self._hash.transform(snapshot.vectors_at(part)) for part in parts]
        self._index = HammingIndex(n_jobs=1).fit(np.concatenate(codes))

    def nearest(self, row: int, k: int) -> Rows:
        vector = self._snapshot.vectors_at([row])
        bits, found = self._index.query(self._hash.transform(vector), k + 1)
        near = self._rows[found[0]]
        distances = np.linalg.norm(self._snapshot.vectors_at(near) - vector[0], axis=1)
        ordered = near[np.lexsort((distances, bits[0]))]
        return np.asarray(ordered[ordered != row][:k])


def _is_learnable(codes: Rows) -> bool:
    names, counts = np.unique(codes[codes >= 0], return_counts=True)
    return len(names) > 1 and bool((counts > 1).any())
