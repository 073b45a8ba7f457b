"""Names from people and files, as the browser shows them in charts and exports them in tables."""

import csv

import pytest
from playwright.sync_api import expect

from musicsim.library.db import schema
from tests.browser.actions import APP, IDLE, rows, visit, wait_for_map
from tests.browser.serving import serve


def test_formula_in_genre_is_text_in_legend_and_csv(page, tiny_library):
    genre = """=1+1 'n' "Roll" & <b>R&amp;B</b>"""
    tiny_library.edits.edit([song.id for song in tiny_library.songs()[:6]], {"genre": genre})
    with serve(APP, environment={"MUSICSIM_LIBRARY": str(tiny_library.folder)}) as address:
        visit(page, address)
        legend = wait_for_map(page).locator(".legend")
        expect(legend.get_by_role("option", name=genre, exact=True)).to_be_visible()
        assert legend.locator("b").count() == 0

        visit(page, address, "library")
        table = page.get_by_test_id("stDataFrame").first
        table.hover()
        tools = page.get_by_test_id("stElementToolbar")
        for name in ("Search", "Fullscreen"):
            expect(tools.get_by_role("button", name=name)).to_be_attached()
        expect(tools.get_by_role("button", name="Download as CSV")).to_have_count(0)
        page.wait_for_selector(IDLE)
        with page.expect_download() as download:
            page.get_by_role("button", name="Download as CSV").last.click()
        with open(download.value.path(), newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        assert {row["genre"] for row in rows if "=" in row["genre"]} == {"'" + genre}
        assert len(rows) == len(tiny_library)


ADDRESSES = (
    "www.evil.example", "WWW.evil.example/a", "http://evil.example", "HTTPS://evil.example/b", "(www.evil.example)",
    "me@evil.example", "mailto:me@evil.example", "xmpp:me@evil.example/c", "ftp://evil.example", "[a](http://evil.example)",
    "<http://evil.example>", "http\u200b://evil.example www.evil.example",
)  # fmt: skip


def test_address_in_tag_is_no_link(page, tiny_library):
    for song, text in zip(tiny_library.songs(), ADDRESSES, strict=True):
        tiny_library.edits.edit([song.id], dict.fromkeys(("title", "artist", "album", "genre"), text))
    first = tiny_library.songs()[0]
    links = page.locator("a[href*=evil], a[href^=mailto], a[href^=xmpp]")
    with serve(APP, environment={"MUSICSIM_LIBRARY": str(tiny_library.folder)}) as address:
        for song in tiny_library.songs():
            visit(page, address, query=f"?song={song.id}")
            expect(page.get_by_role("heading", level=2).first).to_contain_text("evil.example")
            page.wait_for_selector(IDLE)
            expect(links).to_have_count(0)
        visit(page, address, "playlist", f"?song={first.id}")
        page.get_by_role("button", name="Generate", exact=True).first.click()
        expect(rows(page).first).to_be_visible()
        page.wait_for_selector(IDLE)
        expect(links).to_have_count(0)
        for section in ("albums", "songs", "same", "artists"):
            visit(page, address, "library", f"?section={section}")
            page.wait_for_selector(IDLE)
            expect(links).to_have_count(0)


MEASURE = """rows => rows.map(
    row => [row.querySelector(".title").offsetHeight, row.offsetHeight, row.title.length]
)"""


@pytest.mark.parametrize("width", [1280, 390])
def test_long_title_takes_two_lines(page, tiny_library, width):
    songs = tiny_library.songs()
    titles = ["A title of many words, " * 13, "x" * 230]
    with tiny_library.write() as connection:
        for number, song in enumerate(songs):
            change = schema.songs.update().where(schema.songs.c.id == song.id)
            connection.execute(change.values(title=titles[number % 2].strip(), artist=titles[1 - number % 2]))
    page.set_viewport_size({"width": width, "height": 844})
    with serve(APP, environment={"MUSICSIM_LIBRARY": str(tiny_library.folder)}) as address:
        for song in songs[:2]:
            visit(page, address, query=f"?song={song.id}")
            expect(rows(page).first).to_be_visible()
            page.wait_for_selector(IDLE)
            # the title and the list may be drawn again at any time, so each is found and measured at one moment
            title_height = page.get_by_test_id("listen").evaluate("part => part.querySelector('.card h2').offsetHeight")
            assert 0 < title_height < 80
            measured = page.get_by_test_id("song-row").locator(".words").evaluate_all(MEASURE)
            assert measured
            for title_height, height, n_characters in measured:
                assert title_height < 52
                assert height < 140, "two lines each of title, artist and reason"
                assert n_characters > 230
            assert page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth") <= width
        page.get_by_test_id("stMainBlockContainer").get_by_role("button", name="Play", exact=True).click()
        player = page.get_by_test_id("player-title")
        expect(player).to_have_attribute("title", f"{titles[1]}\nShow this song")
        assert player.bounding_box()["height"] < 30
        visit(page, address, "playlist", f"?song={songs[0].id}")
        page.get_by_role("button", name="Generate", exact=True).first.click()
        expect(rows(page).first).to_be_visible()
        page.wait_for_selector(IDLE)
        for part in page.get_by_test_id("song-row").locator(".words").all():
            assert part.locator(".title").bounding_box()["height"] < 52
            assert part.bounding_box()["height"] < 140
