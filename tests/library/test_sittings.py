"""Tests of sittings against their definition, one play at a time."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from musicsim.library.stores.listening import MAX_PAUSE_S, sittings_of

LISTENS = st.lists(st.tuples(st.integers(0, 2), st.integers(-1, 4), st.integers(0, 60)), max_size=25)


def brute(listens, pause):
    """Return the songs of each sitting with at least two known songs, by listener and time of first play."""
    found = []
    for who in sorted({listener for listener, _, _ in listens}):
        last = None
        of_one = [(at, song) for listener, song, at in listens if listener == who]
        for at, song in sorted(of_one, key=lambda listen: listen[0]):
            if last is None or at - last > pause:
                found.append([])
            if song >= 0 and song not in found[-1]:
                found[-1].append(song)
            last = at
    return [sitting for sitting in found if len(sitting) > 1]


@given(LISTENS, st.integers(90, 1800))
def test_sittings_match_brute_force(listens, unit_s):
    listens = [(listener, song, at * unit_s) for listener, song, at in listens]
    pairs = sittings_of(*np.array(listens, dtype=np.int64).reshape(-1, 3).T)
    assert pairs.dtype == np.int64
    assert pairs.tolist() == [[n, song] for n, songs in enumerate(brute(listens, MAX_PAUSE_S)) for song in songs]
