"""Tests of the simulation of blind radio: true differences, rare false verdicts, and the usual interval."""

import numpy as np
import pytest

from experiments import blind_radio
from experiments.blind_radio import LISTENERS, measure, simulate, usual_interval_excludes_zero
from musicsim.explorer.trials.sequence import find_verdict


@pytest.mark.parametrize("listener", LISTENERS)
def test_mean_estimate_is_the_true_difference(listener):
    d, true = simulate(listener, 200, 4_000, np.random.default_rng(1))
    error = d.std() / np.sqrt(d.size)
    assert abs(d.mean() - true) < 4 * error  # beyond that, the probability is 0.01%
    if listener == "15 points":
        assert true == pytest.approx(0.15 * (1 - np.arange(5, 30).mean() / 60))


def test_usual_interval_follows_its_definition():
    d = np.random.default_rng(2).normal(0.1, 1.0, (5, 200))
    expected = []
    for run in d:
        means = [(run[:n].mean(), run[:n].std() / np.sqrt(n)) for n in range(40, 201)]
        expected.append(any(abs(mean) > 1.96 * error for mean, error in means))
    assert usual_interval_excludes_zero(d).tolist() == expected


def test_row_tells_songs_and_false_verdicts(monkeypatch):
    monkeypatch.setattr(blind_radio, "N_SONGS", 800)
    row = measure("15 points", 100, np.random.default_rng(3))
    d = np.concatenate([simulate("15 points", 50, 800, rng)[0] for rng in [np.random.default_rng(3)] for _ in range(2)])
    lengths = sorted(n if sign == 1 else np.inf for sign, n in map(find_verdict, d))
    assert (row["songs, median"], row["songs, 80%"]) == (lengths[49], lengths[79])
    assert row["false"] <= 0.02
    none = measure("equal", 100, np.random.default_rng(4))
    assert none["songs, median"] is None
    assert none["false"] == none["verdicts"] <= 0.12  # at a share of 5%, more have a probability of 0.2%
    assert none["usual interval"] > 0.2
