"""The experiment on queues that stay near their seed: ranks, walks and the mixture that predicts lists."""

import numpy as np

from benchmarks.libraries import generated_library
from experiments.station import mix, rank_songs, walk_on
from musicsim.explorer.playlists.walk import Walk
from musicsim.explorer.snapshot.snapshot import take_snapshot


def test_ranks_count_from_the_song_itself():
    X = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    assert rank_songs(X, 3).tolist() == [1, 3, 2, 0]


def test_mixture_is_a_distribution_that_prefers_near_songs():
    p = np.array([0.5, 0.3, 0.2])
    is_near = np.array([False, True, True])
    np.testing.assert_allclose(mix(p, is_near, 0.5), [0.25, 0.3 / 2 + 0.3, 0.2 / 2 + 0.2])
    np.testing.assert_allclose(mix(p, is_near, 0.0), p)
    np.testing.assert_allclose(mix(p, np.zeros(3, dtype=bool), 0.5), p, err_msg="no song is near")


def test_walk_around_a_seed_stays_nearer_than_a_free_one(tmp_path):
    with generated_library(tmp_path, 300, n_listeners=100, n_codewords=64) as library:
        snapshot = take_snapshot(library)
        walk = Walk(snapshot)
        X = snapshot.vectors_at(np.arange(snapshot.n_indexed)).astype(np.float64)
        medians = []
        for row in range(0, len(X), max(1, len(X) // 8)):
            ranks = rank_songs(X, row)
            nearest = snapshot.row_ids[np.argsort(ranks)[:4]].tolist()
            found = [walk_on(snapshot, walk, nearest, 0.3, seed=row, is_free=is_free) for is_free in (True, False)]
            assert all(not {*nearest} & {*ids} and len({*ids}) == len(ids) == 37 for ids in found)
            medians.append([np.median(ranks[snapshot.rows_of(ids)]) for ids in found])
    free, around = np.mean(medians, axis=0)
    assert around < free
