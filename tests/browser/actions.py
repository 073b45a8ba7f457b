"""Actions on the pages and checks of their content, in a real browser."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from musicsim.library import Library

APP = Path(__file__).parents[2] / "app.py"
IDLE = "[data-testid=stApp][data-test-script-state=notRunning]"


PAGES = {"listen": "Listen", "playlist": "Playlists", "train": "Teach", "library": "Library", "research": "Research"}


def visit(page: Page, address: str, name: str = "listen", query: str = "") -> None:
    page.goto(f"{address}/{'' if name == 'listen' else name}{query}", wait_until="commit")
    expect(page.get_by_role("heading", name=PAGES[name], exact=True)).to_be_visible()


def switch(page: Page, name: str) -> None:
    """Move to another page by the navigation."""
    page.get_by_test_id("stSidebarNavLink").filter(has_text=PAGES[name]).click()
    expect(page.get_by_role("heading", name=PAGES[name], exact=True)).to_be_visible()


# Ends with the animations, except endless ones, and two frames later: the event of a scroll comes with the next frame.
_WAIT_FOR_REST = """
async () => {
    const ending = document.getAnimations().filter(a => a.effect.getComputedTiming().endTime < Infinity);
    await Promise.allSettled(ending.map(a => a.finished));
    await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
}"""


def choose(page: Page, name: str | re.Pattern[str], option: str | re.Pattern[str]) -> None:
    """Choose an option of a selectbox once the page is complete and at rest.

    An open list closes if anything around it scrolls, such as an expander while it opens.
    The click is that of a screen reader: a list that moves while the mouse is down ignores the mouse.
    """
    box = page.get_by_role("combobox", name=name)
    expect(box).to_be_visible()
    page.wait_for_selector(IDLE)
    box.scroll_into_view_if_needed()
    page.evaluate(_WAIT_FOR_REST)
    box.click()
    page.get_by_role("option", name=option, exact=isinstance(option, str)).dispatch_event("click")


def show_tab(page: Page, section: str, title: str = "") -> None:
    """Open a section of a page once the page is complete, and one of its tabs."""
    page.wait_for_selector(IDLE)
    page.get_by_test_id("stButtonGroup").first.get_by_text(section, exact=True).click()
    if title:
        choose(page, section, title)


def open_measurement(page: Page, title: str) -> None:
    """Open a sub-page that the overview of Research lists under “More measurements”."""
    page.wait_for_selector(IDLE)
    page.get_by_text(re.compile("^More measurements")).click()
    page.get_by_role("button", name=title).click()
    expect(page.get_by_role("heading", name=title, exact=True)).to_be_visible()


def open_details(page: Page) -> None:
    """Open the details of other teachers on the Teach page, unless they are open."""
    page.wait_for_selector(IDLE)
    if not page.locator(".st-key-train_start").count():
        page.get_by_text("Details", exact=True).click()
    expect(page.locator(".st-key-train_start button")).to_be_visible()


def learn_from(page: Page, source: str) -> None:
    """Open the details of other teachers on the Teach page, and choose a source."""
    open_details(page)
    choose(page, "Learn from", re.compile(source))
    page.wait_for_selector(IDLE)


def train_a_ranking(page: Page) -> None:
    """Start a training that always ends with a model; the automatic method may keep the sound alone."""
    open_details(page)
    choose(page, re.compile("Method"), re.compile("A ranking"))
    page.wait_for_selector(IDLE)
    page.locator(".st-key-train_start button:visible").first.click()


def wait_for_map(page: Page):
    """Return the map, once its points are drawn."""
    drawn = page.locator("[data-testid=map][data-state=drawn]").first
    drawn.wait_for()
    return drawn


def names_on_map(drawn) -> list[str]:
    """Return entries of the legend and kinds of marks, with their numbers of songs."""
    return drawn.evaluate(
        """({map}) => [
            ...map.colors.entries.filter(e => e.name && e.n_songs).map(e => `${e.name}:${e.n_songs}`),
            ...Object.entries(map.marks).filter(([, rows]) => rows.length).map(([k, rows]) => `${k}:${rows.length}`),
            ...(map.data.query ? ["star:1"] : []),
        ]"""
    )


def wait_for_mark(page: Page, drawn, name: str, n: int = 1) -> None:
    """Wait until this many songs are marked as chosen or found."""
    page.wait_for_function("([{map}, name, n]) => map.marks[name].length === n", arg=[drawn.element_handle(), name, n])


def place_of(drawn, song_id: int) -> tuple[float, float]:
    """Return the position of a song's point in the window, in pixels."""
    x, y = drawn.evaluate(
        """({map}, id) => {
            const box = map.stage.getBoundingClientRect();
            const [x, y] = map.pixelsOf(map.rowOf(id));
            return [box.x + x, box.y + y];
        }""",
        song_id,
    )
    return x, y


def show_all_tools(drawn) -> None:
    """Show the rarely used tools of a map."""
    drawn.get_by_role("button", name="More tools").click()


def click_song(page: Page, drawn, song_id: int) -> None:
    page.mouse.click(*place_of(drawn, song_id))


# A song of 20 s could end while a busy machine is between two steps of a test.
_SLOW_SOUND = """
const create = Document.prototype.createElement;
Document.prototype.createElement = function (...args) {
  const made = create.apply(this, args);
  if (made instanceof HTMLAudioElement) made.defaultPlaybackRate = made.playbackRate = 1 / 16;
  return made;
};
"""


def play_slowly(page: Page) -> None:
    """Make songs last 16 times as long on the pages that this tab opens from now on."""
    page.add_init_script(_SLOW_SOUND)


def player_plays(page: Page, song_id: int | None = None):
    """Return the player, once it plays (this song)."""
    player = page.get_by_test_id("player")
    expect(player).to_have_attribute("data-state", "playing")
    if song_id is not None:
        expect(player).to_have_attribute("data-song-id", str(song_id))
    return player


def row_action(page: Page, row, name: str | re.Pattern[str]) -> None:
    """Open the menu of a row of the queue, and press a button in it."""
    row.get_by_role("button", name=re.compile("^Actions for")).click()
    row.get_by_role("button", name=name).click()


def send_sound(page: Page, file) -> None:
    """Send a file by the button for sound."""
    page.get_by_role("button", name="Add sound").click()
    page.get_by_label("A file, which you can also drop").set_input_files(file)


def rows(page: Page):
    """Return the rows of the visible song list."""
    return page.get_by_test_id("song-row")


def nearest_rows(page: Page):
    """Return the rows of the queue with a similarity: those before the walk."""
    return rows(page).filter(has=page.locator(".bar"))


def row_ids(page: Page) -> list[int]:
    return [int(row.get_attribute("data-song-id")) for row in rows(page).all()]


def expect_rows(page: Page, ids: list[int]) -> None:
    """Wait until the list has these songs, in this order."""
    for index, song_id in enumerate(ids):
        expect(rows(page).nth(index)).to_have_attribute("data-song-id", str(song_id))
    expect(rows(page)).to_have_count(len(ids))


def songs_of(home: Path, name: str = "library"):
    with Library.open(home / name) as library:
        return library.songs()


def map_range(drawn) -> list[float]:
    """Return the visible part of the map, in shares of it: left, right, bottom, top."""
    return drawn.evaluate(
        "({map: {view: {x, y, zoom}}}) => [x - 0.5 / zoom, x + 0.5 / zoom, y - 0.5 / zoom, y + 0.5 / zoom]"
    )


def zoom(page: Page, drawn, turns: int = 3, at: tuple[float, float] = (0.5, 0.4)) -> list[float]:
    """Turn the wheel over the map; return the range visible then."""
    box = drawn.locator(".stage").bounding_box()
    page.mouse.move(box["x"] + at[0] * box["width"], box["y"] + at[1] * box["height"])
    for _ in range(turns):
        before = map_range(drawn)
        page.mouse.wheel(0, -200)
        page.wait_for_function(
            "([{map}, left]) => map.view.x - 0.5 / map.view.zoom > left", arg=[drawn.element_handle(), before[0]]
        )
    return map_range(drawn)


def marked(page: Page, n_songs: int):
    """Return the button of the menu for the songs marked on the map."""
    return page.get_by_role("button", name=f"{n_songs} songs marked")


def about_song(page: Page, name: str | re.Pattern[str]) -> None:
    """Press a button in the menu of the current song."""
    page.get_by_role("button", name="More about this song").click()
    page.get_by_role("button", name=name, exact=isinstance(name, str)).click()


def color_by(page: Page, drawn, name: str) -> None:
    """Choose the colors of the map."""
    page.get_by_role("combobox", name="Color by").select_option(name)
    page.wait_for_function("([{map}, by]) => map.drawnBy === by", arg=[drawn.element_handle(), name])


def outline(page: Page, drawn, corners: list[tuple[float, float]], tool: str = "Lasso") -> None:
    """Draw an outline; corners are in shares of the stage's width and height."""
    show_all_tools(drawn)
    drawn.get_by_role("button", name=tool).click()
    box = drawn.locator(".stage").bounding_box()
    points = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in corners]
    page.mouse.move(*points[0])
    page.mouse.down()
    for x, y in points[1:]:
        page.mouse.move(x, y, steps=8)
    page.mouse.up()


def ask(page: Page, row: int = 0):
    """Press *Why?* on a result; return the dialog once its waveforms are drawn."""
    row_action(page, rows(page).nth(row), re.compile("^Why"))
    dialog = page.get_by_role("dialog", name="Why are these two similar?")
    expect(dialog.get_by_test_id("why-wave")).to_have_count(2)
    return dialog


def passages(dialog, title: str):
    """Return the buttons of the passages of a song."""
    return dialog.get_by_role("button", name=re.compile(rf"^(Play|Stop) \d+:\d\d to \d+:\d\d of {title}$"))


def sound(dialog) -> dict:
    """Return the state of the dialog's own sound."""
    return dialog.get_by_test_id("why-audio").evaluate("a => ({at: a.currentTime, paused: a.paused, src: a.src})")


def wait_for_sound(page: Page, playing: bool) -> None:
    page.wait_for_function(
        "playing => { for (const host of document.querySelectorAll('*')) {"
        " const a = (host.shadowRoot ?? host).querySelector('[data-testid=why-audio]');"
        " if (a) return playing ? !a.paused && a.currentTime > 0 : a.paused; } return false; }",
        arg=playing,
    )


def look_at(page: Page, address: str, history: Path) -> None:
    """Drop a file on the section for listening and show the preview."""
    visit(page, address, "library", "?section=listening")
    form = page.get_by_test_id("stForm").filter(has_text="Listening history files")
    form.locator("input[type=file]").set_input_files(history)
    expect(form.get_by_text(history.name)).to_be_visible()
    form.get_by_role("button", name="Preview", exact=True).click()


@contextmanager
def rerun(page: Page) -> Iterator[None]:
    """Wait until the app has run again after what is done inside, and is at rest.

    It also starts at rest: Streamlit ignores the key R during a run, and that run must not count.
    """
    page.wait_for_selector(IDLE)
    page.evaluate(
        """() => {
            const app = document.querySelector("[data-testid=stApp]");
            window.hasRun = false;
            const note = () => { window.hasRun ||= app.dataset.testScriptState !== "notRunning" };
            new MutationObserver(note).observe(app, {attributeFilter: ["data-test-script-state"]});
        }"""
    )
    yield
    page.wait_for_function("() => window.hasRun")
    page.wait_for_selector(IDLE)


def tick_close_spellings(page: Page) -> None:
    """Accept all similar spellings of a preview."""
    table = page.get_by_test_id("stDataFrame").first
    table.scroll_into_view_if_needed()
    table.locator("canvas").first.wait_for()
    box = table.bounding_box()
    page.mouse.click(box["x"] + 18, box["y"] + 18)  # the box above all rows
    expect(page.get_by_text("1 of 1 selected")).to_be_visible()


def hindrances(page: Page) -> list[tuple[object, ...]]:
    """Return violations of axe-core's accessibility rules."""
    found = Axe().run(page).response["violations"]
    return [
        (rule["id"], node["html"][:200], [check["message"] for check in node["any"]])
        for rule in found
        for node in rule["nodes"]
    ]
