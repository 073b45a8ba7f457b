"""Tests of the map: it keeps neighbors together, and places new songs next to their neighbors."""

import numpy as np
import pytest

from musicsim.explorer.refresh.map_layout import MapPlacer, fit_map, has_open_tsne


@pytest.fixture(params=["openTSNE", "scikit-learn"])
def each_tsne(request, monkeypatch):
    """Run with openTSNE, and as on machines without a wheel of it."""
    monkeypatch.setenv("MUSICSIM_MAP", request.param)
    if request.param == "openTSNE" and not has_open_tsne():
        pytest.skip("openTSNE is not installed")


@pytest.fixture
def blobs(rng):
    centres = rng.standard_normal((4, 20)) * 8
    labels = np.repeat(np.arange(4), 25)
    return (centres[labels] + rng.standard_normal((100, 20))).astype(np.float32), labels, centres


@pytest.mark.usefixtures("each_tsne")
def test_map_neighbors_are_sound_neighbors(blobs):
    X, labels, _ = blobs
    places = fit_map(X)
    D = np.linalg.norm(places[:, None] - places[None], axis=2)
    np.fill_diagonal(D, np.inf)
    near = np.argsort(D, axis=1)[:, :5]
    assert (labels[near] == labels[:, None]).mean() > 0.99


@pytest.mark.long
@pytest.mark.usefixtures("each_tsne")
def test_same_songs_give_same_map(blobs):
    np.testing.assert_array_equal(fit_map(blobs[0]), fit_map(blobs[0]))


@pytest.mark.usefixtures("each_tsne")
def test_new_song_lands_in_its_cluster(blobs, rng):
    X, labels, centres = blobs
    places = fit_map(X)
    placer = MapPlacer(X, places)
    for label in range(4):
        x = (centres[label] + rng.standard_normal(20)).astype(np.float32)
        place = placer.place(x[None, :])[0]
        nearest = np.argsort(np.linalg.norm(places - place, axis=1))[:5]
        assert set(labels[nearest]) == {label}


@pytest.mark.parametrize("n_songs", [40, 1_100])
def test_new_song_position_matches_opentsne(n_songs, rng):
    open_tsne = pytest.importorskip("openTSNE")
    X, new = (rng.standard_normal((n, 6)).astype(np.float32) for n in (n_songs, 3))
    places = (10 * rng.standard_normal((n_songs, 2))).astype(np.float32)
    perplexity = min(30.0, (n_songs - 1) / 3)
    affinities = open_tsne.affinity.PerplexityBasedNN(X.astype(float), perplexity=perplexity, method="exact", n_jobs=1)
    embedding = open_tsne.TSNEEmbedding(
        places.astype(float), affinities, negative_gradient_method="fft", n_jobs=1, random_state=0
    )
    judge = np.asarray(embedding.transform(new.astype(float), perplexity=5.0))
    judge -= np.asarray(embedding).mean(axis=0) - places.astype(float).mean(axis=0)
    np.testing.assert_array_equal(MapPlacer(X, places).place(new), judge.astype(np.float32))


def test_placing_works_on_shifted_map(blobs, rng):
    X, _, centres = blobs
    places = fit_map(X)
    x = (centres[0] + rng.standard_normal(20)).astype(np.float32)[None, :]
    moved = MapPlacer(X, places + np.float32([100.0, -40.0])).place(x)
    # float32 positions of the shifted map keep half of the digits
    np.testing.assert_allclose(moved - [100.0, -40.0], MapPlacer(X, places).place(x), atol=0.05)


@pytest.mark.usefixtures("each_tsne")
@pytest.mark.parametrize("n", [0, 1, 2, 3, 5, 11, 12, 13])
def test_map_works_for_any_number_of_songs(n, rng):
    X = rng.standard_normal((n, 7)).astype(np.float32)
    places = fit_map(X)
    assert places.shape == (n, 2)
    assert np.isfinite(places).all()
    placed = MapPlacer(X, places).place(rng.standard_normal((1, 7)).astype(np.float32))
    assert placed.shape == (1, 2)
    assert np.isfinite(placed).all()


@pytest.mark.usefixtures("each_tsne")
@pytest.mark.parametrize(("n", "distinct"), [(5, 1), (30, 1), (30, 2), (60, 11), (60, 12)])
def test_map_handles_identical_songs(n, distinct, rng):
    X = rng.standard_normal((distinct, 4)).astype(np.float32)[np.arange(n) % distinct]
    places = fit_map(X)
    assert np.isfinite(places).all()
    assert np.isfinite(MapPlacer(X, places).place(X[:1])).all()


@pytest.mark.usefixtures("each_tsne")
def test_large_library_is_placed_around_sample(blobs, rng, monkeypatch):
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


def test_indexed_placement_matches_exact_placement(blobs, rng, monkeypatch):
    X, labels, centres = blobs
    places = fit_map(X)
    monkeypatch.setattr("musicsim.explorer.refresh.map_layout.MAX_LAID_OUT", 80)
    new = (centres[labels] + rng.standard_normal(X.shape)).astype(np.float32)
    one_by_one = MapPlacer(X, places).place(new)
    monkeypatch.setattr("musicsim.explorer.refresh.map_layout.BATCH", 20)
    # The index holds rounded codes, so the fifth and sixth neighbors are sometimes swapped. The map is 30 wide.
    np.testing.assert_allclose(MapPlacer(X, places).place(new), one_by_one, atol=0.2)


@pytest.mark.long
@pytest.mark.usefixtures("each_tsne")
@pytest.mark.parametrize("n", [40, 200])
def test_one_dimensional_vectors_have_map(n, rng):
    X = np.sort(rng.standard_normal((n, 1)), axis=0).astype(np.float32)
    places = fit_map(X)
    assert places.shape == (n, 2)
    steps = np.linalg.norm(np.diff(places, axis=0), axis=1)
    pairs = np.linalg.norm(places[rng.permutation(n)] - places, axis=1)
    assert np.median(steps) < np.median(pairs) / 2, "songs that follow one another stand together"
    place = MapPlacer(X, places).place(X[n // 2 : n // 2 + 1])
    assert abs(np.argmin(np.linalg.norm(places - place, axis=1)) - n // 2) <= n // 8


@pytest.mark.long
@pytest.mark.usefixtures("each_tsne")
@pytest.mark.parametrize("start", [[[0.0, 0.0], [0.0, 0.0]], [[3.0, 0.0], [3.0, 1.0]]])
def test_degenerate_start_is_ignored(blobs, start):
    X, labels, _ = blobs
    places = fit_map(X, start=np.float32(start)[labels % 2])
    np.testing.assert_array_equal(places, fit_map(X))


@pytest.mark.parametrize("n", [0, 3, 40])
def test_placing_no_songs_returns_empty(n, rng):
    X = rng.standard_normal((n, 7)).astype(np.float32)
    assert MapPlacer(X, fit_map(X)).place(X[:0]).shape == (0, 2)


@pytest.mark.long
@pytest.mark.usefixtures("each_tsne")
def test_start_map_keeps_cluster_positions(blobs, rng):
    X, labels, _ = blobs
    places = fit_map(X)
    moved = fit_map(X, start=places + np.float32([50.0, 20.0]))
    centers = [np.array([p[labels == label].mean(axis=0) for label in range(4)]) for p in (places, moved)]
    apart = np.linalg.norm(centers[0][:, None] - centers[0][None], axis=2)
    assert np.linalg.norm(centers[1] - [50.0, 20.0] - centers[0], axis=1).max() < apart[apart > 0].min()
