"""Tests of the experiment on bands: simulated listeners, disjoint sets of answers, and their agreement."""

import numpy as np
import pytest

from experiments import taste_bands
from experiments.taste_bands import Answered, Listener, agrees, contain, split
from musicsim.extensions.taste_card.shares import Band


def test_simulated_listener_answers_with_its_probabilities():
    """With 20,000 answers, four standard errors of a share are 0.014."""
    rng = np.random.default_rng(0)
    listener = Listener.draw(2, rng)
    options = np.repeat(listener.ask(1, rng), 20_000, axis=0)
    utilities = -listener.total * options[0] @ listener.shares
    p = np.exp(utilities) / np.exp(utilities).sum()
    for chosen in range(3):
        difference = np.delete(options[0], chosen, axis=0) - options[0, chosen]
        share = np.mean([np.array_equal(given, difference) for given in listener.answer(options, rng)])
        assert share == pytest.approx(p[chosen], abs=0.014)
    assert listener.accuracy_of(listener.shares, options) == pytest.approx(p.max())


def test_mean_distance_in_each_part_is_one():
    rng = np.random.default_rng(1)
    costs = Listener.draw(1, rng).ask(20_000, rng)  # two pairs per question; the standard error is below 0.01
    np.testing.assert_allclose(costs.mean(axis=(0, 1)), 1, atol=0.03)


def test_agreement_combines_both_bands():
    """With normal bands of half width 3 and 4, a difference of up to 5 is in the interval."""
    one = Band(0.30, 0.27, 0.33)
    assert agrees(one, Band(0.349, 0.309, 0.389))
    assert agrees(Band(0.349, 0.309, 0.389), one)
    assert not agrees(one, Band(0.351, 0.311, 0.391))
    assert agrees(one, Band(0.351, 0.30, 0.36)), "only the ends between both shares count"


def test_bands_contain_their_ends():
    bands = [Band(0.2, 0.1, 0.3), Band(0.5, 0.4, 0.6)]
    assert contain(bands, np.array([0.1, 0.6])) == [True, True]
    assert contain(bands, np.array([0.0, 0.61])) == [False, False]


def test_sets_of_answers_are_disjoint_and_keep_groups_together(monkeypatch):
    seen = []

    class Recorded:
        def __init__(self, differences):
            seen.append({int(one[0, 0]) for one in differences})
            self.bands = [Band(0.5, 0.4, 0.6)]

    monkeypatch.setattr(taste_bands, "Choices", lambda differences: differences)
    monkeypatch.setattr(taste_bands, "Fit", Recorded)
    groups = np.arange(60) // 3
    answered = Answered("made up", [np.full((1, 1), float(row)) for row in range(60)], groups)
    assert split(answered, 20, 0, 0) == [True]
    first, second = seen
    assert len(first) == len(second) == 21, "whole groups of three"
    assert not first & second
    assert all(len(part) == 3 * len({groups[row] for row in part}) for part in seen)
