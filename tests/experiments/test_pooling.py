"""Tests of the experiment on pooled libraries: cuts, and coverage in a case with a known answer."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from experiments.pooling import N_LIBRARIES, Songs, covers, cut, dersimonian_laird, score_all, simulate
from experiments.support.descriptors import Collection
from musicsim.evaluation import distance_scores
from musicsim.explorer.learning.verdict import RANKED
from musicsim.relevance import Relevance

pytestmark = pytest.mark.long


@pytest.fixture
def songs(rng):
    artists = np.repeat(np.arange(400), 3)
    labels = artists % 8
    X = np.eye(8)[labels] + rng.normal(0, 0.5, (1200, 8))
    collection = Collection(X, labels, artists)
    return Songs(collection, (X, X[:, :1]), [f"artist {a}" for a in range(400)], np.arange(400), np.arange(400) % 8)


def test_parted_libraries_contain_each_artist_once(songs, rng):
    libraries = list(cut(songs, "parted", 2 * N_LIBRARIES, rng))
    assert len(libraries) == 2 * N_LIBRARIES
    for part in (libraries[:N_LIBRARIES], libraries[N_LIBRARIES:]):
        assert sorted(np.concatenate(part)) == list(range(400))


def test_specialized_libraries_prefer_one_cluster(songs, rng):
    for artists in cut(songs, "specialized", 20, rng):
        assert len(set(artists)) == 10
        assert np.bincount(songs.clusters[artists]).max() >= 7


def test_scores_match_those_of_the_library(rng):
    X, labels = rng.normal(size=(60, 3)), np.append(rng.integers(0, 6, 59), 99)
    D = cdist(X, X)
    expected = distance_scores(D, Relevance.from_labels(labels), 10)
    found = score_all(D, labels[:, None] == labels)
    is_scored = np.isfinite(expected["auc"])
    assert is_scored.sum() == np.isfinite(found["auc"]).sum() == 59
    for measure in RANKED:
        np.testing.assert_allclose(found[measure][is_scored], expected[measure][is_scored])


def test_better_model_is_ahead(songs, rng):
    (artists,) = cut(songs, "drawn", 1, rng)
    measured = songs.measure(songs.rows_of(artists))
    whole, cells = measured["map"]
    assert whole.mean + whole.half < 0, "one column tells less than eight"
    assert len(cells) == 1, "thirty songs make one cell"


def test_intervals_of_equal_libraries_cover_them():
    found = covers(np.full(6, 0.1), np.full(6, 0.02), 0.1)
    assert (found.mean, found.next, found.tau) == (True, True, 0.0)
    assert not covers(np.full(6, 0.1), np.full(6, 0.02), 0.2).mean
    assert not covers(np.array([0.1] * 5 + [0.5]), np.full(6, 0.02), 0.1).next


def test_moment_estimate_matches_definition():
    """With equal errors, tau^2 is the sample variance minus the squared error."""
    y = np.array([0.1, 0.2, 0.4, 0.0])
    found = dersimonian_laird(y, np.full(4, 0.05))
    assert found.tau**2 == pytest.approx(y.var(ddof=1) - 0.05**2)
    assert found.high - found.mean == pytest.approx(1.96 * y.std(ddof=1) / 2)


def test_simulated_coverage_is_close_to_nominal():
    row = simulate(10, 0.03, 300, seed=1)
    assert row["mean covered"] > 0.9  # four standard errors of 300 pools below .95
    assert row["tau"] == pytest.approx(0.03, abs=0.01)
