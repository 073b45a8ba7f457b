"""A library too large to be drawn, in the browser: a sample before its density, and the songs of where one looks."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from benchmarks.large_library import write_library
from musicsim.explorer.snapshot.map_view import SAMPLE
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.library import Library
from tests.browser.actions import APP, click_song, lasso, map_range, rows, visit, wait_for_map, zoom
from tests.browser.serving import serve

pytestmark = [pytest.mark.browser, pytest.mark.slow]

N_SONGS = 60_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """The library of the benchmark of a million songs with fewer of them, so that it is written in seconds."""
    folder = tmp_path_factory.mktemp("large") / "library"
    library = write_library(folder, N_SONGS)
    take_snapshot(library).columns  # noqa: B018  # what the service keeps of a library it reads once
    library.close()
    return folder


@pytest.fixture(scope="module")
def address(folder) -> Iterator[str]:
    with serve(APP, environment={"MUSICSIM_LIBRARY": str(folder)}) as address:
        yield address


def points(plot) -> dict[int, list[float]]:
    """Places of the songs that are points, by id; rings are not asked for."""
    found = plot.evaluate(
        """p => p._fullData.filter(t => t.customdata && !['found', 'chosen'].includes(t.name))
            .flatMap(t => Array.from(t.customdata).map((id, i) => [id, t.x[i], t.y[i]]))"""
    )
    return {int(song_id): [x, y] for song_id, x, y in found}


def wait_for_points(page: Page, plot, previous: dict) -> dict[int, list[float]]:
    """The points once others than those before have come."""
    page.wait_for_function(
        """([p, n, first]) => {
            const ids = p._fullData.filter(t => t.customdata && !['found', 'chosen'].includes(t.name))
                .flatMap(t => Array.from(t.customdata));
            return ids.length !== n || !ids.includes(first);
        }""",
        arg=[plot.element_handle(), len(previous), min(previous, key=lambda i: previous[i])],
    )
    return points(plot)


def n_of(page: Page, pattern: str) -> int:
    """The number that a sentence on the page says."""
    said = page.get_by_text(re.compile(pattern))
    expect(said).to_be_visible()
    return int(re.search(pattern, said.inner_text()).group(1).replace(",", ""))


def test_the_page_never_sends_all_songs(page, address):
    sent: list[int] = []
    page.on("websocket", lambda socket: socket.on("framereceived", lambda data: sent.append(len(data))))
    visit(page, address)
    plot = wait_for_map(page)
    assert len(points(plot)) == SAMPLE
    assert n_of(page, rf"{SAMPLE:,} of the ([\d,]+) songs are shown as points") == N_SONGS
    assert plot.evaluate("p => p._fullLayout.images.length") == 1
    assert sum(sent) < 2_000_000


def look_into(page: Page, plot, low: float, high: float) -> list[float]:
    """Zoom into a square of the plot, given in shares of its width and height; give what is looked at then."""
    page.locator(".modebar-btn[data-val=zoom]").click(force=True)
    before, box = map_range(plot), plot.bounding_box()
    page.mouse.move(box["x"] + low * box["width"], box["y"] + low * box["height"])
    page.mouse.down()
    page.mouse.move(box["x"] + high * box["width"], box["y"] + high * box["height"], steps=5)
    page.mouse.up()
    page.wait_for_function(
        "([p, before]) => p._fullLayout.xaxis.range[0] > before[0]", arg=[plot.element_handle(), before]
    )
    page.wait_for_timeout(500)  # plotly moves there
    return map_range(plot)


def test_looking_closer_brings_the_songs_that_are_there(page, address, folder):
    visit(page, address)
    plot = wait_for_map(page)
    whole, home = points(plot), map_range(plot)
    seen = look_into(page, plot, 0.2, 0.7)
    closer = wait_for_points(page, plot, whole)
    assert map_range(plot) == seen, "new points move nothing"
    assert len(closer) == SAMPLE < n_of(page, r"of the ([\d,]+) songs in view are shown as points")
    left, right, bottom, top = seen
    assert {i for i, (x, y) in whole.items() if left < x < right and bottom < y < top} < set(closer)

    seen = look_into(page, plot, 0.4, 0.6)
    closest = wait_for_points(page, plot, closer)
    assert map_range(plot) == seen
    assert n_of(page, r"All ([\d,]+) songs in view are shown as points") == len(closest) > 0
    left, right, bottom, top = seen
    with Library.open(folder) as library:
        now = take_snapshot(library)
        x, y = now.map.T
        inside = (x >= left) & (x <= right) & (y >= bottom) & (y <= top)
        assert set(closest) == set(now.row_ids[inside].tolist())
    assert plot.evaluate("p => p._fullLayout.images.length") == 0

    page.locator(".modebar-btn[data-val=reset]").click(force=True)
    assert wait_for_points(page, plot, closest) == whole
    assert map_range(plot) == home


def test_a_song_that_is_no_point_is_found_and_marked(page, address, folder):
    visit(page, address)
    plot = wait_for_map(page)
    seen = zoom(page, plot, 1)
    drawn = points(plot)
    with Library.open(folder) as library:
        songs = library.songs(range(1, 200))
    song = next(s for s in songs if s.id not in drawn and s.artist)
    page.get_by_role("combobox", name="Search").fill(song.title)
    page.get_by_role("option", name=re.compile(f"{re.escape(song.title)} {re.escape(song.by)}")).first.click()
    expect(page.get_by_role("heading", name=song.title, exact=True)).to_be_visible()
    expect(rows(page)).to_have_count(10)
    page.wait_for_function("p => p._fullData.some(t => t.name === 'chosen')", arg=plot.element_handle())
    assert map_range(plot) == seen
    assert plot.evaluate("p => Array.from(p._fullData.find(t => t.name === 'found').customdata).length") == 10


def test_a_point_is_chosen_and_a_lasso_takes_those_that_are_none(page, address, folder):
    visit(page, address)
    plot = wait_for_map(page)
    drawn = points(plot)
    topmost = max(drawn, key=lambda song_id: drawn[song_id][1])  # nothing lies over it
    click_song(page, plot, topmost)
    with Library.open(folder) as library:
        (song,) = library.songs([topmost])
    expect(page.get_by_role("heading", name=song.title, exact=True)).to_be_visible()
    lasso(page, plot, [(0.3, 0.2), (0.7, 0.2), (0.7, 0.6), (0.3, 0.6)])
    n_marked = n_of(page, r"([\d,]+) songs marked")
    assert n_marked > SAMPLE
    expect(page.get_by_text("2,000 shown with a ring.")).to_be_visible()
    expect(page.get_by_role("button", name="Play 500 of them")).to_be_visible()


def test_artists_are_found_for_a_filter_one_by_one(page, address, folder):
    with Library.open(folder) as library:
        now = take_snapshot(library)
        names = now.columns.artist.names
        chosen = sorted({song.artist for song in now.songs_at([5, 500]) if song.artist})
    assert len(names) > 1_000
    visit(page, address, "search", "?song=1")
    expect(rows(page)).to_have_count(10)
    page.get_by_role("button", name="Filters").click()
    box = page.get_by_role("combobox", name="Artists", exact=True)
    for n, name in enumerate(chosen, start=1):
        box.fill(name)
        page.get_by_role("option", name=name, exact=True).click()
        expect(page.get_by_role("button", name=f"Remove {name}")).to_be_visible()
        expect(rows(page)).to_have_count(2 * n)
    page.get_by_role("button", name=f"Remove {chosen[0]}").click()
    expect(rows(page)).to_have_count(2)
