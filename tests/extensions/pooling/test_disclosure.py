"""Tests of the rules for numbers that leave a library."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ttest_1samp

from musicsim.extensions.pooling.disclosure import (
    MIN_ARTISTS,
    MIN_SONGS,
    SHARES,
    bin_count,
    bin_shares,
    estimate,
    find_cells,
    round_to,
    step_of,
)


@given(st.integers(0, 10**7))
def test_bin_contains_its_count(n):
    low, *high = (int(number.replace(",", "")) for number in re.findall(r"[\d,]+", bin_count(n)))
    assert low <= n
    if high:
        assert n <= high[0]
        assert low < 20 or high[0] + 1 >= 2 * low, "a bin of many songs is at least as wide as its lower end"


@given(st.lists(st.integers(0, 30), max_size=300))
def test_cells_are_large_and_part_all_songs(numbers):
    artists = [f"artist {number}" for number in numbers]
    cells = find_cells(artists)
    is_enough = len(artists) >= MIN_SONGS and len(set(artists)) >= MIN_ARTISTS
    assert bool(cells) == is_enough
    for cell in cells:
        assert len(cell) >= MIN_SONGS
        assert len({artists[row] for row in cell}) >= MIN_ARTISTS
    if cells:
        assert sorted(np.concatenate(cells)) == list(range(len(artists)))
        owners = {artist: {i for i, cell in enumerate(cells) for row in cell if artists[row] == artist}
                  for artist in set(artists)}  # fmt: skip
        assert all(len(own) == 1 for own in owners.values())


def test_removed_artist_does_not_move_others():
    artists = [f"artist {i % 60}" for i in range(600)]
    before = [{artists[row] for row in cell} for cell in find_cells(artists)]
    rest = [artist for artist in artists if artist != "artist 7"]
    after = [{rest[row] for row in cell} for cell in find_cells(rest)]
    assert len(before) == 5
    assert after == [cell - {"artist 7"} for cell in before]


def test_small_genres_and_other_names_are_left_out():
    genres = ["Classical"] * 60 + ["Neo-Classical"] * 20 + ["Polka"] * 100 + ["Jazz"] * 19 + ["Hip-Hop"] * 25 + [None]
    assert bin_shares(genres) == {"classical": SHARES[2], "hip hop": SHARES[1]}  # 80 and 25 of 224
    assert bin_shares([]) == {}


def test_interval_of_equal_artists_is_the_t_interval_of_their_means(rng):
    values = rng.normal(0.1, 0.3, (12, 5)) + rng.normal(0, 0.2, (12, 1))
    found = estimate(values.ravel(), np.repeat(np.arange(12), 5))
    test = ttest_1samp(values.mean(axis=1), 0)
    interval = test.confidence_interval()
    assert (found.mean - found.half, found.mean + found.half) == pytest.approx((interval.low, interval.high))
    assert found.error == pytest.approx(found.mean / test.statistic)


@given(st.floats(-1, 1), st.floats(1e-3, 5))
def test_rounding_stays_within_its_step(value, error):
    step, decimals = step_of(error)
    rounded = round_to(value, error)
    assert abs(rounded - value) <= step / 2 + 1e-12
    assert rounded == round(rounded, decimals)
    assert 0.4 * error <= step <= error * (1 + 1e-8)
    assert round_to(error, error / 10) == pytest.approx(error, rel=0.0501)


def test_equal_models_are_not_known_exactly():
    assert estimate(np.zeros(30), np.arange(30)).error == 1e-3
