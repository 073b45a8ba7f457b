"""Tests of dividing triples and of lists for both against known metrics, closed forms and brute force."""

import numpy as np
import pytest

from musicsim.explorer.trials.rates import Rate, estimate_rate
from musicsim.extensions.two_ears.disagreement import (
    MIN_DISAGREEMENT,
    DividingTriples,
    choice_probabilities,
    draw_triples,
    fit_slope,
    is_difference,
    measure_margins,
)
from musicsim.extensions.two_ears.lists import choose_rows, rank_closeness

GOOD = Rate(0.85, 100, 0.78, 0.9)
X = np.random.default_rng(1).standard_normal((60, 4))


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_slope_gives_the_accuracy_on_any_scale(scale):
    margins = scale * np.random.default_rng(0).standard_normal(5_000)
    for accuracy in (0.55, 0.7, 0.95):
        p = choice_probabilities(margins, fit_slope(margins, accuracy))
        assert np.maximum(p, 1 - p).mean() == pytest.approx(accuracy, abs=1e-6)
    assert fit_slope(margins, 0.5) == fit_slope(margins, 0.2) == fit_slope(np.zeros(3), 0.9) == 0


def test_margins_are_differences_of_squared_distances():
    triples = draw_triples(len(X), 5_000, np.random.default_rng(0))
    assert all(len(set(triple)) == 3 for triple in triples.tolist())
    q, a, b = X[triples.T]
    expected = (np.linalg.norm(q - b, axis=1) ** 2) - (np.linalg.norm(q - a, axis=1) ** 2)
    np.testing.assert_allclose(measure_margins(X, triples), expected, atol=1e-12)


def test_probability_of_disagreement_and_its_ends_match_a_grid():
    model = DividingTriples(2_000, random_state=0).fit([X[:, :2], X[:, 1:]], [GOOD, Rate(0.7, 100, 0.6, 0.8)])
    triples = model.triples_[:40]
    found = model.predict_disagreement(triples)
    slopes = [np.linspace(low, high, 20) for _, low, high in model.slopes_]
    one, other = (
        np.array([choice_probabilities(measure_margins(space, triples), slope) for slope in grid])
        for space, grid in zip((X[:, :2], X[:, 1:]), slopes, strict=True)
    )
    grid = one[:, None] * (1 - other[None]) + (1 - one[:, None]) * other[None]
    np.testing.assert_allclose(found[:, 1], grid.min(axis=(0, 1)), atol=1e-9)
    np.testing.assert_allclose(found[:, 2], grid.max(axis=(0, 1)), atol=1e-9)
    assert ((found[:, 1] <= found[:, 0]) & (found[:, 0] <= found[:, 2])).all()


def test_found_triples_divide_people_with_known_metrics():
    spaces = [X * [1, 1, 0, 0], X * [0, 0, 1, 1]]
    model = DividingTriples(random_state=0).fit(spaces, [GOOD, GOOD])
    everything, found = model.find(), model.find(12)
    one, other = (measure_margins(space, everything) for space in spaces)
    assert (one * other < 0).all()
    assert len(found) == 12
    assert max(np.unique(found, return_counts=True)[1]) <= 2
    low = model.predict_disagreement(everything)[:, 1]
    assert (np.diff(low) <= 0).all()
    assert low.min() >= MIN_DISAGREEMENT
    opposite = np.prod([measure_margins(space, model.triples_) for space in spaces], axis=0) < 0
    assert len(everything) < opposite.sum(), "a triple with a small margin is not sure enough"


def test_nothing_is_found_with_equal_tastes_or_a_model_at_chance():
    assert len(DividingTriples(random_state=0).fit([X, 3 * X], [GOOD, GOOD]).find()) == 0
    spaces = [X[:, :2], X[:, 2:]]
    assert len(DividingTriples(random_state=0).fit(spaces, [GOOD, Rate(0.55, 100, 0.45, 0.64)]).find(5)) == 0
    with pytest.raises(ValueError, match="3 or more songs"):
        DividingTriples().fit([X[:2], X[:2]], [GOOD, GOOD])


def test_difference_needs_separate_intervals():
    """The half widths toward the other accuracy are .07 and .10, so the difference must exceed .122."""
    assert is_difference(GOOD, Rate(0.72, 100, 0.6, 0.82))
    assert not is_difference(GOOD, Rate(0.74, 100, 0.6, 0.84))
    rate = estimate_rate(0.8, 100)
    assert (rate.share, rate.low, rate.high) == pytest.approx((0.8, 0.7112, 0.8666), abs=1e-4)  # Wilson


def test_closeness_is_the_share_of_songs_that_are_farther():
    apart = np.linalg.norm(X - X[7], axis=1)
    expected = [np.count_nonzero(np.delete(apart, 7) > one) / 58 for one in np.delete(apart, 7)]
    np.testing.assert_allclose(np.delete(rank_closeness(X, 7), 7), expected)


def test_each_step_is_best_for_the_worse_off():
    spaces = [X[:, :2], X[:, 2:]]
    artists = np.arange(60) // 2
    rows, steps = choose_rows(spaces, 3, 12, artists=artists)
    assert len(set(rows)) == 12
    for n in range(1, 12):
        recent = set(artists[rows[max(0, n - 5) : n]].tolist())
        sums = steps[: n - 1].sum(axis=0)
        close = np.stack([rank_closeness(space, rows[n - 1]) for space in spaces], axis=1)
        free = [row for row in range(60) if row not in rows[:n] and artists[row] not in recent]
        assert rows[n] in free
        assert (sums + close[rows[n]]).min() == pytest.approx(max((sums + close[row]).min() for row in free))
        np.testing.assert_allclose(steps[n - 1], close[rows[n]])
