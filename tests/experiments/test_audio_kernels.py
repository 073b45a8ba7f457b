"""The experiment on kernels of sound and of tags: comparisons, weights, and a run on a small library."""

import numpy as np
import pytest
from scipy import sparse

from experiments import audio_kernels
from experiments.audio_kernels import comparisons_from_labels
from musicsim.relevance import Relevance
from tests.sounds import open_library


def test_comparisons_follow_labels():
    genres = np.repeat([0, 1, 2], 8)
    artists = np.repeat(np.arange(12), 2)
    asked = comparisons_from_labels(genres, artists, 400, random_state=0)
    assert len(asked) > 100
    i, near, same, far = asked.T
    np.testing.assert_array_equal(i, same)
    by_genre = (genres[near] == genres[i]) & (genres[far] != genres[i])
    by_artist = (artists[near] == artists[i]) & (artists[far] != artists[i]) & (genres[far] == genres[i])
    assert (by_genre | by_artist).all()
    assert by_genre.any()
    assert by_artist.any()
    assert (near != i).all()
    np.testing.assert_array_equal(asked, comparisons_from_labels(genres, artists, 400, random_state=0))


def test_songs_with_unique_labels_get_no_comparisons():
    alone = np.arange(5)
    assert comparisons_from_labels(alone, alone, 50, random_state=0).shape == (0, 4)


def test_weights_favor_informative_distances():
    rng = np.random.default_rng(0)
    kinds = np.arange(30) % 3
    told = (kinds[:12, None] != kinds[None, 12:]) + 0.1 * rng.random((12, 18))
    asked = Relevance.from_labels(kinds).restrict(np.arange(12), np.arange(12, 30))
    weights = audio_kernels.choose_weights([rng.random((12, 18)) * 5, told], asked)
    assert weights.sum() == pytest.approx(1)
    assert weights[1] > 0.5


def test_counts_cover_requested_songs():
    table = audio_kernels.tabulate_counts(
        [7, 3, 7, 9], ["rock", "jazz", "jazz", "folk"], [1, 2, 3, 4], {3: 0, 7: 1, 8: 2}
    )
    assert sparse.issparse(table)
    # columns: folk, jazz, rock
    np.testing.assert_array_equal(table.toarray(), [[0, 2, 0], [0, 3, 1], [0, 0, 0]])


def test_library_without_aspects_gives_clear_error(tmp_path):
    with open_library(tmp_path / "library") as library, pytest.raises(SystemExit, match="add its folders again"):
        audio_kernels.collection_of(library, 10, 0)
