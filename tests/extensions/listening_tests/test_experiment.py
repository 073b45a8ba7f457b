"""Tests of the experiment on listening tests: simulated listeners, and a run."""

import numpy as np
import pytest

from benchmarks.support.report import Settings
from experiments import listening_test
from musicsim.extensions.listening_tests.results import results


def test_simulated_listeners_detect_difference_in_sixty_pairs():
    rng = np.random.default_rng(0)
    test = listening_test.made_test(rng)
    assert sum(not pair.is_check for pair in test.pairs) == 60
    assert sum(pair.is_check for pair in test.pairs) == 4
    listeners, grades = listening_test.graded(test, 30.0, rng)
    blocks = listening_test.blocks_of_listeners(test, grades)
    assert blocks.shape == (300, 2)
    found = results(test, listeners, grades)
    assert all(one.counts for one in found.progress)
    assert listening_test.verdict(found) == "B"
    assert (blocks[:, 1] - blocks[:, 0]).mean() == pytest.approx(found.pairs[0].difference)


@pytest.mark.long
def test_run_measures_every_difference(monkeypatch):
    monkeypatch.setattr(listening_test, "DRAWS", 4)
    monkeypatch.setattr(listening_test, "DIFFERENCES", (0.0, 40.0))
    settings = Settings()
    rows, claims = listening_test.run(settings, lambda line: None)
    assert [row["the better one"] for row in rows][1] == 1
    assert len(claims) == 4
    assert settings.facts["pairs"] == 60
