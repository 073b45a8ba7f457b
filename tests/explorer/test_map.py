"""The map keeps neighbours together, and new songs find their neighbours there."""

import numpy as np
import pytest
from openTSNE import TSNEEmbedding
from openTSNE.affinity import PerplexityBasedNN

from musicsim.explorer.refresh.map_layout import MapPlacer, fit_map


@pytest.fixture
def blobs(rng):
    centres = rng.standard_normal((4, 20)) * 8
    labels = np.repeat(np.arange(4), 25)
    return (centres[labels] + rng.standard_normal((100, 20))).astype(np.float32), labels, centres


def test_neighbours_on_the_map_are_neighbours_in_sound(blobs):
    X, labels, _ = blobs
    places = fit_map(X)
    D = np.linalg.norm(places[:, None] - places[None], axis=2)
    np.fill_diagonal(D, np.inf)
    near = np.argsort(D, axis=1)[:, :5]
    assert (labels[near] == labels[:, None]).mean() > 0.99


def test_the_same_songs_give_the_same_map(blobs):
    np.testing.assert_array_equal(fit_map(blobs[0]), fit_map(blobs[0]))


def test_a_new_song_lands_among_its_own(blobs, rng):
    X, labels, centres = blobs
    places = fit_map(X)
    placer = MapPlacer(X, places)
    for label in range(4):
        x = (centres[label] + rng.standard_normal(20)).astype(np.float32)
        place = placer.place(x[None, :])[0]
        nearest = np.argsort(np.linalg.norm(places - place, axis=1))[:5]
        assert set(labels[nearest]) == {label}


@pytest.mark.parametrize("n_songs", [40, 1_100])
def test_a_new_song_stands_where_opentsne_puts_it_by_its_exact_neighbours(n_songs, rng):
    X, new = (rng.standard_normal((n, 6)).astype(np.float32) for n in (n_songs, 3))
    places = (10 * rng.standard_normal((n_songs, 2))).astype(np.float32)
    perplexity = min(30.0, (n_songs - 1) / 3)
    affinities = PerplexityBasedNN(X.astype(float), perplexity=perplexity, method="exact", n_jobs=1)
    embedding = TSNEEmbedding(
        places.astype(float), affinities, negative_gradient_method="fft", n_jobs=1, random_state=0
    )
    judge = np.asarray(embedding.transform(new.astype(float), perplexity=5.0))
    judge -= np.asarray(embedding).mean(axis=0) - places.astype(float).mean(axis=0)
    np.testing.assert_array_equal(MapPlacer(X, places).place(new), judge.astype(np.float32))


def test_a_map_that_is_not_centred_takes_new_songs_as_well(blobs, rng):
    X, _, centres = blobs
    places = fit_map(X)
    x = (centres[0] + rng.standard_normal(20)).astype(np.float32)[None, :]
    moved = MapPlacer(X, places + np.float32([100.0, -40.0])).place(x)
    # float32 places of the moved map have half the digits
    np.testing.assert_allclose(moved - [100.0, -40.0], MapPlacer(X, places).place(x), atol=0.05)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 5, 11, 12, 13])
def test_any_number_of_songs_has_a_map_and_takes_a_query(n, rng):
    X = rng.standard_normal((n, 7)).astype(np.float32)
    places = fit_map(X)
    assert places.shape == (n, 2)
    assert np.isfinite(places).all()
    placed = MapPlacer(X, places).place(rng.standard_normal((1, 7)).astype(np.float32))
    assert placed.shape == (1, 2)
    assert np.isfinite(placed).all()


@pytest.mark.parametrize(("n", "distinct"), [(5, 1), (30, 1), (30, 2), (60, 11), (60, 12)])
def test_identical_songs_are_no_trouble(n, distinct, rng):
    X = rng.standard_normal((distinct, 4)).astype(np.float32)[np.arange(n) % distinct]
    places = fit_map(X)
    assert np.isfinite(places).all()
    assert np.isfinite(MapPlacer(X, places).place(X[:1])).all()


def test_a_large_collection_stands_beside_the_songs_that_were_laid_out(blobs, rng, monkeypatch):
    monkeypatch.setattr("musicsim.explorer.refresh.map_layout.MAX_LAID_OUT", 80)
    X, labels, centres = blobs
    places = fit_map(X)
    assert np.isfinite(places).all()
    D = np.linalg.norm(places[:, None] - places[None], axis=2)
    np.fill_diagonal(D, np.inf)
    assert (labels[np.argsort(D, axis=1)[:, :3]] == labels[:, None]).mean() > 0.99
    x = (centres[2] + rng.standard_normal(20)).astype(np.float32)[None, :]
    nearest = np.argsort(np.linalg.norm(places - MapPlacer(X, places).place(x), axis=1))[:3]
    assert set(labels[nearest]) == {2}


def test_many_songs_are_placed_through_a_forest(blobs, rng, monkeypatch):
    X, labels, centres = blobs
    places = fit_map(X)
    monkeypatch.setattr("musicsim.explorer.refresh.map_layout.MAX_LAID_OUT", 80)
    new = (centres[labels] + rng.standard_normal(X.shape)).astype(np.float32)
    one_by_one = MapPlacer(X, places).place(new)
    monkeypatch.setattr("musicsim.explorer.refresh.map_layout._MANY", 20)
    # leaves hold rounded codes: now and then the fifth neighbour is the sixth; the map is 30 wide
    np.testing.assert_allclose(MapPlacer(X, places).place(new), one_by_one, atol=0.2)


@pytest.mark.parametrize("n", [40, 200])
def test_vectors_of_one_dimension_have_a_map(n, rng):
    X = np.sort(rng.standard_normal((n, 1)), axis=0).astype(np.float32)
    places = fit_map(X)
    assert places.shape == (n, 2)
    steps = np.linalg.norm(np.diff(places, axis=0), axis=1)
    pairs = np.linalg.norm(places[rng.permutation(n)] - places, axis=1)
    assert np.median(steps) < np.median(pairs) / 2, "songs that follow one another stand together"
    place = MapPlacer(X, places).place(X[n // 2 : n // 2 + 1])
    assert abs(np.argmin(np.linalg.norm(places - place, axis=1)) - n // 2) <= n // 8


@pytest.mark.parametrize("start", [[[0.0, 0.0], [0.0, 0.0]], [[3.0, 0.0], [3.0, 1.0]]])
def test_a_map_without_width_is_no_start(blobs, start):
    X, labels, _ = blobs
    places = fit_map(X, start=np.float32(start)[labels % 2])
    np.testing.assert_array_equal(places, fit_map(X))


@pytest.mark.parametrize("n", [0, 3, 40])
def test_no_new_songs_have_no_places(n, rng):
    X = rng.standard_normal((n, 7)).astype(np.float32)
    assert MapPlacer(X, fit_map(X)).place(X[:0]).shape == (0, 2)
