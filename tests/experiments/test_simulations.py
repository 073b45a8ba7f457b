"""Simulated listeners and libraries: what is drawn, and how often intervals and verdicts are right."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from experiments import blind_radio, noise, pooling, taste_bands, verdict
from experiments.blind_radio import LISTENERS, usual_interval_excludes_zero
from experiments.pooling import N_LIBRARIES, Songs, covers, cut, dersimonian_laird, score_all
from experiments.support.descriptors import Collection
from experiments.taste_bands import Answered, Listener, agrees, contain, split
from experiments.two_ears import CERTAINTY, disagreement, draw_listeners, mean_closeness, summarize, try_pair
from experiments.verdict import POPULAR, UNIFORM
from musicsim.evaluation import distance_scores
from musicsim.explorer.learning.supervision import Supervision
from musicsim.explorer.learning.verdict import RANKING_MEASURES
from musicsim.explorer.trials.sequence import find_verdict
from musicsim.extensions.taste_card.shares import Band
from musicsim.extensions.two_ears.disagreement import draw_triples
from musicsim.relevance import Relevance

# --- blind radio -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("listener", LISTENERS)
def test_mean_estimate_is_the_true_difference(listener):
    d, true = blind_radio.simulate(listener, 200, 4_000, np.random.default_rng(1))
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
    row = blind_radio.measure("15 points", 100, np.random.default_rng(3))
    d = np.concatenate(
        [blind_radio.simulate("15 points", 50, 800, rng)[0] for rng in [np.random.default_rng(3)] for _ in range(2)]
    )
    lengths = sorted(n if sign == 1 else np.inf for sign, n in map(find_verdict, d))
    assert (row["songs, median"], row["songs, 80%"]) == (lengths[49], lengths[79])
    assert row["false"] <= 0.02
    none = blind_radio.measure("equal", 100, np.random.default_rng(4))
    assert none["songs, median"] is None
    assert none["false"] == none["verdicts"] <= 0.12  # at a share of 5%, more have a probability of 0.2%
    assert none["usual interval"] > 0.2
    assert max(row["interval misses"], none["interval misses"]) <= 0.12


# --- pooling ---------------------------------------------------------------------------------------------


@pytest.fixture
def songs(rng):
    artists = np.repeat(np.arange(400), 3)
    labels = artists % 8
    X = np.eye(8)[labels] + rng.normal(0, 0.5, (1200, 8))
    collection = Collection(X, labels, artists)
    return Songs(collection, (X, X[:, :1]), [f"artist {a}" for a in range(400)], np.arange(400), np.arange(400) % 8)


def test_parted_libraries_contain_each_artist_once(songs, rng):
    libraries = list(cut(songs, "parted", 2 * N_LIBRARIES, rng))
    assert len(libraries) == 2 * N_LIBRARIES
    for part in (libraries[:N_LIBRARIES], libraries[N_LIBRARIES:]):
        assert sorted(np.concatenate(part)) == list(range(400))


def test_specialized_libraries_prefer_one_cluster(songs, rng):
    for artists in cut(songs, "specialized", 20, rng):
        assert len(set(artists)) == 10
        assert np.bincount(songs.clusters[artists]).max() >= 7


def test_scores_match_those_of_the_library(rng):
    X, labels = rng.normal(size=(60, 3)), np.append(rng.integers(0, 6, 59), 99)
    D = cdist(X, X)
    expected = distance_scores(D, Relevance.from_labels(labels), 10)
    found = score_all(D, labels[:, None] == labels)
    is_scored = np.isfinite(expected["auc"])
    assert is_scored.sum() == np.isfinite(found["auc"]).sum() == 59
    for measure in RANKING_MEASURES:
        np.testing.assert_allclose(found[measure][is_scored], expected[measure][is_scored])


def test_better_model_is_ahead(songs, rng):
    (artists,) = cut(songs, "drawn", 1, rng)
    measured = songs.measure(songs.rows_of(artists))
    whole, cells = measured["map"]
    assert whole.mean + whole.half < 0, "one column tells less than eight"
    assert len(cells) == 1, "thirty songs make one cell"


def test_intervals_of_equal_libraries_cover_them():
    found = covers(np.full(6, 0.1), np.full(6, 0.02), 0.1)
    assert (found.mean, found.next, found.tau) == (True, True, 0.0)
    assert not covers(np.full(6, 0.1), np.full(6, 0.02), 0.2).mean
    assert not covers(np.array([0.1] * 5 + [0.5]), np.full(6, 0.02), 0.1).next


def test_moment_estimate_matches_definition():
    """With equal errors, tau^2 is the sample variance minus the squared error."""
    y = np.array([0.1, 0.2, 0.4, 0.0])
    found = dersimonian_laird(y, np.full(4, 0.05))
    assert found.tau**2 == pytest.approx(y.var(ddof=1) - 0.05**2)
    assert found.high - found.mean == pytest.approx(1.96 * y.std(ddof=1) / 2)


def test_simulated_coverage_is_close_to_nominal():
    row = pooling.simulate(10, 0.03, 300, seed=1)
    assert row["mean covered"] > 0.9  # four standard errors of 300 pools below .95
    assert row["tau"] == pytest.approx(0.03, abs=0.01)


# --- taste bands -----------------------------------------------------------------------------------------


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


# --- two ears --------------------------------------------------------------------------------------------


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


# --- verdict ---------------------------------------------------------------------------------------------


def test_planted_listeners_share_a_taste():
    """The stronger the taste, the more alike are the artists of one listener."""
    rng = np.random.default_rng(0)
    songs = verdict.Songs.draw(200, 100, rng)
    spreads = []
    for strength in (0.0, 1.0, 2.0):
        heard = verdict.draw_plays(songs, 300, True, strength, rng)
        assert all(len(set(row)) == verdict.N_HEARD for row in heard.tolist())
        spreads.append(songs.taste[heard].std(axis=1).mean())
    assert spreads == sorted(spreads, reverse=True)


@pytest.mark.parametrize("what", verdict.RANDOM)
def test_simulated_evidence_can_be_learned_from(what):
    rng = np.random.default_rng(1)
    snapshot = verdict.make_snapshot(verdict.Songs.draw(132, 42, rng), what, 0.0, rng)
    supervision = Supervision(snapshot, verdict.RANDOM[what])
    assert np.count_nonzero(supervision.relevance().n_relevant()) > 100
    if what in (UNIFORM, POPULAR):
        spread = np.ptp(supervision.popularity)
        assert (spread > 100) == (what == POPULAR)  # of 200 listeners


# --- noise -----------------------------------------------------------------------------------------------


def test_unconverged_fits_are_excluded_and_counted():
    def result(method, projections, arrived):
        return noise.Result("Wine", 64, 0, method, 5.0, 3, "", 1.0, projections, arrived)

    by = {
        ("Wine", 64, noise.BUNDLE): [result(noise.BUNDLE, 5, None)] * 4,
        ("Wine", 64, noise.ADMM): [result(noise.ADMM, n, n < 100) for n in (10, 20, 100, 100)],
        ("Wine", 64, noise.SUBGRADIENT): [result(noise.SUBGRADIENT, n, n < 500) for n in (80, 500, 60, 500)],
    }
    *_, claim = noise.claims(by, noise.SHORT)
    assert claim.value == 8.0  # of the only split where both arrive
    assert "of the 1 runs" in claim.claim
    assert "2 of ADMM do not, 2 of sub-gradients" in claim.claim
