"""Tests of the kit of blind trials: random sides, stored seeds, and tallies."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from musicsim.explorer.trials.sides import draw_seed, shuffle_sides
from musicsim.explorer.trials.tally import Tally, tally_choices
from musicsim.library.stores.judgments import opinions_in_memory


def test_sides_are_random_and_repeatable():
    rng = np.random.default_rng(0)
    seen = Counter(shuffle_sides("x", "y", rng) for _ in range(400))
    assert set(seen) == {("x", "y"), ("y", "x")}
    assert min(seen.values()) > 160  # 4 standard deviations below 200
    assert shuffle_sides(0, 1, np.random.default_rng(5)) == shuffle_sides(0, 1, np.random.default_rng(5))


def test_given_seed_is_kept_and_others_differ():
    assert draw_seed(7) == 7
    assert draw_seed(np.random.default_rng(3)) == draw_seed(np.random.default_rng(3))
    seeds = {draw_seed() for _ in range(20)}
    assert len(seeds) == 20
    assert all(0 <= seed < 1 << 31 for seed in seeds)


def test_choices_are_tallied_regardless_of_side():
    opinions = opinions_in_memory()
    for *options, chosen in (("x", "y", 0), ("y", "x", 1), ("y", "x", 0), ("y", "x", None), ("z", "x", 0)):
        opinions.judgments.add("", "letters", (), chosen, options=options)
    tallies = tally_choices(opinions.judgments.all("letters"))
    assert tallies == [Tally("x", "y", 2, 1, 1), Tally("x", "z", 0, 1, 0)]
    assert [one.n_answers for one in tallies] == [4, 1]
    assert [one.share for one in tallies] == [2 / 3, 0.0]
    assert [one.p_value for one in tallies] == [1.0, 1.0]
    opinions.judgments.add("", "maps", (), 1, options=["x", "y"])
    assert tally_choices(opinions.judgments.all("letters", "maps"))[0] == Tally("x", "y", 2, 2, 1)
    assert tally_choices([]) == []
    assert Tally("x", "y", 0, 0, 3).share is None
    assert Tally("x", "y", 0, 5_000, 0).p_value == 0.0, "more answers than a float has exponents"


@given(wins=st.integers(0, 12), losses=st.integers(0, 12))
def test_sign_test_matches_binomial(wins, losses):
    n, most = wins + losses, max(wins, losses)
    tail = sum(math.comb(n, k) for k in range(most, n + 1)) / 2**n
    assert Tally("A", "B", wins, losses, 2).p_value == pytest.approx(min(1.0, 2 * tail))


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ((0, 0, 3), "no difference so far"),
        ((1, 1, 0), "1 of 2 answers for each: a tie"),
        ((7, 2, 1), "7 of 9 answers for “A”; by chance alone, this happens in 18% of cases"),
        ((1, 21, 0), "21 of 22 answers for “B”; by chance alone, this happens in less than 1% of cases"),
    ],
)
def test_tally_states_lead_or_no_lead(counts, expected):
    assert Tally("A", "B", *counts).describe() == expected
