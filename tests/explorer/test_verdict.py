"""Tests of the verdict: resampled scores by brute force, and trainings on noise and on a planted taste."""

from unittest.mock import Mock

import numpy as np
import pytest
from scipy.stats import t as student

from experiments import verdict as simulation
from musicsim.evaluation import distance_scores
from musicsim.explorer.learning import judging
from musicsim.explorer.learning._kernels import score_weighted
from musicsim.explorer.learning.judging import N_SHUFFLES
from musicsim.explorer.learning.search_ranking import score_search
from musicsim.explorer.learning.two_way import RESAMPLED, ResampledScores, Space, TwoWay
from musicsim.explorer.learning.verdict import BETTER, NO_DIFFERENCE, Lead, _Gain, is_better, leads_above, render_lead
from musicsim.explorer.refresh.model_text import describe_split, figures, headline
from musicsim.relevance import Relevance
from tests.learning import RANKED

GAIN = Lead(0.5, 0.58, 0.08, 0.05, 0.11)


@pytest.mark.parametrize("seed", range(8))
def test_weighted_scores_equal_scores_of_copied_songs(seed):
    """Brute force: repeat each song as often as its artist was drawn; ties are frequent."""
    rng = np.random.default_rng(seed)
    n, n_groups = 30, 9
    d, groups, relevant = rng.integers(12, size=n) / 4, rng.integers(n_groups, size=n), rng.random(n) < 0.4
    weights = rng.integers(0, 3, (n_groups, 5))
    order = np.concatenate([np.flatnonzero(~relevant), np.flatnonzero(relevant)])
    order = order[np.argsort(d[order], kind="stable")]
    scores = np.empty((4, 5))
    score_weighted(d[order], relevant[order], groups[order], 2, weights, 10, scores)
    for b in range(5):
        copies = np.repeat(np.arange(n), np.where(groups == 2, 1, weights[groups, b]))
        lists = Relevance.from_lists([np.flatnonzero(relevant[copies])], len(copies), outside=True)
        wanted = distance_scores(d[copies][None], lists)
        np.testing.assert_allclose(scores[:, b], [wanted[name][0] for name in RESAMPLED], rtol=1e-12)


def _two_way(seed, n_artists=20, scale=1.0):
    rng = np.random.default_rng(seed)
    groups = [f"artist {a:02}" for a in np.sort(rng.integers(n_artists, size=80))]
    X = rng.standard_normal((80, 4)) * scale
    return X, groups, Relevance.from_labels(rng.integers(4, size=80), groups=groups)


def test_resampled_scores_surround_the_score():
    X, groups, relevance = _two_way(0)
    queries, database = np.arange(0, 80, 2), np.arange(80)
    scores = TwoWay(queries, database, groups, reduce_hubs=False).score(Space(X), relevance, groups)
    split = relevance.restrict(queries, database)
    once = score_search(X, queries, database, split, reduce_hubs=False)
    for name in RESAMPLED:
        np.testing.assert_array_equal(scores.each[name], once[name])
        # 200 databases: the mean of the resamples is within 3 standard deviations / sqrt(200)
        center, spread = np.mean(scores.both[name]), np.std(scores.both[name])
        if name in ("auc", "map"):  # copies of songs bias the scores of the first ranks
            assert abs(center - np.nanmean(once[name])) < 0.5 * spread
        assert spread > max(np.std(scores.of_database[name]), np.std(scores.of_queries[name]))
    assert scores.n_artists == len({groups[q] for q in queries})


def test_no_lead_for_one_artist():
    X, groups, relevance = _two_way(1)
    queries = np.flatnonzero(np.asarray(groups) == groups[0])
    scores = TwoWay(queries, np.arange(80), groups, reduce_hubs=False).score(Space(X), relevance, groups)
    assert leads_above(scores, scores, []) == {}


def _scores(mean, rng, n=40, spread=0.01):
    """Return scores whose resamples have the same mean and spread."""
    each = dict.fromkeys(RESAMPLED, np.full(n, mean))
    parts = [dict.fromkeys(RESAMPLED, mean + s * rng.standard_normal(2_000)) for s in (spread * 1.5, spread, spread)]
    return ResampledScores(each, *parts, n_artists=30)


@pytest.mark.parametrize("n_measures", [1, 4])
def test_interval_of_normal_resamples_is_a_t_interval_for_all_measures_together(n_measures):
    n, spread = 12, 0.01
    resamples = spread * np.random.default_rng(0).standard_normal((3, 200_000)) * np.sqrt([[2], [1], [1]])
    low, high = _Gain(0.0, *resamples).interval(n, n_measures)
    wanted = spread * np.sqrt(2 * n / (n - 1)) * student.ppf(1 - 0.025 / n_measures, n - 1)
    np.testing.assert_allclose([low, high], [-wanted, wanted], rtol=0.02)  # 200,000 draws


@pytest.mark.parametrize(("chance", "words"), [(0.0, BETTER), (0.079, NO_DIFFERENCE), (0.2, NO_DIFFERENCE)])
def test_gain_must_exceed_that_of_shuffled_evidence(chance, words):
    rng = np.random.default_rng(0)
    before, after = _scores(0.5, rng, spread=1e-6), _scores(0.58, rng)
    shuffled = [(before, _scores(0.5 + chance, rng, spread=1e-6)) for _ in range(3)]
    leads = leads_above(before, after, shuffled)
    assert leads["auc"].mean == pytest.approx(0.08)
    assert leads["auc"].shuffled == pytest.approx(chance)
    assert leads["auc"].low > 0.03
    assert {lead.words for lead in leads.values()} == {words}
    assert is_better(leads) == (words == BETTER)
    plain = leads_above(before, after, [])
    assert render_lead(plain["auc"]).keys() == {"before", "after", "mean", "low", "high"}


# --- simulated trainings ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", [simulation.UNIFORM, simulation.POPULAR])
def test_random_plays_are_not_better(what):
    """Without shuffled plays, two fifths of these verdicts would be "Better" if some artists are popular."""
    found = [simulation.judge_once(what, "mean", 0.0, seed) for seed in range(12)]
    # at most 5% each: two or more of 12 have a probability of 12%, three of 2%
    assert sum(verdict.is_better for verdict in found) <= 2
    if what == simulation.POPULAR:
        assert sum(verdict.was_better for verdict in found) > 2


def test_planted_taste_is_better():
    """A verdict that is never "Better" would be useless: with a strong taste, three quarters are."""
    found = [simulation.judge_once(simulation.PLANTED, "mean", 2.0, seed) for seed in range(8)]
    assert sum(verdict.is_better for verdict in found) >= 4


def test_shuffled_trainings_use_the_same_split_and_settings(monkeypatch):
    """Held-out songs stay held out: each training gets the training rows, and relevance that differs."""
    from musicsim import metric

    seen = []
    fit = metric.GMML.fit
    monkeypatch.setattr(metric.GMML, "fit", lambda self, X, y: seen.append((self.t, self.reg, X, y)) or fit(self, X, y))
    simulation.judge_once(simulation.PLANTED, "quick", 2.0, 0)
    *_, n_known, _ = sorted({len(X) for _, _, X, _ in seen})  # the folds are smaller, and the last fit larger
    same = [row for row in seen if len(row[2]) == n_known]
    assert len(same) == 1 + N_SHUFFLES
    assert {row[:2] for row in same} == {seen[-1][:2]}
    for _, _, X, y in same[1:]:
        np.testing.assert_array_equal(X, same[0][2])
        assert any(y.relevant(i).tolist() != same[0][3].relevant(i).tolist() for i in range(len(y)))


def test_stopped_comparison_is_not_better(monkeypatch):
    """Without a shuffled copy, nothing shows that the gain is more than chance."""
    steps = judging.Steps(Mock(is_enough=lambda: True), "plays", 0, 5)
    assert not steps.begin()
    report = RANKED | {"leads": {"auc": render_lead(GAIN)}, "n_shuffled": 0, "is_better": False}
    words, sentence = headline(report)
    assert words == NO_DIFFERENCE
    assert "stopped before it was repeated on shuffled genres" in sentence


# --- its words -------------------------------------------------------------------------------------------------------


def test_nothing_learned_names_both_numbers():
    lead = render_lead(Lead(0.5, 0.58, 0.08, 0.05, 0.11, 0.07, -0.02, 0.04))
    report = RANKED | {"leads": {"auc": lead}, "n_shuffled": 5, "is_better": False, "popularity": {"auc": 0.61}}
    words, sentence = headline(report)
    assert words == NO_DIFFERENCE
    assert "training on shuffled genres gains as much, so nothing was learned" in sentence
    assert "difference +0.080, 95% interval +0.050 to +0.110; shuffled genres give +0.070" in sentence
    rows = figures(report)
    assert rows[0]["shuffled genres"] == "+0.070"
    assert rows[0][""] == NO_DIFFERENCE
    assert rows[1]["measure"] == "AUC, popularity alone"
    assert rows[1]["before"] == "0.610"
    assert {tuple(row) for row in rows} == {tuple(rows[0])}, "all rows have the same columns"
    assert "A gain counts only above that of the same training on shuffled genres (mean of 5)" in describe_split(report)


def test_old_report_is_shown_as_before():
    """Reports of earlier versions do not have shuffled evidence."""
    words, sentence = headline(RANKED)
    assert words == BETTER
    assert "shuffled" not in sentence + describe_split(RANKED) + str(figures(RANKED))
