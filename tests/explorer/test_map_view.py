"""Tests of the drawing order of songs on the map, and of the outlines of regions."""

import numpy as np
import pytest

from musicsim.explorer.snapshot.map_view import MAX_UNFOLDED, MapView, place_by_neighbors, place_vector
from musicsim.explorer.snapshot.neighbors import Neighbors
from musicsim.search import ExactIndex


def lumps(rng: np.random.Generator, n: int = 60_000) -> np.ndarray:
    """Return a crowded lump, one a tenth as crowded next to it, and five songs far away."""
    crowded = rng.normal((0, 0), 1, (n - n // 10 - 5, 2))
    thin = rng.normal((20, 0), 1, (n // 10, 2))
    return np.vstack([crowded, thin, rng.normal((0, 40), 0.1, (5, 2))]).astype(np.float32)


@pytest.fixture
def places(rng) -> np.ndarray:
    return lumps(rng)


SAMPLE = 8_000


def test_songs_without_place_are_left_out(rng):
    places = rng.normal(size=(50, 2)).astype(np.float32)
    places[7:9] = np.nan
    assert sorted(MapView(places).rows) == [row for row in range(50) if row not in (7, 8)]
    assert len(MapView(np.full((3, 2), np.nan, dtype=np.float32)).rows) == 0
    assert len(MapView(np.empty((0, 2), dtype=np.float32)).inside([0, 1, 1], [0, 0, 1])) == 0


def test_order_is_deterministic(places):
    rows = MapView(places).rows
    np.testing.assert_array_equal(rows, MapView(places).rows)
    assert sorted(rows.tolist()) == list(range(len(places)))
    assert not np.array_equal(rows, MapView(places, random_state=1).rows)


def test_sample_thins_crowds_and_covers_all_regions(places):
    rows = MapView(places).rows[:SAMPLE]
    n = len(places)
    assert set(rows.tolist()) & set(range(n - 5, n)), "the five far off have a point"
    share = {
        name: np.isin(part, rows).mean()
        for name, part in (("crowded", np.arange(n - n // 10 - 5)), ("thin", np.arange(n - n // 10 - 5, n - 5)))
    }
    assert share["thin"] > 2 * share["crowded"]
    assert share["crowded"] > 0.05


def test_every_coarse_grid_cell_has_point(rng):
    places = rng.uniform(0, 1, (200_000, 2)).astype(np.float32)
    view = MapView(places)
    home = view.home
    low, extent = [home.left, home.bottom], [home.right - home.left, home.top - home.bottom]
    cells = [tuple(cell) for cell in np.floor(64 * (places.astype(float) - low) / extent).tolist()]
    assert {cells[row] for row in view.rows[:SAMPLE]} == set(cells)


def ray_count(point: np.ndarray, x: np.ndarray, y: np.ndarray) -> bool:
    """Return whether a point is inside an outline, edge by edge from the even-odd rule."""
    n, odd = len(x), False
    for i in range(n):
        j = (i + 1) % n
        if (y[i] > point[1]) != (y[j] > point[1]):
            at = x[i] + (point[1] - y[i]) * (x[j] - x[i]) / (y[j] - y[i])
            odd ^= bool(point[0] < at)
    return odd


def test_outline_selection_matches_ray_casting(rng):
    places = rng.uniform(-1, 1, (2_000, 2)).astype(np.float32)
    places[5] = np.nan
    view = MapView(places)
    for corners in (3, 4, 40):
        x, y = rng.uniform(-1, 1, (2, corners))  # the outline crosses itself
        true = [row for row, p in enumerate(places.astype(float)) if row != 5 and ray_count(p, x, y)]
        assert sorted(view.inside(x.tolist(), y.tolist())) == true


def test_outline_selects_beyond_sample(places):
    view = MapView(places)
    turn = np.linspace(0, 2 * np.pi, 200, endpoint=False)
    rows = view.inside((2 * np.cos(turn)).tolist(), (2 * np.sin(turn)).tolist())
    inner = np.flatnonzero(np.hypot(*places.T.astype(float)) < 2 * np.cos(np.pi / 200))
    outer = np.flatnonzero(np.hypot(*places.T.astype(float)) < 2)
    assert set(inner) <= set(rows) <= set(outer)
    assert len(rows) > SAMPLE
    sample = view.rows[:SAMPLE]
    drawn = np.isin(sample, rows).sum()
    assert set(rows[:drawn]) <= set(sample), "those that are drawn come first"


def test_flat_and_distant_outlines_are_empty(places):
    view = MapView(places)
    assert len(view.inside([0, 1, 2], [0, 0, 0])) == 0
    assert len(view.inside([100, 101, 101], [100, 100, 101])) == 0


def test_new_song_is_placed_amid_its_neighbors():
    places = np.array([[0, 0], [1, 0], [0, 1], [50, 50], [np.nan, np.nan]], dtype=np.float32)
    np.testing.assert_array_equal(place_by_neighbors(places, np.array([0, 1, 2])), [0, 0])
    np.testing.assert_array_equal(place_by_neighbors(places, np.array([4, 3])), [50, 50])
    assert np.isnan(place_by_neighbors(places, np.array([4]))).all()


@pytest.mark.parametrize(("n_songs", "is_unfolded"), [(MAX_UNFOLDED, True), (MAX_UNFOLDED + 1, False)])
def test_external_song_uses_map_method_when_fast(rng, n_songs, is_unfolded):
    X = rng.normal(size=(n_songs, 2)).astype(np.float32)
    index = Neighbors(ExactIndex().fit(X), np.arange(n_songs))
    place = place_vector(X[0], 10 * X, index, lambda vectors: vectors - 100)
    expected = X[0] - 100 if is_unfolded else place_by_neighbors(10 * X, index.query(X[:1], 10)[1][0])
    np.testing.assert_array_equal(place, expected)
