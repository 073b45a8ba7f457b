"""Tests of tastes that fit the answers, and of the information of a further answer."""

from contextlib import contextmanager
from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from musicsim.explorer.survey import tastes as tastes_of
from musicsim.explorer.survey.tastes import answer_costs, information, pairs_apart, sample_tastes, softness

N_TASTES = 32


@pytest.fixture
def apart(rng):
    """Return squared differences for 50 questions about four of 20 songs with five dimensions."""
    places = np.array([rng.choice(20, 4, replace=False) for _ in range(50)])
    return pairs_apart(rng.normal(size=(20, 5)), places)


def test_pair_distances_match_songs(rng):
    X, places = rng.normal(size=(6, 3)), np.array([[0, 3, 5], [4, 1, 2]])
    apart = pairs_apart(X, places)
    for question, songs in enumerate(places):
        for pair, (i, j) in enumerate(combinations(songs, 2)):
            np.testing.assert_allclose(apart[question, pair], (X[i] - X[j]) ** 2)
    assert softness(apart) == pytest.approx(0.3 * np.median(apart.sum(axis=2)))
    assert softness(np.zeros((2, 3, 4))) == 1.0, "songs in one place can be compared, too"


@pytest.mark.parametrize("n_shown", [3, 4])
def test_costs_match_definition(rng, n_shown):
    d = rng.random((n_shown, n_shown))
    d += d.T
    apart = np.array([[d[i, j] for i, j in combinations(range(n_shown), 2)]])
    np.testing.assert_allclose(answer_costs(apart, n_shown, "like")[0], d[0, 1:])
    for odd in range(n_shown):
        others = [i for i in range(n_shown) if i != odd]
        assert answer_costs(apart, n_shown, "odd")[0, odd] == pytest.approx(
            np.mean([d[i, j] for i, j in combinations(others, 2)])
        )


def test_tastes_average_to_model_without_answers(rng):
    """Exponential weights have mean and deviation 1. With 32,000 draws, four standard errors are 0.023 and 0.032."""
    tastes = sample_tastes(np.empty((0, 1000)), np.empty(0, dtype=np.int64), rng)
    assert tastes.shape == (1000, N_TASTES)
    assert (tastes.mean(), tastes.std()) == (pytest.approx(1, abs=0.023), pytest.approx(1, abs=0.032))
    assert tastes.min() >= 0


def test_tastes_match_scipy_optimum():
    """On the same draws as scipy, the objective is within 1 % of the minimum, relative to the start."""
    data = np.random.default_rng(1)
    gaps, answer = data.normal(size=(40, 6)) * [2, 1, 1, 1, 0.5, 0.1], np.repeat(np.arange(20), 2)
    tastes = sample_tastes(gaps, answer, np.random.default_rng(2))
    rng = np.random.default_rng(2)
    before = rng.exponential(size=(6, N_TASTES))
    counts = rng.exponential(size=(20, N_TASTES))
    for one in range(N_TASTES):

        def objective(w, one=one):
            said = counts[answer, one] @ np.logaddexp(0, -gaps @ w)
            return said + 0.5 * ((w - before[:, one]) ** 2).sum()

        best = minimize(objective, before[:, one], bounds=[(0, None)] * 6).fun
        start, reached = objective(before[:, one]), objective(tastes[:, one])
        assert reached - best < 0.01 * (start - best) + 1e-6
    assert tastes.min() >= 0


def converged(gaps, answer, seed):
    """Return the tastes of a seed after a long minimization with scipy."""
    rng = np.random.default_rng(seed)
    before = rng.exponential(size=(gaps.shape[1], N_TASTES))
    counts = rng.exponential(size=(answer.max() + 1, N_TASTES))[answer]
    tastes = np.empty_like(before)
    for one in range(N_TASTES):

        def objective(w, one=one):
            value = counts[:, one] @ np.logaddexp(0, -gaps @ w) + 0.5 * ((w - before[:, one]) ** 2).sum()
            return value, w - before[:, one] - gaps.T @ (counts[:, one] * expit(-gaps @ w))

        tastes[:, one] = minimize(
            objective, before[:, one], jac=True, bounds=[(0, None)] * len(before), method="L-BFGS-B",
            options={"maxiter": 5000, "maxfun": 5000, "ftol": 1e-14, "gtol": 1e-7},
        ).x  # fmt: skip
    return tastes


@pytest.mark.parametrize(
    ("falls", "n_dimensions", "is_tied"),
    [(0.7, 30, False), (1.5, 30, False), (0.7, 8, False), (3.0, 60, False), (0.7, 8, True), (0.0, 3, True)],
)
def test_tastes_converge_for_any_spread(falls, n_dimensions, is_tied):
    """Use 250 answers about songs whose k-th dimension has the deviation k^-falls.

    `is_tied` selects questions that the plain distance cannot decide, like those that are asked. The tastes must be
    within 1 % of a long minimization. Their ten best questions must carry 99 % of the information of the best ten.
    """
    rng = np.random.default_rng(4)
    X = rng.normal(size=(1000, n_dimensions)) * np.arange(1.0, n_dimensions + 1) ** -falls
    taste, asked = rng.exponential(size=n_dimensions), rng.integers(1000, size=(5000, 3))
    apart = pairs_apart(X, asked)
    gaps = (apart[:, 0] - apart[:, 1]) / softness(apart)
    gaps = gaps[np.argsort(np.abs(gaps.sum(axis=1)))[:250] if is_tied else slice(250)]
    gaps *= np.sign(gaps @ taste)[:, None]
    answer = np.arange(250)
    found, truth = sample_tastes(gaps, answer, np.random.default_rng(5)), converged(gaps, answer, 5)
    assert np.linalg.norm(found - truth) < 0.01 * np.linalg.norm(truth)
    told, by_truth = (information(apart[:300], 3, "odd", t, softness(apart)) for t in (found, truth))
    assert by_truth[np.argsort(-told)[:10]].mean() > 0.99 * np.sort(by_truth)[-10:].mean()


def test_sampling_uses_one_blas_thread(monkeypatch):
    """Threads of small products wait for each other, and block those of the page."""
    inside, seen = [], []

    @contextmanager
    def one_thread():
        inside.append(True)
        yield
        inside.clear()

    lengths = tastes_of.step_lengths
    monkeypatch.setattr(tastes_of, "one_blas_thread", one_thread)
    monkeypatch.setattr(tastes_of, "step_lengths", lambda *of: seen.append(bool(inside)) or lengths(*of))
    sample_tastes(np.ones((2, 3)), np.arange(2), np.random.default_rng(0))
    assert seen == [True]
    assert not inside


def test_answers_move_tastes_toward_listener(rng):
    """Use 200 answers of a listener whose taste depends on the first two of six dimensions."""
    X, truth = rng.normal(size=(100, 6)), np.array([4.0, 4, 0, 0, 0, 0])
    pairs = np.array([rng.choice(100, 4, replace=False) for _ in range(200)])
    gaps = (X[pairs[:, 2]] - X[pairs[:, 3]]) ** 2 - (X[pairs[:, 0]] - X[pairs[:, 1]]) ** 2
    gaps *= np.sign(gaps @ truth)[:, None]
    tastes = sample_tastes(gaps, np.arange(200), rng)
    of_dimension = tastes.mean(axis=1)
    assert of_dimension[:2].min() > 5 * of_dimension[2:].max()


@pytest.mark.parametrize("n_shown", [3, 4])
@pytest.mark.parametrize("form", ["odd", "like"])
def test_information_matches_definition(apart, rng, form, n_shown):
    """Mutual information is the mean Kullback-Leibler divergence of each taste's answer from the mean answer."""
    of_shown = [k for k, pair in enumerate(combinations(range(4), 2)) if max(pair) < n_shown]
    apart, tastes = apart[:, of_shown], rng.exponential(size=(5, 7))
    found = information(apart, n_shown, form, tastes, 2.0)
    for question in range(len(apart)):
        chances = []
        for taste in tastes.T:
            cost = answer_costs((apart[question] @ taste)[None, :], n_shown, form)[0]
            chances.append(np.exp(-cost / 2.0) / np.exp(-cost / 2.0).sum())
        mean = np.mean(chances, axis=0)
        divergence = [np.sum(p * np.log(p / mean)) for p in chances]
        assert found[question] == pytest.approx(np.mean(divergence), abs=1e-12)


def test_information_is_log_2_for_opposed_tastes():
    apart = np.array([[[100.0, 0.0], [0.0, 100.0], [50.0, 50.0]]])  # the second is near in one dimension only
    opposed = np.array([[1.0, 0.0], [0.0, 1.0]])
    assert information(apart, 3, "like", opposed, 1.0) == pytest.approx([np.log(2)])
    assert information(apart, 3, "like", opposed[:, :1], 1.0) == pytest.approx([0.0])
    assert information(1e6 * apart, 3, "odd", np.ones((2, 5)), 1.0) == pytest.approx([0.0]), "no overflow"
