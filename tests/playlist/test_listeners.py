"""Tests of groups by listeners, which must recover camps of listeners with distinct tastes."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

from musicsim.playlist import build_edges
from musicsim.playlist.listeners import listener_clusters

METHODS = ["bpr", "als"]


def camps(seed, n_listeners=120, n_songs=60, n_camps=3):
    """Return plays of listeners who play songs of one camp only, and the camp of each song."""
    rng = np.random.default_rng(seed)
    camp = np.repeat(np.arange(n_camps), n_songs // n_camps)
    taste = rng.integers(0, n_camps, n_listeners)
    heard = (taste[:, None] == camp) & (rng.random((n_listeners, n_songs)) < 0.6)
    return heard * rng.integers(1, 20, heard.shape), camp


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(3))
def test_camps_that_share_no_song_are_told_apart(method, seed):
    plays, camp = camps(seed)
    groups = listener_clusters(plays, (3,), n_factors=8, method=method, random_state=seed)
    # k-means from a single start may split one camp and merge others; groups that ignore camps give 0
    assert adjusted_rand_score(camp, groups["3"]) > 0.5
    fine = listener_clusters(plays, (12,), n_factors=8, method=method, random_state=seed)["12"]
    # finer groups never join camps, from any start
    assert all(np.unique(camp[fine == group]).size == 1 for group in np.unique(fine))


@pytest.mark.parametrize("method", METHODS)
def test_songs_that_nobody_played_are_in_no_group(method):
    plays, _ = camps(0)
    plays[:, [4, 33]] = 0
    groups = listener_clusters(plays, (3, 16), n_factors=4, method=method, random_state=0)
    assert list(groups) == ["3", "16"]
    for assignment in groups.values():
        assert assignment.dtype == np.int64
        np.testing.assert_array_equal(np.flatnonzero(assignment < 0), [4, 33])


@pytest.mark.parametrize("method", METHODS)
def test_a_seed_gives_the_same_groups_for_any_form_of_the_table(method):
    plays, _ = camps(1)
    forms = [plays, sparse.csr_array(plays), sparse.coo_matrix(plays)]
    groups = [listener_clusters(form, (8,), n_factors=4, method=method, random_state=5)["8"] for form in forms]
    np.testing.assert_array_equal(groups[0], groups[1])
    np.testing.assert_array_equal(groups[0], groups[2])
    other = listener_clusters(plays, (8,), n_factors=4, method=method, random_state=6)["8"]
    assert not np.array_equal(groups[0], other)


def test_sizes_above_half_the_songs_played_are_left_out():
    plays, _ = camps(0)
    assert list(listener_clusters(plays, (30, 31), n_factors=4, random_state=0)) == ["30"]
    assert listener_clusters(plays, (64,), random_state=0) == {}
    assert listener_clusters(np.zeros((4, 60)), (2,), random_state=0) == {}


def test_the_table_is_left_as_it_was():
    plays = sparse.csr_matrix(camps(0)[0].astype(np.float32))
    before = plays.copy()
    listener_clusters(plays, (2,), n_factors=4, random_state=0)
    assert (plays != before).nnz == 0


def test_groups_make_edges():
    plays, _ = camps(0)
    graph = build_edges(60, listener_clusters=listener_clusters(plays, (3,), n_factors=4, random_state=0))
    assert set(graph.names) == {"listeners-3:0", "listeners-3:1", "listeners-3:2", "uniform:all"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "svd"}, "method='svd'"),
        ({"n_factors": 0}, "n_factors=0"),
        ({"sizes": (0,)}, "integers of at least 2"),
        ({"plays": [[-1.0, 1.0]]}, "plays must be finite and not negative"),
        ({"plays": [[np.inf, 1.0]]}, "plays must be finite and not negative"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    given = {"plays": np.ones((3, 8)), "sizes": (2,), **arguments}
    with pytest.raises(ValueError, match=message):
        listener_clusters(**given)
