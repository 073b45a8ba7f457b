"""Triples of songs that probably divide two people, predicted from a model of each person.

A triple (q, a, b) asks whether a or b is more like q. In a person's model, with squared distances d, its margin is
m = d(q, b) - d(q, a). The person chooses a with probability p = 1 / (1 + exp(-s m)). The slope s makes the mean
of max(p, 1 - p) over random triples equal to the accuracy on held-out answers; up to an accuracy of 1/2, it is 0. The
interval of p has the slopes for both ends of the accuracy's 95% interval.

Given the models, the answers of two people are independent. They disagree with probability
p1 (1 - p2) + (1 - p1) p2 = (1 - (2 p1 - 1) (2 p2 - 1)) / 2. A triple is predicted to divide them if the lower end of
this probability, within both intervals, is at least 0.55. Then, both intervals are on opposite sides of 1/2.

Errors of the models also make triples look dividing, even for two people with the same taste. So the tastes must differ
first: one person's own model predicts that person's answers better than the other model does (:func:`is_difference`).
"""

from collections import Counter
from collections.abc import Sequence
from typing import Self

import numpy as np

from musicsim._arrays import Float64Array, FloatingArray, Int64Array
from musicsim.explorer import Rate

N_TRIPLES = 20_000
MIN_DISAGREEMENT = 0.55  # lower end of the probability of a triple that is predicted to divide two people
_BLOCK = 2_000  # triples whose vectors are in memory at the same time
_MAX_ACCURACY = 0.999
_HALVINGS = 60
_MAX_USES = 2  # maximum number of found triples with the same song


def is_difference(own: Rate, other: Rate) -> bool:
    """Return True if a person's own model predicts more answers than the other model does, beyond a 95% interval.

    The interval of the difference combines those of both accuracies, as if they were independent (MOVER).
    """
    assert own.share is not None
    assert other.share is not None
    return bool(own.share - other.share > np.hypot(own.share - own.low, other.high - other.share))


def draw_triples(n_songs: int, n: int, rng: np.random.Generator) -> Int64Array:
    """Return at most n random triples of different songs, (n, 3)."""
    triples = rng.integers(n_songs, size=(n, 3))
    ordered = np.sort(triples, axis=1)
    return triples[(ordered[:, 1:] > ordered[:, :-1]).all(axis=1)]


def measure_margins(X: FloatingArray, triples: Int64Array) -> Float64Array:
    """Return d(q, b) - d(q, a) for each triple (q, a, b) of rows of X, (n,)."""
    margins = np.empty(len(triples))
    for start in range(0, len(triples), _BLOCK):
        q, a, b = X[triples[start : start + _BLOCK].T].astype(np.float64)
        margins[start : start + _BLOCK] = ((q - b) ** 2).sum(axis=1) - ((q - a) ** 2).sum(axis=1)
    return margins


def fit_slope(margins: Float64Array, accuracy: float) -> float:
    """Return the slope at which the mean of max(p, 1 - p) is the accuracy; 0 for an accuracy up to 1/2."""
    sizes = np.abs(margins[margins != 0])
    if accuracy <= 0.5 or not len(sizes):
        return 0.0
    sizes /= (scale := float(np.median(sizes)))
    low, high = -12.0, 12.0  # logarithms to base 10
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        is_less = choice_probabilities(sizes, 10**middle).mean() < min(accuracy, _MAX_ACCURACY)
        low, high = (middle, high) if is_less else (low, middle)
    return float(10**high / scale)


def choice_probabilities(margins: Float64Array, slope: float) -> Float64Array:
    """Return the probability of choosing a over b for each margin."""
    from scipy.special import expit

    chances: Float64Array = expit(slope * margins)
    return chances


class DividingTriples:
    """Find triples that probably divide two people.

    :meth:`fit` draws 20,000 random triples, `triples_` (n, 3), and sets `slopes_` (2, 3): for each person, at the
    held-out accuracy and at both ends of its interval. `dividing_` (n_found, 3) are the triples that are predicted to
    divide the two people, those with the highest lower end first. Memory: 6,000 vectors, and 0.2 kB per triple.
    """

    def __init__(self, n_triples: int = N_TRIPLES, random_state: int | np.random.Generator | None = None) -> None:
        self.n_triples, self.random_state = n_triples, random_state

    def fit(self, spaces: Sequence[FloatingArray], accuracies: Sequence[Rate]) -> Self:
        """Draw triples, fit the slopes, and find the dividing triples.

        `spaces` are the vectors of the same songs in both models, (n_songs, n_dimensions) each. Raises ValueError for
        fewer than 3 songs, or different numbers of songs.
        """
        if len(spaces[0]) != len(spaces[1]) or len(spaces[0]) < 3:
            raise ValueError(f"spaces have {len(spaces[0])} and {len(spaces[1])} songs: give the same 3 or more songs.")
        self._spaces = spaces
        self.triples_ = draw_triples(len(spaces[0]), self.n_triples, np.random.default_rng(self.random_state))
        margins = [measure_margins(X, self.triples_) for X in spaces]
        self.slopes_ = np.array([
            [fit_slope(own, share) for share in (one.share or 0.0, one.low, one.high)]
            for own, one in zip(margins, accuracies, strict=True)
        ])  # fmt: skip
        low = self._predict(margins)[:, 1]
        order = np.argsort(-low, kind="stable")
        self.dividing_ = self.triples_[order[low[order] >= MIN_DISAGREEMENT]]
        return self

    def predict_disagreement(self, triples: Int64Array) -> Float64Array:
        """Return the probability that the two people disagree, and the ends of its interval, (n, 3)."""
        return self._predict([measure_margins(X, triples) for X in self._spaces])

    def _predict(self, margins: Sequence[Float64Array]) -> Float64Array:
        one, other = (
            [2 * choice_probabilities(own, slope) - 1 for slope in slopes]
            for own, slopes in zip(margins, self.slopes_, strict=True)
        )
        corners = [a * b for a in one[1:] for b in other[1:]]  # a bilinear function is extreme at the corners
        return (1 - np.stack([one[0] * other[0], np.max(corners, axis=0), np.min(corners, axis=0)], axis=1)) / 2

    def find(self, n: int | None = None) -> Int64Array:
        """Return all dividing triples, or at most `n` with each song in at most two, (n_found, 3)."""
        if n is None:
            return self.dividing_
        uses: Counter[int] = Counter()
        kept: list[list[int]] = []
        for triple in self.dividing_.tolist():
            if len(kept) < n and all(uses[song] < _MAX_USES for song in triple):
                kept.append(triple)
                uses.update(triple)
        return np.array(kept, dtype=np.int64).reshape(-1, 3)
