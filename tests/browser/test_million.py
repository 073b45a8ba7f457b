"""A library too large to be drawn, in the browser: a sample before its density, and the songs of the visible part."""

import io
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Page, expect

from benchmarks.large_library import write_library
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.library import Library
from tests.browser.actions import (
    APP,
    click_song,
    map_range,
    nearest_rows,
    outline,
    show_all_tools,
    visit,
    wait_for_map,
    wait_for_mark,
    zoom,
)
from tests.browser.patient import new_context
from tests.browser.serving import serve
from tests.waiting import until

N_SONGS = 60_000
SAMPLE = 8_000
WITHOUT_WEBGL = """
    const context = HTMLCanvasElement.prototype.getContext;
    HTMLCanvasElement.prototype.getContext = function (kind, ...rest) {
        return kind.startsWith("webgl") ? null : context.call(this, kind, ...rest);
    };
"""
HOWEVER_SLOW = "window[Symbol.for('musicsim.map-max-frame-ms')] = Infinity"


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """The library of the benchmark of a million songs with fewer songs, so that it is written in seconds."""
    folder = tmp_path_factory.mktemp("large") / "library"
    library = write_library(folder, N_SONGS)
    take_snapshot(library).columns  # noqa: B018  # what the service keeps of a library it reads once
    library.close()
    return folder


@pytest.fixture(scope="module")
def address(folder) -> Iterator[str]:
    with serve(APP, environment={"MUSICSIM_LIBRARY": str(folder)}) as address:
        yield address


@pytest.fixture
def page(page) -> Page:
    """A page without WebGL: a sample is drawn, whatever this machine can do."""
    page.add_init_script(WITHOUT_WEBGL)
    return page


def points(drawn) -> set[int]:
    """Return the ids of the songs that are points."""
    return set(drawn.evaluate("({map}) => map.shown.rows.map(row => map.places.ids[row])"))


def wait_for_points(page: Page, drawn, previous: set[int]) -> set[int]:
    """Wait until the points have changed; return them."""
    page.wait_for_function(
        """([{map}, before]) => {
            const known = new Set(before);
            const ids = map.shown.rows.map(row => map.places.ids[row]);
            return map.painted === map.view && (ids.length !== known.size || ids.some(id => !known.has(id)));
        }""",
        arg=[drawn.element_handle(), list(previous)],
    )
    return points(drawn)


def n_of(page: Page, pattern: str) -> int:
    """Return the number in a sentence on the page."""
    said = page.get_by_text(re.compile(pattern))
    expect(said).to_be_visible()
    return int(re.search(pattern, said.inner_text()).group(1).replace(",", ""))


def density(drawn) -> float:
    """Return the share of the map's pixels that are neither empty nor a point: those of the density."""
    return drawn.evaluate(
        """({map: {canvas}}) => {
            const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
            let n = 0;
            for (let i = 3; i < data.length; i += 4) n += data[i] > 0 && data[i] < 120;
            return n / (canvas.width * canvas.height);
        }"""
    )


def test_map_shows_sample_over_density_without_sending_songs(page, address):
    sent: list[int] = []
    page.on("websocket", lambda socket: socket.on("framereceived", lambda data: sent.append(len(data))))
    visit(page, address)
    drawn = wait_for_map(page)
    expect(drawn).to_have_attribute("data-renderer", "canvas")
    assert len(points(drawn)) == SAMPLE
    assert n_of(page, rf"{SAMPLE:,} of the ([\d,]+) songs are shown as points") == N_SONGS
    assert density(drawn) > 0.1
    assert sum(sent) < 500_000


def test_webgl_draws_every_song(chromium, address):
    context = new_context(chromium, viewport={"width": 800, "height": 700})
    page = context.new_page()
    page.add_init_script(HOWEVER_SLOW)
    visit(page, address)
    drawn = wait_for_map(page)
    expect(drawn).to_have_attribute("data-renderer", "webgl")
    expect(drawn).to_have_attribute("data-points", str(N_SONGS))
    show_all_tools(drawn)
    drawn.get_by_role("button", name="Region names").click()
    colors = drawn.evaluate("({map}) => map.colors.entries.slice(0, 12).map(e => e.color)")

    def are_points() -> bool:
        """Return whether songs of every color are on the screen."""
        image = np.asarray(Image.open(io.BytesIO(drawn.locator(".stage").screenshot())).convert("RGB")).astype(int)
        values = (np.array([int(color[k : k + 2], 16) for k in (1, 3, 5)]) for color in colors)
        return all((np.abs(image - rgb).max(axis=2) < 45).sum() > 100 for rgb in values)

    until(are_points)
    context.close()


def test_zooming_in_loads_visible_songs(page, address, folder):
    visit(page, address)
    drawn = wait_for_map(page)
    whole, home = points(drawn), map_range(drawn)
    seen = zoom(page, drawn, 1)
    closer = wait_for_points(page, drawn, whole)
    assert map_range(drawn) == seen, "new points move nothing"
    assert len(closer) == SAMPLE < n_of(page, r"of the ([\d,]+) songs in view are shown as points")
    inside = drawn.evaluate(
        """({map: {places: {ids, x, y}}}, [left, right, bottom, top]) => Array.from(ids).filter((_, i) =>
            x[i] >= left * 65535 && x[i] <= right * 65535 && y[i] >= bottom * 65535 && y[i] <= top * 65535)""",
        seen,
    )
    assert whole & set(inside) <= closer <= set(inside), "points stay"
    zoom(page, drawn, 4)
    page.wait_for_function("({map}) => map.painted === map.view", arg=drawn.element_handle())
    closest = points(drawn)
    assert n_of(page, r"All ([\d,]+) songs in view are shown\.") == len(closest) > 0
    drawn.get_by_role("button", name="Whole map").click()
    assert wait_for_points(page, drawn, closest) == whole
    assert map_range(drawn) == home


def test_song_outside_sample_is_found_and_marked(page, address, folder):
    # the songs have no files, and a player that gets an answer tries the next ones
    page.route("**/songs/*/audio*", lambda route: None)
    visit(page, address)
    drawn = wait_for_map(page)
    seen = zoom(page, drawn, 1)
    known = points(drawn)
    with Library.open(folder) as library:
        songs = library.songs(range(1, 200))
    song = next(s for s in songs if s.id not in known and s.artist)
    page.get_by_role("combobox", name="Search").fill(song.title)
    page.get_by_role("option", name=re.compile(f"{re.escape(song.title)} {re.escape(song.by)}")).first.click()
    expect(page.get_by_role("heading", name=song.title, exact=True)).to_be_visible()
    expect(nearest_rows(page)).to_have_count(10)
    wait_for_mark(page, drawn, "chosen")
    wait_for_mark(page, drawn, "found", 10)
    assert map_range(drawn) == seen


def test_lasso_includes_songs_outside_sample(page, address, folder):
    visit(page, address)
    drawn = wait_for_map(page)
    lowest = drawn.evaluate(
        "({map: {shown, places}}) => places.ids[shown.rows.reduce((a, b) => places.y[a] < places.y[b] ? a : b)]"
    )  # nothing covers it
    click_song(page, drawn, lowest)
    expect(page).to_have_url(re.compile(rf"[?&]song={lowest}\b"))
    # the songs have no files, and the player tries ten of the queue
    expect(page.get_by_test_id("player")).to_have_attribute("data-state", "error")
    outline(page, drawn, [(0.3, 0.2), (0.7, 0.2), (0.7, 0.7), (0.3, 0.7)])
    n_marked = n_of(page, r"([\d,]+) songs marked")
    assert n_marked > SAMPLE
    page.get_by_role("button", name="songs marked").click()
    expect(page.get_by_role("button", name="Play 500 of them")).to_be_visible()


def test_artist_filter_is_filled_by_typing(page, address, folder):
    with Library.open(folder) as library:
        now = take_snapshot(library)
        names = now.columns.artist.names
        chosen = sorted({song.artist for song in now.songs_at([5, 500]) if song.artist})
    assert len(names) > 1_000
    visit(page, address, "listen", "?song=1")
    expect(nearest_rows(page)).to_have_count(10)
    page.get_by_role("button", name="Filters").click()
    box = page.get_by_role("combobox", name="Artists", exact=True)
    for n, name in enumerate(chosen, start=1):
        box.fill(name)
        page.get_by_role("option", name=name, exact=True).click()
        expect(page.get_by_role("button", name=f"Remove {name}")).to_be_visible()
        expect(nearest_rows(page)).to_have_count(2 * n)
    page.get_by_role("button", name=f"Remove {chosen[0]}").click()
    expect(nearest_rows(page)).to_have_count(2)
