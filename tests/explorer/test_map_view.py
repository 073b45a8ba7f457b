"""Which songs of a large map are points: the sample, the density behind it, and what an outline holds."""

import numpy as np
import pytest

from musicsim.explorer.snapshot.map_view import (
    MAX_DRAWN,
    SAMPLE,
    MapView,
    OncePer,
    Window,
    place_by_neighbours,
    place_vector,
)
from musicsim.explorer.snapshot.neighbours import Neighbours
from musicsim.search import ExactIndex


def lumps(rng: np.random.Generator, n: int = 60_000) -> np.ndarray:
    """A crowded lump, one a tenth as crowded beside it, and five songs far from everything."""
    crowded = rng.normal((0, 0), 1, (n - n // 10 - 5, 2))
    thin = rng.normal((20, 0), 1, (n // 10, 2))
    return np.vstack([crowded, thin, rng.normal((0, 40), 0.1, (5, 2))]).astype(np.float32)


@pytest.fixture
def places(rng) -> np.ndarray:
    return lumps(rng)


def within(places: np.ndarray, window: Window) -> np.ndarray:
    x, y = places.T
    return np.flatnonzero((x >= window.left) & (x <= window.right) & (y >= window.bottom) & (y <= window.top))


def test_of_a_small_map_every_song_is_a_point(rng):
    places = rng.normal(size=(MAX_DRAWN, 2)).astype(np.float32)
    shown = MapView(places).shown(Window(0, 1, 0, 1))
    assert sorted(shown.rows) == list(range(MAX_DRAWN)), "those outside of the window, too: it may be moved"
    assert shown.density is None


def test_songs_without_a_place_are_left_out(rng):
    places = rng.normal(size=(50, 2)).astype(np.float32)
    places[7:9] = np.nan
    view = MapView(places)
    assert sorted(view.shown().rows) == [row for row in range(50) if row not in (7, 8)]
    assert MapView(np.full((3, 2), np.nan, dtype=np.float32)).shown().n_here == 0
    assert len(MapView(np.empty((0, 2), dtype=np.float32)).inside([0, 1, 1], [0, 0, 1])) == 0


def test_a_sample_is_drawn_once_and_for_all(places):
    one, other = MapView(places), MapView(places)
    np.testing.assert_array_equal(one.shown().rows, other.shown().rows)
    assert len(set(one.shown().rows.tolist())) == SAMPLE
    assert not np.array_equal(one.shown().rows, MapView(places, random_state=1).shown().rows)


def test_crowds_are_thinned_out_and_no_region_is_bare(places):
    rows = MapView(places).shown().rows
    n = len(places)
    assert set(rows.tolist()) & set(range(n - 5, n)), "the five far off have a point"
    share = {
        name: np.isin(part, rows).mean()
        for name, part in (
            ("crowded", np.arange(n - n // 10 - 5)),
            ("thin", np.arange(n - n // 10 - 5, n - 5)),
        )
    }
    assert share["thin"] > 2 * share["crowded"]
    assert share["crowded"] > 0.05


def test_every_cell_of_the_coarse_grid_has_a_point(rng):
    places = rng.uniform(0, 1, (200_000, 2)).astype(np.float32)
    view = MapView(places)
    home = view.home
    low, extent = [home.left, home.bottom], [home.right - home.left, home.top - home.bottom]
    cells = [tuple(cell) for cell in np.floor(64 * (places.astype(float) - low) / extent).tolist()]
    drawn = view.shown().rows
    assert len(drawn) == SAMPLE
    assert {cells[row] for row in drawn} == set(cells)


def test_a_window_with_few_songs_shows_all_of_them(places):
    window = Window(-0.2, 0.2, -0.2, 0.2)
    shown = MapView(places).shown(window)
    assert 0 < shown.n_here <= SAMPLE
    np.testing.assert_array_equal(np.sort(shown.rows), within(places, window))
    assert shown.density is None


def test_looking_closer_keeps_the_points_and_adds_others(places):
    view = MapView(places)
    window = Window(-3, 0.5, -3, 3)
    before = set(view.shown().rows.tolist()) & set(within(places, window).tolist())
    shown = view.shown(window)
    assert shown.n_here == len(within(places, window)) > SAMPLE
    assert before < set(shown.rows.tolist())
    assert len(shown.rows) == SAMPLE


def test_the_density_follows_the_counts(rng):
    # three squares of 1 x 1, the second with ten times as many songs as the first, the third without any
    left, right = rng.uniform(0, 1, (3_000, 2)), rng.uniform((2, 0), (3, 1), (30_000, 2))
    view = MapView(np.vstack([left, right, [[5.0, 0.5]]]).astype(np.float32))
    shown = view.shown()
    assert shown.behind == view.home
    height, width = shown.density.shape

    def at(x: float, y: float) -> np.ndarray:
        column = int(width * (x - view.home.left) / (view.home.right - view.home.left))
        line = int(
            height * (view.home.top - y) / (view.home.top - view.home.bottom)
        )  # the first line is the top
        return shown.density[line - 20 : line + 20, column - 20 : column + 20]

    assert at(3.7, 0.5).max() == 0
    # c and 10 c songs a cell; the logarithm of a smoothed count is not that of its mean: half of it as tolerance
    c = 3_000 * (view.home.right - view.home.left) * (view.home.top - view.home.bottom) / (height * width)
    assert at(0.5, 0.5).mean() / at(2.5, 0.5).mean() == pytest.approx(np.log1p(c) / np.log1p(10 * c), rel=0.5)
    assert at(2.5, 0.5).mean() > 100


def test_the_density_has_the_top_of_the_map_on_top(rng):
    places = np.vstack([rng.normal((0, 10), 0.3, (25_000, 2)), [[-12, -10], [12, -10]]]).astype(np.float32)
    density = MapView(places).shown().density
    half = len(density) // 2
    assert density[:half].sum() > 100 * density[half:].sum()


def ray_count(point: np.ndarray, x: np.ndarray, y: np.ndarray) -> bool:
    """Whether a point is inside of an outline, edge by edge, by the definition of the even-odd rule."""
    n, odd = len(x), False
    for i in range(n):
        j = (i + 1) % n
        if (y[i] > point[1]) != (y[j] > point[1]):
            at = x[i] + (point[1] - y[i]) * (x[j] - x[i]) / (y[j] - y[i])
            odd ^= bool(point[0] < at)
    return odd


def test_an_outline_holds_what_a_ray_says(rng):
    places = rng.uniform(-1, 1, (2_000, 2)).astype(np.float32)
    places[5] = np.nan
    view = MapView(places)
    for corners in (3, 4, 40):
        x, y = rng.uniform(-1, 1, (2, corners))  # it crosses itself
        true = [row for row, p in enumerate(places.astype(float)) if row != 5 and ray_count(p, x, y)]
        assert sorted(view.inside(x.tolist(), y.tolist())) == true


def test_an_outline_holds_more_than_the_sample(places):
    view = MapView(places)
    turn = np.linspace(0, 2 * np.pi, 200, endpoint=False)
    rows = view.inside((2 * np.cos(turn)).tolist(), (2 * np.sin(turn)).tolist())
    inner = np.flatnonzero(np.hypot(*places.T.astype(float)) < 2 * np.cos(np.pi / 200))
    outer = np.flatnonzero(np.hypot(*places.T.astype(float)) < 2)
    assert set(inner) <= set(rows) <= set(outer)
    assert len(rows) > SAMPLE
    drawn = np.isin(view.shown().rows, rows).sum()
    assert set(rows[:drawn]) <= set(view.shown().rows), "those that are drawn come first"


def test_flat_and_far_outlines_hold_nothing(places):
    view = MapView(places)
    assert len(view.inside([0, 1, 2], [0, 0, 0])) == 0
    assert len(view.inside([100, 101, 101], [100, 100, 101])) == 0


def test_a_new_song_stands_amid_its_neighbours():
    places = np.array([[0, 0], [1, 0], [0, 1], [50, 50], [np.nan, np.nan]], dtype=np.float32)
    np.testing.assert_array_equal(place_by_neighbours(places, np.array([0, 1, 2])), [0, 0])
    np.testing.assert_array_equal(place_by_neighbours(places, np.array([4, 3])), [50, 50])
    assert np.isnan(place_by_neighbours(places, np.array([4]))).all()


@pytest.mark.parametrize(("n_songs", "is_unfolded"), [(MAX_DRAWN, True), (MAX_DRAWN + 1, False)])
def test_a_song_from_outside_is_placed_by_the_maps_own_method_until_that_takes_too_long(
    rng, n_songs, is_unfolded
):
    X = rng.normal(size=(n_songs, 2)).astype(np.float32)
    index = Neighbours(ExactIndex().fit(X), np.arange(n_songs))
    place = place_vector(X[0], 10 * X, index, lambda vectors: vectors - 100)
    expected = X[0] - 100 if is_unfolded else place_by_neighbours(10 * X, index.query(X[:1], 10)[1][0])
    np.testing.assert_array_equal(place, expected)


def test_what_was_made_of_an_array_is_made_once_and_the_oldest_goes():
    made = []

    def make(source: np.ndarray, by: str) -> str:
        made.append(by)
        return f"{by} of {len(source)}"

    kept, one = OncePer(make, most=2), np.zeros(3)
    assert [kept(one, "a"), kept(one, "a"), kept(one, "b")] == ["a of 3", "a of 3", "b of 3"]
    assert made == ["a", "b"]
    kept(np.zeros(3), "c")
    kept(one, "b")
    kept(one, "a")
    assert made == ["a", "b", "c", "a"], "the oldest one had gone"


@pytest.mark.parametrize("high", [0.0, 1e-320])
def test_a_window_without_extent_shows_the_songs_that_stand_there(high):
    places = np.zeros((MAX_DRAWN + 1, 2), dtype=np.float32)
    shown = MapView(places).shown(Window(0, high, 0, high))
    assert (len(shown.rows), shown.n_here) == (SAMPLE, MAX_DRAWN + 1)
    assert shown.density is not None
    assert shown.density.max() == 255
