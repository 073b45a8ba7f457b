"""The map in a real browser: what is drawn, clicked, encircled and isolated, by mouse, keys and fingers."""

import csv
import io
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Page, expect

from musicsim.library import Library
from tests.browser.actions import (
    IDLE,
    map_range,
    outline,
    place_of,
    player_plays,
    rows,
    songs_of,
    visit,
    wait_for_map,
    wait_for_mark,
)

SVG = "{http://www.w3.org/2000/svg}"
ALL = [(0.01, 0.01), (0.99, 0.01), (0.99, 0.99), (0.01, 0.99)]


def colours_seen(page: Page, drawn, ids: list[int]) -> list[tuple[int, ...]]:
    """The colour on the screen where each song's point is."""
    page.mouse.move(1, 1)
    page.wait_for_timeout(300)
    image = np.asarray(Image.open(io.BytesIO(page.screenshot())).convert("RGB")).astype(int)
    return [tuple(image[round(y), round(x)].tolist()) for x, y in (place_of(drawn, i) for i in ids)]


def entry_colours(drawn) -> dict[str, tuple[int, ...]]:
    """The colour of each entry of the legend, as it is said."""
    said = drawn.evaluate("({map}) => map.colours.entries.filter(e => e.n_songs).map(e => [e.name, e.colour])")
    return {name: tuple(int(colour[k : k + 2], 16) for k in (1, 3, 5)) for name, colour in said}


def is_like(seen: tuple[int, ...], said: tuple[int, ...]) -> bool:
    """Whether a colour is that of the legend: points let through 0.15 of a light page, at most 38 of 255."""
    return bool(np.abs(np.array(seen) - np.array(said)).max() < 45)


def test_every_song_is_a_point_of_its_genres_colour(page, address, home):
    visit(page, address)
    drawn = wait_for_map(page)
    expect(drawn).to_have_attribute("data-renderer", "canvas")
    drawn.get_by_role("button", name="Names of regions").click()
    songs, said = songs_of(home), entry_colours(drawn)
    seen = colours_seen(page, drawn, [song.id for song in songs])
    wrong = [s.title for s, colour in zip(songs, seen, strict=True) if not is_like(colour, said[s.genre])]
    assert not wrong


def test_a_click_on_the_legend_isolates_and_the_lasso_takes_what_is_left(page, address, home):
    visit(page, address)
    drawn = wait_for_map(page)
    songs, said = songs_of(home), entry_colours(drawn)
    drawn.get_by_role("button", name="Names of regions").click()

    def shown() -> set[str]:
        seen = colours_seen(page, drawn, [song.id for song in songs])
        return {s.genre for s, colour in zip(songs, seen, strict=True) if is_like(colour, said[s.genre])}

    entry = drawn.locator(".legend").get_by_role("button", name="Genre noise")
    entry.click()
    expect(entry).to_have_attribute("aria-pressed", "true")
    assert shown() == {"Genre noise"}
    outline(page, drawn, ALL)
    expect(page.get_by_role("heading", name="4 songs marked")).to_be_visible()
    page.get_by_role("button", name="Clear", exact=True).click()
    expect(page.get_by_role("heading", name="4 songs marked")).to_have_count(0)
    drawn.locator(".legend").get_by_role("button", name="Genre tones").click(modifiers=["Shift"])
    assert shown() == {"Genre noise", "Genre tones"}
    drawn.locator(".stage").focus()
    page.keyboard.press("Escape")
    assert len(shown()) == 3


def test_a_rectangle_marks_songs_that_are_then_tagged_and_handed_out(page, address, home):
    visit(page, address)
    drawn = wait_for_map(page)
    outline(page, drawn, [(0.01, 0.01), (0.99, 0.99)], "Rectangle")
    expect(page.get_by_role("heading", name="12 songs marked")).to_be_visible()
    wait_for_mark(page, drawn, "found", 12)
    page.get_by_text("Table, export and tag").click()
    page.wait_for_selector(IDLE)
    with page.expect_download() as download:
        page.get_by_role("button", name="Download as CSV").click()
    with open(download.value.path(), newline="", encoding="utf-8") as file:
        assert {row["title"] for row in csv.DictReader(file)} == {song.title for song in songs_of(home)}
    page.get_by_role("textbox", name="Tag").fill("mine")
    page.get_by_role("textbox", name="Tag").press("Enter")
    page.get_by_role("button", name="Add tag").click()
    expect(page.get_by_text("12 songs have the tag")).to_be_visible()
    with Library.open(home / "library") as library:
        assert library.listening.tag_counts()["mine"] == 12


def test_the_map_is_saved_as_a_figure_with_every_song(page, address, home):
    visit(page, address)
    drawn = wait_for_map(page)
    saved = {}
    for kind in ("SVG", "PNG"):
        with page.expect_download() as download:
            page.get_by_role("button", name=f"Save as {kind}").click()
        saved[kind] = Path(download.value.path()).read_bytes()
    points = [path.get("d").count("M") for path in ElementTree.fromstring(saved["SVG"]).iter(f"{SVG}path")]
    assert sum(points) == len(songs_of(home))
    names = {text.text for text in ElementTree.fromstring(saved["SVG"]).iter(f"{SVG}text")}
    assert {"Genre noise", "Genre tones", "Genre clicks"} <= names
    image = np.asarray(Image.open(io.BytesIO(saved["PNG"])).convert("RGB")).astype(int).reshape(-1, 3)
    for colour in entry_colours(drawn).values():
        assert (np.abs(image - np.array(colour)).max(axis=1) < 45).any()


def test_arrow_keys_go_to_the_nearest_song_there_and_enter_plays_it(page, address, home):
    song = songs_of(home)[0]
    visit(page, address, query=f"?song={song.id}")
    drawn = wait_for_map(page)
    wait_for_mark(page, drawn, "chosen")
    ids = [s.id for s in songs_of(home)]
    places = {i: np.array(place_of(drawn, i)) for i in ids}
    # what lies within 45 degrees of the way, by the way and twice how far aside
    steps = {"ArrowRight": (1, 0), "ArrowLeft": (-1, 0), "ArrowDown": (0, 1), "ArrowUp": (0, -1)}
    at = song.id
    drawn.locator(".stage").focus()
    for key, way in steps.items():
        away = {i: places[i] - places[at] for i in ids if i != at}
        along = {i: float(d @ way) for i, d in away.items()}
        aside = {i: abs(float(d @ way[::-1])) for i, d in away.items()}
        there = [i for i in away if along[i] > 0.01 and aside[i] <= along[i]]
        at = min(there, key=lambda i: along[i] + 2 * aside[i], default=at)
        page.keyboard.press(key)
        page.wait_for_function(
            "([{map}, id]) => (map.at === null ? map.data.chosen : map.places.ids[map.at]) === id",
            arg=[drawn.element_handle(), at],
        )
    assert at != song.id
    (heard,) = (s for s in songs_of(home) if s.id == at)
    expect(drawn.get_by_role("application")).to_have_attribute(
        "aria-label", f"{heard.title}, {heard.by}. Arrow keys go to the next song, Enter plays."
    )
    page.keyboard.press("Enter")
    player_plays(page, at)
    expect(page.get_by_role("heading", name=heard.title)).to_be_visible()
    page.keyboard.press(" ")
    expect(page.get_by_test_id("player")).to_have_attribute("data-state", "paused")


def test_a_song_under_the_pointer_is_named_and_heard_if_asked_for(page, address, home):
    visit(page, address)
    drawn = wait_for_map(page)
    song = songs_of(home)[4]
    drawn.get_by_role("button", name="Play the song under the pointer").click()
    page.mouse.move(*place_of(drawn, song.id))
    expect(drawn.locator(".tip")).to_have_text(f"{song.title}{song.by}")
    player_plays(page, song.id)
    expect(page.get_by_text("Start here")).to_be_visible()


def test_places_are_not_sent_again(page, address, home):
    def transferred() -> int:
        visit(page, address)
        wait_for_map(page)
        return page.evaluate(
            "() => performance.getEntriesByType('resource').find(e => e.name.includes('/places')).transferSize"
        )

    head = 300  # bytes that Chromium counts for what comes before a body
    assert transferred() > head
    assert transferred() == head, "304"


def test_one_finger_scrolls_the_page_and_two_zoom_the_map(chromium, address):
    context = chromium.new_context(viewport={"width": 375, "height": 800}, has_touch=True)
    page = context.new_page()
    visit(page, address)
    drawn = wait_for_map(page)
    box, before = drawn.locator(".stage").bounding_box(), map_range(drawn)
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    session = context.new_cdp_session(page)

    def fingers(kind: str, *at: tuple[float, float]) -> None:
        points = [{"x": px, "y": py, "id": k} for k, (px, py) in enumerate(at)]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    fingers("touchStart", (x, y))
    for moved in (20, 60, 100):
        fingers("touchMove", (x, y - moved))
    fingers("touchEnd")
    assert map_range(drawn) == before
    touch_action = drawn.locator(".stage").evaluate("stage => getComputedStyle(stage).touchAction")
    assert touch_action == "pan-x pan-y"
    scrolled = page.get_by_test_id("stMain").evaluate("main => main.scrollTop")
    assert scrolled > 50
    page.wait_for_timeout(500)  # the page has come to rest, and its head may lie over the map
    drawn.locator(".stage").evaluate("stage => stage.scrollIntoView({block: 'center', behavior: 'instant'})")
    page.screenshot()  # a frame: until then fingers meet what was there before
    box = drawn.locator(".stage").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    fingers("touchStart", (x - 30, y), (x + 30, y))
    for apart in (40, 60, 80):
        fingers("touchMove", (x - apart, y), (x + apart, y))
    fingers("touchEnd")
    left, right, *_ = map_range(drawn)
    assert right - left < 0.6 * (before[1] - before[0])
    context.close()


@pytest.mark.parametrize("width", [1280, 2560])
def test_the_map_takes_the_window_and_the_list_folds_away(page, address, width):
    page.set_viewport_size({"width": width, "height": 1000})
    visit(page, address)
    drawn = wait_for_map(page)
    below = page.get_by_test_id("stBottom").bounding_box()["y"]
    box = drawn.bounding_box()
    assert below - 90 < box["y"] + box["height"] <= below
    drawn.get_by_role("button", name="Hide the list").click()
    page.wait_for_timeout(300)
    assert drawn.bounding_box()["width"] > 1.25 * box["width"]
    expect(rows(page)).to_have_count(0)
