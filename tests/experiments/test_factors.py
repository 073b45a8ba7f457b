"""Distances in factors: those in timbre and rhythm add up to Sound, and unknown ones are infinite."""

import numpy as np

from experiments.factors import find_distances
from experiments.support.pieces import Pieces
from musicsim.explorer.snapshot.factors import Factors
from musicsim.explorer.snapshot.snapshot import take_snapshot


def test_distances_in_factors(own_styles):
    songs = tuple(own_styles.songs()[:6])
    own_styles.frame_files.aspects_path(songs[2].content_hash).unlink()
    none = np.full(6, "")
    found = find_distances(Factors(take_snapshot(own_styles)), Pieces(songs, none, none))
    assert list(found) == ["Sound", "Sound, as search ranks", "timbre", "rhythm", "harmony"]
    np.testing.assert_allclose(found["timbre"] ** 2 + found["rhythm"] ** 2, found["Sound"] ** 2, atol=1e-12)
    assert np.isinf(found["harmony"][2]).all()
    assert np.isfinite(np.delete(np.delete(found["harmony"], 2, axis=0), 2, axis=1)).all()
