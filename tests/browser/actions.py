"""What people do on the pages, and what they see, in a real browser."""

import re
from pathlib import Path

from playwright.sync_api import Page, expect

from musicsim.library import Library

APP = Path(__file__).parents[2] / "app.py"
IDLE = "[data-testid=stApp][data-test-script-state=notRunning]"


PAGES = {
    "explore": "Explore",
    "search": "Search by example",
    "playlist": "Playlist",
    "train": "Train",
    "compare": "Compare",
    "evaluate": "Evaluate",
    "library": "Library",
}


def visit(page: Page, address: str, name: str = "explore", query: str = "") -> None:
    """Open a page by its address."""
    page.goto(f"{address}/{'' if name == 'explore' else name}{query}", wait_until="commit")
    expect(page.get_by_role("heading", name=PAGES[name], exact=True)).to_be_visible()


def switch(page: Page, name: str) -> None:
    """Move to another page as a person does."""
    page.get_by_test_id("stSidebarNavLink").filter(has_text=PAGES[name]).click()
    expect(page.get_by_role("heading", name=PAGES[name], exact=True)).to_be_visible()


def train_a_ranking(page: Page) -> None:
    """Start a training that always ends with a model, where the automatic method may keep the sound alone."""
    page.get_by_role("combobox", name=re.compile("Method")).click()
    page.get_by_role("option", name=re.compile("A ranking")).click()
    page.wait_for_selector(IDLE)
    page.locator(".st-key-train_start button:visible").first.click()


def wait_for_map(page: Page):
    """The plot, once its points are drawn."""
    plot = page.locator(".js-plotly-plot").first
    plot.wait_for()
    page.wait_for_function(
        "() => { const p = document.querySelector('.js-plotly-plot');"
        " return p && p._fullLayout && p.querySelector('.gl-canvas') && p.data.length > 0 }"
    )
    return plot


def names_on_map(plot) -> list[str]:
    """Names of the traces with how many points they have."""
    return plot.evaluate("p => p._fullData.map(t => `${t.name}:${t.x.length}`)")


def click_song(page: Page, plot, song_id: int) -> None:
    """Click the point of a song."""
    x, y = plot.evaluate(
        """(p, id) => {
            for (const t of p._fullData) {
                const i = (t.customdata || []).findIndex(c => c === id);
                if (i < 0) continue;
                const box = p.getBoundingClientRect(), l = p._fullLayout;
                return [box.x + l._size.l + l.xaxis.l2p(t.x[i]), box.y + l._size.t + l.yaxis.l2p(t.y[i])];
            }
        }""",
        song_id,
    )
    page.mouse.move(x - 3, y)
    page.mouse.move(x, y)
    page.wait_for_timeout(600)  # plotly has to have seen the hover
    page.mouse.click(x, y)


def player_plays(page: Page, song_id: int | None = None):
    """The player, once it plays (this song)."""
    player = page.get_by_test_id("player")
    expect(player).to_have_attribute("data-state", "playing")
    if song_id is not None:
        expect(player).to_have_attribute("data-song-id", str(song_id))
    return player


def rows(page: Page):
    """Rows of the song list that is shown."""
    return page.get_by_test_id("song-row")


def row_ids(page: Page) -> list[int]:
    return [int(row.get_attribute("data-song-id")) for row in rows(page).all()]


def songs_of(home: Path, name: str = "library"):
    with Library.open(home / name) as library:
        return library.songs()


def map_range(plot) -> list[float]:
    """What part of the map is looked at: left, right, bottom, top."""
    return plot.evaluate("p => [...p._fullLayout.xaxis.range, ...p._fullLayout.yaxis.range]")


def zoom(page: Page, plot, turns: int = 3, at: tuple[float, float] = (0.5, 0.4)) -> list[float]:
    """Turn the wheel over the map; give what is looked at then."""
    box = plot.bounding_box()
    page.mouse.move(box["x"] + at[0] * box["width"], box["y"] + at[1] * box["height"])
    for _ in range(turns):
        before = map_range(plot)
        page.mouse.wheel(0, -400)
        page.wait_for_function(
            "([p, before]) => p._fullLayout.xaxis.range[0] > before[0]", arg=[plot.element_handle(), before]
        )
    page.wait_for_timeout(300)  # plotly ends a turn of the wheel a little after it
    return map_range(plot)


def lasso(page: Page, plot, corners: list[tuple[float, float]]) -> None:
    """Draw an outline; corners in shares of the width and height that the songs have."""
    page.locator(".modebar-btn[data-val=lasso]").click(force=True)
    box, size = plot.bounding_box(), plot.evaluate("p => p._fullLayout._size")
    points = [(box["x"] + x * size["w"], box["y"] + y * size["h"]) for x, y in corners]
    page.mouse.move(*points[0])
    page.mouse.down()
    for x, y in [*points[1:], points[0]]:
        page.mouse.move(x, y, steps=8)
    page.mouse.up()


def ask(page: Page, row: int = 0):
    """Press *Why?* on an answer; give the dialog once its waveforms are drawn."""
    rows(page).nth(row).get_by_role("button", name=re.compile("^Why")).click()
    dialog = page.get_by_role("dialog", name="Why are these two alike?")
    expect(dialog.get_by_test_id("why-wave")).to_have_count(2)
    return dialog


def passages(dialog, title: str):
    """Buttons of the passages of a song."""
    return dialog.get_by_role("button", name=re.compile(rf"^(Play|Stop) \d+:\d\d to \d+:\d\d of {title}$"))


def sound(dialog) -> dict:
    """What the dialog's own sound does."""
    return dialog.get_by_test_id("why-audio").evaluate(
        "a => ({at: a.currentTime, paused: a.paused, src: a.src})"
    )


def wait_for_sound(page: Page, playing: bool) -> None:
    page.wait_for_function(
        "playing => { for (const host of document.querySelectorAll('*')) {"
        " const a = (host.shadowRoot ?? host).querySelector('[data-testid=why-audio]');"
        " if (a) return playing ? !a.paused && a.currentTime > 0 : a.paused; } return false; }",
        arg=playing,
    )


def look_at(page: Page, address: str, history: Path) -> None:
    """Drop a file on the section for listening and ask what would come of it."""
    visit(page, address, "library")
    page.get_by_test_id("stButtonGroup").get_by_text("Listening", exact=True).click()
    form = page.get_by_test_id("stForm").filter(has_text="Listening history files")
    form.locator("input[type=file]").set_input_files(history)
    expect(form.get_by_text(history.name)).to_be_visible()
    form.get_by_role("button", name="Preview", exact=True).click()


def close_spellings(page: Page):
    """Tick all rows of the table of close spellings."""
    table = page.get_by_test_id("stDataFrame").first
    table.scroll_into_view_if_needed()
    table.locator("canvas").first.wait_for()
    box = table.bounding_box()
    page.mouse.click(box["x"] + 18, box["y"] + 18)  # the box above all rows
