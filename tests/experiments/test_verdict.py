"""The experiment on verdicts: what is simulated, and how verdicts are counted."""

import numpy as np
import pytest

from benchmarks.support.report import Settings
from experiments import verdict
from experiments.verdict import METHODS, ONLY_ANSWERS, PLANTED, POPULAR, UNIFORM, Songs, Verdict
from musicsim.explorer.learning.supervision import Supervision


def test_planted_listeners_share_a_taste():
    """The stronger the taste, the more alike are the artists of one listener."""
    rng = np.random.default_rng(0)
    songs = Songs.draw(200, 100, rng)
    spreads = []
    for strength in (0.0, 1.0, 2.0):
        heard = verdict.draw_plays(songs, 300, True, strength, rng)
        assert all(len(set(row)) == verdict.N_HEARD for row in heard.tolist())
        spreads.append(songs.taste[heard].std(axis=1).mean())
    assert spreads == sorted(spreads, reverse=True)


@pytest.mark.parametrize("what", verdict.RANDOM)
def test_simulated_evidence_can_be_learned_from(what):
    rng = np.random.default_rng(1)
    snapshot = verdict.make_snapshot(Songs.draw(132, 42, rng), what, 0.0, rng)
    supervision = Supervision(snapshot, verdict.RANDOM[what])
    assert np.count_nonzero(supervision.relevance().n_relevant()) > 100
    if what in (UNIFORM, POPULAR):
        spread = np.ptp(supervision.popularity)
        assert (spread > 100) == (what == POPULAR)  # of 200 listeners


def test_false_verdicts_are_counted_without_planted_tastes(monkeypatch):
    def judge_once(what, method, strength, seed):
        return Verdict(what == PLANTED or (method == "quick" and seed < 4), None if method == "automatic" else True)

    monkeypatch.setattr(verdict, "judge_once", judge_once)
    rows, claims = verdict.run(Settings(), lambda line: None)
    assert [claim.claim for claim in claims if not claim.holds] == ["quick: share of false “Better”"]
    assert len(claims) == len(METHODS) + 1
    planted = [row for row in rows if row["evidence"] == PLANTED]
    assert all(row["better"] == row["runs"] for row in planted)
    assert {row["before"] for row in rows if row["method"] == "automatic"} == {None}
    assert [row["evidence"] for row in rows if row["method"] == ONLY_ANSWERS] == ["answers"]
