"""Tests of the simulation of two ears: listeners answer by their metric, and dividing triples are found."""

import numpy as np
import pytest

from experiments.two_ears import CERTAINTY, disagreement, draw_listeners, mean_closeness, summarize, try_pair
from musicsim.extensions.two_ears.disagreement import draw_triples

PARTS = [np.arange(8) < 4, np.arange(8) >= 4]


def test_listeners_answer_by_their_own_metric():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 8))
    one, other = draw_listeners("parts", X, PARTS, rng)
    triples = draw_triples(100, 20_000, rng)
    p = one.predict(triples)
    assert np.maximum(p, 1 - p).mean() == pytest.approx(CERTAINTY, abs=0.01)
    q, a, b = X[:, :4][triples.T]
    assert ((p > 0.5) == (((q - a) ** 2).sum(axis=1) < ((q - b) ** 2).sum(axis=1))).all()
    assert disagreement([one, other], triples) == pytest.approx(0.5, abs=0.02), "the parts are independent"
    same = draw_listeners("same", X, PARTS, rng)
    p = same[0].predict(triples)
    assert disagreement(same, triples) == pytest.approx(2 * np.mean(p * (1 - p)))


def test_different_parts_are_found():
    X = np.random.default_rng(1).standard_normal((60, 8))
    trials = [try_pair("parts", 150, X, PARTS, 0, number) for number in range(2)]
    row, claims = summarize("parts", 150, trials, 0)
    assert row["shown"] == 2
    assert row["precision"] > row["random"] + 0.2
    assert len(claims) == 4


def test_closeness_of_a_playlist_is_the_mean_over_steps():
    X = np.array([[0.0], [1.0], [3.0], [7.0]])
    assert mean_closeness(X, [0, 1, 3]) == pytest.approx((2 / 2 + 0 / 2) / 2)
