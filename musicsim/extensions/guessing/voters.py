"""Songs that vote on what a song is labelled with: the nearest by vectors, or by bit codes learned from the labels."""

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from musicsim import hashing, search
from musicsim._arrays import Int64Array
from musicsim.errors import ModelError
from musicsim.explorer.snapshot.snapshot import Snapshot

_BITS, _STEPS, _NOISE = 128, 500, 0.6
_MAX_LEARNED = 5_000
_AT_ONCE = 10_000  # rows whose vectors are read together
_ASKED = 256  # songs that are asked for together: one search for many costs a third of as many, or less


class Voters(Protocol):
    """Labelled songs, asked for those near others."""

    def nearest(self, rows: Int64Array, k: int) -> Iterator[Int64Array]:
        """For each row at most k labelled rows, nearest first, without the row itself."""


class VectorVoters:
    """Near is what the model in use finds near."""

    def __init__(self, snapshot: Snapshot, rows: Int64Array) -> None:
        self._snapshot = snapshot
        self._labelled = np.zeros(snapshot.n_indexed, bool)
        self._labelled[rows] = True

    def nearest(self, rows: Int64Array, k: int) -> Iterator[Int64Array]:
        for part in _parts(rows, _ASKED):
            _, near = self._snapshot.index.query(self._snapshot.vectors_at(part), k + 1, allowed=self._labelled)
            for row, found in zip(part, near, strict=True):
                yield found[found != row][:k]


class CodeVoters:
    """Near are codes that share bits; the bits are learned so that songs with the same labels share most.

    The score of a hierarchy (WWW 2012, equation 10): of two songs the one is to be nearer that shares more levels,
    counted from the widest class. Songs equally many bits away are in the order of their vectors.

    Parameters
    ----------
    rows : int64 ndarray of shape (n_labelled,)
    labels : int64 ndarray of shape (n_labelled, n_levels)
        -1 is unknown.

    Raises
    ------
    ModelError
        If the labels of the songs learned on do not differ, or none is there twice.

    Notes
    -----
    Learned on at most 5,000 songs in about 3 s; 16 bytes a song. Asked for k songs, the vectors of all that are as near
    as the k-th are read.
    """

    def __init__(self, snapshot: Snapshot, rows: Int64Array, labels: Int64Array, random_state: int = 0) -> None:
        self._snapshot, self._rows = snapshot, rows
        sample = np.sort(np.random.default_rng(random_state).permutation(len(rows))[:_MAX_LEARNED])
        if not any(_is_learnable(level) for level in labels[sample].T):
            raise ModelError("Learning codes needs at least two labels, one of them on several songs.")
        self._hash = hashing.RankHash(
            _BITS, "hierarchy", method="ranknet", ranknet_steps=_STEPS, noise=_NOISE, random_state=random_state
        ).fit(snapshot.vectors_at(rows[sample]), labels[sample])
        codes = [self._hash.transform(snapshot.vectors_at(part)) for part in _parts(rows, _AT_ONCE)]
        self._index = search.HammingIndex(n_jobs=1).fit(np.concatenate(codes))

    def nearest(self, rows: Int64Array, k: int) -> Iterator[Int64Array]:
        for part in _parts(rows, _ASKED):
            vectors = self._snapshot.vectors_at(part)
            codes = self._hash.transform(vectors)
            reach = self._index.query(codes, k + 1)[0][:, -1]
            for i, row in enumerate(part):
                # all that are as near as the last, one song at a time: where codes are few they are many
                bits, found = self._index.radius(codes[i : i + 1], reach[i])
                near = self._rows[found[0]]
                distances = np.linalg.norm(self._snapshot.vectors_at(near) - vectors[i], axis=1)
                ordered = near[np.lexsort((distances, bits[0]))]
                yield ordered[ordered != row][:k]


def _parts(rows: Int64Array, size: int) -> Iterator[Int64Array]:
    return (rows[start : start + size] for start in range(0, len(rows), size))


def elected(ballots: Int64Array) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The code that most have, by level, among those that agree so far, and how many have it.

    Of `ballots`, (n_voters, n_levels), -1 is unknown. Where several have equally many votes, the first of them
    counts; narrower levels than the last that is known are left out.
    """
    codes, votes = [], []
    for level in range(ballots.shape[1]):
        cast = ballots[:, level][ballots[:, level] >= 0]
        if not len(cast):
            break
        candidates, first, counts = np.unique(cast, return_index=True, return_counts=True)
        best = np.lexsort((first, -counts))[0]
        codes.append(int(candidates[best]))
        votes.append(int(counts[best]))
        ballots = ballots[ballots[:, level] == codes[-1]]
    return tuple(codes), tuple(votes)


def _is_learnable(codes: Int64Array) -> bool:
    names, counts = np.unique(codes[codes >= 0], return_counts=True)
    return len(names) > 1 and bool((counts > 1).any())
