"""Positions of the entries of one array in another."""

import numpy as np
import pytest

from musicsim.places import places_among, places_in_order


@pytest.mark.parametrize(("n_known", "n_wanted"), [(0, 0), (0, 3), (3, 0), (1, 5), (40, 60)])
def test_places_match_dictionary_lookup(n_known, n_wanted, rng):
    known = rng.permutation(90)[:n_known].astype(np.int64)
    wanted = rng.integers(0, 90, n_wanted)
    place_of = {number: place for place, number in enumerate(known.tolist())}
    assert places_among(known, wanted).tolist() == [place_of.get(number, -1) for number in wanted.tolist()]


@pytest.mark.parametrize("spread", [1, 3, 1_000])
@pytest.mark.parametrize("start", [0, -50, 2**62])
def test_places_in_order_match_dictionary_for_any_spread(spread, start, rng):
    known = np.sort(start + spread * rng.permutation(60)[:40])
    extremes = [-(2**63), 2**63 - 1, known[0] - 1, known[-1] + 1]
    wanted = np.concatenate([known, rng.permutation(known), known + 1, extremes]).astype(np.int64)
    place_of = {number: place for place, number in enumerate(known.tolist())}
    expected = [place_of.get(number, -1) for number in wanted.tolist()]
    assert places_in_order(known, wanted).tolist() == expected
    assert places_in_order(known, wanted, 100 + np.arange(40)).tolist() == [
        100 + place if place >= 0 else -1 for place in expected
    ]


def test_places_of_array_in_itself(rng):
    known = rng.permutation(20)
    assert places_among(known, known.copy()).tolist() == list(range(20))
