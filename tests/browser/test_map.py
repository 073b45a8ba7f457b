"""The map in a real browser: drawing, clicks, outlines and isolation, by mouse, keys and touch."""

import csv
import io
import itertools
import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Page, expect

from musicsim.explorer.snapshot.map_contents import map_contents
from musicsim.explorer.snapshot.snapshot import take_snapshot
from musicsim.library import Library
from tests.browser.actions import (
    APP,
    click_song,
    hindrances,
    map_range,
    marked,
    outline,
    place_of,
    play_slowly,
    player_plays,
    show_all_tools,
    songs_of,
    visit,
    wait_for_map,
    wait_for_mark,
)
from tests.browser.patient import new_context
from tests.browser.serving import serve
from tests.waiting import until

SVG = "{http://www.w3.org/2000/svg}"
ALL = [(0.01, 0.01), (0.99, 0.01), (0.99, 0.99), (0.01, 0.99)]


def wait_for_frames(page: Page, n_frames: int = 2) -> None:
    """Wait until the browser has drawn some frames."""
    page.evaluate("""async n => { for (; n > 0; n--) await new Promise(requestAnimationFrame) }""", n_frames)


def wait_for_rest(page: Page) -> None:
    """Wait until the page scrolls no more."""

    def is_at_rest() -> bool:
        place = "main => main.scrollTop"
        before = page.get_by_test_id("stMain").evaluate(place)
        wait_for_frames(page, 10)
        return page.get_by_test_id("stMain").evaluate(place) == before

    until(is_at_rest)


def colors_seen(page: Page, drawn, ids: list[int]) -> list[tuple[int, ...]]:
    """Return the color on the screen at each song's point."""
    page.mouse.move(1, 1)
    wait_for_frames(page)
    image = np.asarray(Image.open(io.BytesIO(page.screenshot())).convert("RGB")).astype(int)
    return [tuple(image[round(y), round(x)].tolist()) for x, y in (place_of(drawn, i) for i in ids)]


def entry_colors(drawn) -> dict[str, tuple[int, ...]]:
    """Return the declared color of each entry of the legend."""
    said = drawn.evaluate("({map}) => map.colors.entries.filter(e => e.n_songs).map(e => [e.name, e.color])")
    return {name: tuple(int(color[k : k + 2], 16) for k in (1, 3, 5)) for name, color in said}


def is_like(seen: tuple[int, ...], said: tuple[int, ...]) -> bool:
    """Return whether a color is that of the legend: points let through 0.15 of a light page, at most 38 of 255."""
    return bool(np.abs(np.array(seen) - np.array(said)).max() < 45)


def test_every_song_has_color_of_its_genre(page, address, home):
    visit(page, address)
    drawn = wait_for_map(page)
    expect(drawn).to_have_attribute("data-renderer", "canvas")
    expect(drawn.locator("canvas.land")).to_have_attribute("data-state", "drawn")
    show_all_tools(drawn)
    drawn.get_by_role("button", name="Region names").click()
    songs, said = songs_of(home), entry_colors(drawn)
    seen = colors_seen(page, drawn, [song.id for song in songs])
    wrong = [s.title for s, color in zip(songs, seen, strict=True) if not is_like(color, said[s.genre])]
    assert not wrong


def test_tools_appear_under_the_mouse_and_with_the_keyboard(page, address):
    visit(page, address)
    drawn = wait_for_map(page)
    tools = drawn.locator(".tools")
    page.get_by_role("combobox", name="Search").hover()
    expect(tools).to_have_css("opacity", "0")
    drawn.hover()
    expect(tools).to_have_css("opacity", "1")
    page.get_by_role("combobox", name="Search").hover()
    expect(tools).to_have_css("opacity", "0")
    drawn.get_by_role("button", name="Zoom in").focus()
    expect(tools).to_have_css("opacity", "1")


def test_map_of_another_model_is_shown_and_closed(page, address):
    visit(page, address)
    drawn = wait_for_map(page)
    choice = page.get_by_role("combobox", name="Compare with model")
    expect(choice).to_be_hidden()
    show_all_tools(drawn)
    choice.select_option(index=1)
    expect(page.get_by_test_id("map")).to_have_count(2)
    page.get_by_role("button", name="Close this map").click()
    expect(page.get_by_test_id("map")).to_have_count(1)
    show_all_tools(drawn)
    expect(choice).to_have_value("")


def test_long_legend_shows_all_entries_with_a_button(page, tiny_library):
    for song in tiny_library.songs():
        tiny_library.edits.edit([song.id], {"genre": f"A genre with a long name {song.id:02}"})
    with serve(APP, environment={"MUSICSIM_LIBRARY": str(tiny_library.folder)}) as address:
        visit(page, address)
        legend = wait_for_map(page).locator(".legend")
        entries = legend.get_by_role("option")
        more = legend.get_by_role("button", name="more colors")
        expect(more).to_have_attribute("aria-expanded", "false")
        n_hidden = int((more.text_content() or "").split()[1])
        assert n_hidden > 0
        expect(entries).to_have_count(12 - n_hidden)
        last = entries.last
        last.focus()
        page.keyboard.press("ArrowRight")
        expect(last).to_be_focused()
        more.press("Enter")
        expect(entries).to_have_count(12)
        page.keyboard.press("Enter")
        expect(entries).to_have_count(12 - n_hidden)


def test_legend_click_isolates_genre_for_lasso(page, address, home):
    visit(page, address)
    drawn = wait_for_map(page)
    songs, said = songs_of(home), entry_colors(drawn)
    show_all_tools(drawn)
    drawn.get_by_role("button", name="Region names").click()

    def shown() -> set[str]:
        seen = colors_seen(page, drawn, [song.id for song in songs])
        return {s.genre for s, color in zip(songs, seen, strict=True) if is_like(color, said[s.genre])}

    entry = drawn.get_by_role("option", name="Genre noise")
    entry.click()
    expect(entry).to_have_attribute("aria-selected", "true")
    assert shown() == {"Genre noise"}
    outline(page, drawn, ALL)
    marked(page, 4).click()
    page.get_by_role("button", name="Clear", exact=True).click()
    expect(marked(page, 4)).to_be_hidden()
    entry.press("ArrowRight")
    other = drawn.get_by_role("option", name="Genre tones")
    other.press("Shift+Enter")
    assert shown() == {"Genre noise", "Genre tones"}
    drawn.locator(".stage").focus()
    page.keyboard.press("Escape")
    assert len(shown()) == 3


def test_rectangle_marks_songs_to_tag_and_export(page, address, home):
    visit(page, address)
    drawn = wait_for_map(page)
    outline(page, drawn, [(0.01, 0.01), (0.99, 0.99)], "Select a rectangle")
    expect(marked(page, 12)).to_be_visible()
    assert not page.evaluate("getSelection().toString()"), "a drag on the map selects no text"
    wait_for_mark(page, drawn, "found", 12)
    marked(page, 12).click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download as CSV").click()
    with open(download.value.path(), newline="", encoding="utf-8") as file:
        assert {row["title"] for row in csv.DictReader(file)} == {song.title for song in songs_of(home)}
    marked(page, 12).click()
    page.get_by_role("textbox", name="Tag").fill("mine")
    page.get_by_role("button", name="Add tag").click()
    expect(page.get_by_text("12 songs have the tag")).to_be_visible()
    with Library.open(home / "library") as library:
        assert library.listening.tag_counts()["mine"] == 12


def test_saved_map_figure_has_every_song(page, address, home):
    visit(page, address)
    drawn = wait_for_map(page)
    saved = {}
    for kind in ("SVG", "PNG"):
        show_all_tools(drawn)
        with page.expect_download() as download:
            page.get_by_role("button", name=f"Save as {kind}").click()
        saved[kind] = Path(download.value.path()).read_bytes()
    points = [path.get("d").count("M") for path in ElementTree.fromstring(saved["SVG"]).iter(f"{SVG}path")]
    assert sum(points) == len(songs_of(home))
    names = {text.text for text in ElementTree.fromstring(saved["SVG"]).iter(f"{SVG}text")}
    assert {"Genre noise", "Genre tones", "Genre clicks"} <= names
    image = np.asarray(Image.open(io.BytesIO(saved["PNG"])).convert("RGB")).astype(int).reshape(-1, 3)
    for color in entry_colors(drawn).values():
        assert (np.abs(image - np.array(color)).max(axis=1) < 45).any()


def test_arrow_keys_move_to_nearest_song_and_enter_plays(page, address, home):
    song = songs_of(home)[0]
    visit(page, address, query=f"?song={song.id}")
    drawn = wait_for_map(page)
    wait_for_mark(page, drawn, "chosen")
    ids = [s.id for s in songs_of(home)]
    places = {i: np.array(place_of(drawn, i)) for i in ids}
    # points within 45 degrees of the direction, by the distance along it plus twice the distance aside
    steps = {"ArrowRight": (1, 0), "ArrowLeft": (-1, 0), "ArrowDown": (0, 1), "ArrowUp": (0, -1)}
    at, visited = song.id, set()
    drawn.locator(".stage").focus()
    for key, way in steps.items():
        away = {i: places[i] - places[at] for i in ids if i != at}
        along = {i: float(d @ way) for i, d in away.items()}
        aside = {i: abs(float(d @ way[::-1])) for i, d in away.items()}
        there = [i for i in away if along[i] > 0.01 and aside[i] <= along[i]]
        at = min(there, key=lambda i: along[i] + 2 * aside[i], default=at)
        visited.add(at)
        page.keyboard.press(key)
        page.wait_for_function(
            "([{map}, id]) => (map.at === null ? map.data.chosen : map.places.ids[map.at]) === id",
            arg=[drawn.element_handle(), at],
        )
    assert visited - {song.id}, "no arrow key moved"
    (heard,) = (s for s in songs_of(home) if s.id == at)
    expect(drawn.get_by_role("application")).to_have_attribute(
        "aria-label", f"{heard.title}, {heard.by}. Arrow keys move from song to song; Enter plays the song."
    )
    page.keyboard.press("Enter")
    player_plays(page, at)
    expect(page.get_by_role("heading", name=heard.title)).to_be_visible()
    page.keyboard.press(" ")
    expect(page.get_by_test_id("player")).to_have_attribute("data-state", "paused")


def test_hovered_song_is_named_and_optionally_heard_while_the_queue_waits(page, address, home):
    queued, song = songs_of(home)[0], songs_of(home)[4]
    play_slowly(page)
    visit(page, address)
    drawn = wait_for_map(page)
    click_song(page, drawn, queued.id)
    player_plays(page, queued.id)
    page.mouse.move(*place_of(drawn, song.id))
    expect(drawn.locator(".tip")).to_have_text(f"{song.title}{song.by}")
    expect(drawn.locator(".tip img")).to_have_js_property("complete", True)
    show_all_tools(drawn)
    drawn.get_by_role("button", name="Play on hover").click()
    page.mouse.move(*place_of(drawn, song.id))
    heard = page.get_by_test_id("preview-audio")
    expect(heard).to_have_js_property("paused", False)
    assert f"/songs/{song.id}/audio" in heard.evaluate("sound => sound.src")
    expect(page.get_by_test_id("player")).to_have_attribute("data-state", "paused")
    page.get_by_role("combobox", name="Search").hover()
    expect(heard).to_have_js_property("paused", True)
    player_plays(page, queued.id)
    page.mouse.move(*place_of(drawn, song.id))
    expect(heard).to_have_js_property("paused", False)
    page.mouse.down()
    page.mouse.up()
    player_plays(page, song.id)
    page.get_by_role("combobox", name="Search").hover()
    expect(heard).to_have_js_property("paused", True)
    player_plays(page, song.id)
    page.reload()
    show_all_tools(wait_for_map(page))
    expect(drawn.get_by_role("button", name="Play on hover")).to_have_attribute("aria-pressed", "true")


def shown_songs(drawn) -> list[int]:
    return drawn.evaluate("({map}) => [...map.places.ids].filter((_, row) => map.isShown(row))")


def test_contents_play_typical_songs_and_show_them_alone(page, address, home):
    with Library.open(home / "library") as library:
        now = take_snapshot(library)
        found = map_contents(now)
    (code, group) = next((i, one) for i, one in enumerate(found.regions[-1].groups) if one.name == "Genre noise")
    code += sum(len(one.groups) for one in found.regions[:-1])
    visit(page, address)
    drawn = wait_for_map(page)
    drawn.hover()
    opener = drawn.get_by_role("button", name="Contents", exact=True)
    opener.click()
    expect(opener).to_have_attribute("aria-expanded", "true")
    tree = drawn.get_by_role("tree", name="Contents of the map")
    region = tree.get_by_role("treeitem", name="other songs")
    item = region.get_by_role("treeitem", name="Genre noise, 4 songs")
    tree.get_by_role("treeitem").first.focus()
    expect(item).to_be_hidden()
    for key in ("End", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    expect(region).to_have_attribute("aria-expanded", "true")
    page.keyboard.type("genre n")
    expect(item).to_be_focused()
    assert not hindrances(page)
    for song_id in group.typical[:2]:
        page.keyboard.press("Enter")
        player_plays(page, song_id)
        expect(item).to_have_attribute("aria-selected", "true")
        assert set(shown_songs(drawn)) == set(now.row_ids[found.codes == code].tolist())
    page.keyboard.press("Escape")
    expect(opener).to_be_focused()
    expect(tree).to_be_hidden()
    assert len(shown_songs(drawn)) == 12
    page.reload()
    wait_for_map(page)
    expect(tree).to_be_hidden()


def test_covers_replace_points_at_high_zoom_and_the_map_goes_to_the_current_song(page, address, home):
    songs = songs_of(home)
    play_slowly(page)
    visit(page, address)
    drawn = wait_for_map(page)
    expect(drawn).to_have_attribute("data-covers", "0")
    click_song(page, drawn, songs[0].id)
    wait_for_mark(page, drawn, "chosen")
    go = drawn.get_by_role("button", name="Current song")
    expect(go).to_be_hidden()
    drawn.evaluate("({map}) => map.look({x: 5, y: 5, zoom: 60})")  # no song is there
    expect(drawn).to_have_attribute("data-covers", "0")
    go.click()
    expect(go).to_be_hidden()
    expect(drawn).not_to_have_attribute("data-covers", "0")
    drawn.get_by_role("button", name="Whole map").click()
    expect(drawn).to_have_attribute("data-covers", "0")


def test_positions_are_cached_by_browser(page, address, home):
    def transferred() -> int:
        visit(page, address)
        wait_for_map(page)
        return page.evaluate(
            "() => performance.getEntriesByType('resource').find(e => e.name.includes('/places')).transferSize"
        )

    head = 300  # bytes that Chromium counts for the response headers
    assert transferred() > head
    assert transferred() == head, "304"


def test_map_is_drawn_if_library_changes_between_answers(page, address):
    n_answers = itertools.count(1)

    def answer_for_other_songs_once(route):
        answer = route.fetch()
        body = answer.body()
        if next(n_answers) == 1:
            order = json.loads(body[: body.index(b"\n")])["order"].encode()
            body = body.replace(order, order[::-1], 1)
        route.fulfill(status=200, body=body)

    page.route("**/maps/*/places?*", answer_for_other_songs_once)
    visit(page, address)
    wait_for_map(page)
    assert next(n_answers) > 2


def test_one_finger_scrolls_page_and_two_zoom_map(chromium, address):
    context = new_context(chromium, viewport={"width": 375, "height": 560}, has_touch=True)
    page = context.new_page()
    visit(page, address)
    page.get_by_role("radio", name="Map").check()
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
    wait_for_rest(page)  # the header may cover the map
    drawn.locator(".stage").evaluate("stage => stage.scrollIntoView({block: 'center', behavior: 'instant'})")
    page.screenshot()  # wait for a frame: until then touches reach the old content
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
def test_map_fills_window_and_list_collapses(page, address, width):
    page.set_viewport_size({"width": width, "height": 1000})
    visit(page, address)
    drawn = wait_for_map(page)
    below = page.get_by_test_id("stBottom").bounding_box()["y"]
    box = drawn.bounding_box()
    assert below - 90 < box["y"] + box["height"] <= below
    show_all_tools(drawn)
    drawn.get_by_role("button", name="Hide the list").click()
    until(lambda: drawn.bounding_box()["width"] > 1.25 * box["width"])
    expect(page.get_by_text("Start here")).to_be_hidden()
