"""Where the entries of one array stand in another."""

import numpy as np
import pytest

from musicsim._arrays import places_among


@pytest.mark.parametrize(("n_known", "n_wanted"), [(0, 0), (0, 3), (3, 0), (1, 5), (40, 60)])
def test_places_are_those_of_a_dictionary(n_known, n_wanted, rng):
    known = rng.permutation(90)[:n_known].astype(np.int64)
    wanted = rng.integers(0, 90, n_wanted)
    place_of = {number: place for place, number in enumerate(known.tolist())}
    assert places_among(known, wanted).tolist() == [place_of.get(number, -1) for number in wanted.tolist()]


def test_an_array_stands_in_itself(rng):
    known = rng.permutation(20)
    assert places_among(known, known.copy()).tolist() == list(range(20))
