"""Labeled songs that vote on a song's label: the nearest by vectors, or by bit codes learned from the labels."""

from collections.abc import Iterator

import numpy as np

from musicsim import hashing, search
from musicsim._arrays import Int64Array
from musicsim.errors import ModelError
from musicsim.explorer import Snapshot

BITS, _STEPS, _NOISE = 128, 500, 0.6
_SEED = 0
_MAX_LEARNED = 5_000
_READ_BLOCK = 10_000  # number of rows whose vectors are read together
QUERY_BLOCK = 256  # number of queries per search, which is at least three times as fast as separate searches


class VectorVoters:
    """The labeled songs that are nearest according to the active model."""

    def __init__(self, snapshot: Snapshot, rows: Int64Array) -> None:
        self._snapshot = snapshot
        self._is_labeled = np.zeros(snapshot.n_indexed, bool)
        self._is_labeled[rows] = True

    def nearest(self, rows: Int64Array, k: int) -> Iterator[Int64Array]:
        """Yield at most k labeled rows for each row, nearest first, excluding the row itself."""
        for block in _blocks(rows, QUERY_BLOCK):
            vectors = self._snapshot.vectors_at(block)
            _, neighbors = self._snapshot.index.query(vectors, k + 1, allowed=self._is_labeled)
            for row, near in zip(block, neighbors, strict=True):
                yield near[near != row][:k]


class CodeVoters:
    """The labeled songs whose learned bit codes are nearest, ordered by Hamming distance, then by vector distance.

    The loss is hierarchical (WWW 2012, equation 10): songs that share more levels, starting with the broadest, should
    be nearer. `labels` has shape (n_labeled, n_levels), with -1 for unknown labels. Codes are learned from at most
    5,000 songs in about 3 s. Raises ModelError if all labels in the sample are equal, or if all are different.
    """

    def __init__(self, snapshot: Snapshot, rows: Int64Array, labels: Int64Array) -> None:
        self._snapshot, self._rows = snapshot, rows
        sample = np.sort(np.random.default_rng(_SEED).permutation(len(rows))[:_MAX_LEARNED])
        counts = [np.unique(level[level >= 0], return_counts=True)[1] for level in labels[sample].T]
        if not any(len(n_songs) > 1 and n_songs.max() > 1 for n_songs in counts):
            raise ModelError("Learning codes requires at least two different labels, one of them on several songs.")
        self.hash = hashing.RankHash(
            BITS, "hierarchy", method="ranknet", ranknet_steps=_STEPS, noise=_NOISE, random_state=_SEED
        ).fit(snapshot.vectors_at(rows[sample]), labels[sample])
        codes = [self.hash.transform(snapshot.vectors_at(block)) for block in _blocks(rows, _READ_BLOCK)]
        self._index = search.HammingIndex(n_jobs=1).fit(np.concatenate(codes))

    def nearest(self, rows: Int64Array, k: int) -> Iterator[Int64Array]:
        for block in _blocks(rows, QUERY_BLOCK):
            vectors = self._snapshot.vectors_at(block)
            codes = self.hash.transform(vectors)
            radii = self._index.query(codes, k + 1)[0][:, -1]
            for i, row in enumerate(block):
                # one query at a time, because many songs may tie with the last one
                bits, places = self._index.radius(codes[i : i + 1], radii[i])
                near = self._rows[places[0]]
                distances = np.linalg.norm(self._snapshot.vectors_at(near) - vectors[i], axis=1)
                ordered = near[np.lexsort((distances, bits[0]))]
                yield ordered[ordered != row][:k]


Voters = VectorVoters | CodeVoters


def _blocks(rows: Int64Array, size: int) -> Iterator[Int64Array]:
    return (rows[start : start + size] for start in range(0, len(rows), size))


def elect(ballots: Int64Array) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the most frequent code at each level, among voters who agree at the broader levels, and its votes."""
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
