"""Tests of the blind comparison in the browser: two lists, an answer by key, then the names and the result."""

import re

from playwright.sync_api import expect

from musicsim.library import Library
from tests.browser.actions import IDLE, player_plays, rows, visit


def test_two_playlists_are_compared_by_keyboard(page, address, home):
    visit(page, address, "playlist")
    page.get_by_test_id("stMain").get_by_text("Which is better?", exact=True).first.click()
    page.get_by_role("button", name="Generate two playlists").click()
    expect(rows(page)).to_have_count(16)
    main = page.get_by_test_id("stMain")
    expect(main.get_by_text("was made by")).to_have_count(0)
    expect(page.get_by_test_id("transition")).to_have_count(0)  # reasons would reveal the model
    rows(page).nth(8).get_by_role("button", name=re.compile("^Play")).click()
    player_plays(page)
    expect(page.locator(IDLE)).to_have_count(1)
    page.keyboard.press("2")
    expect(main.get_by_text(re.compile("You chose list 2. List 1 was made by"))).to_be_visible()
    expect(page.get_by_test_id("transition")).to_have_count(14)
    with Library.open(home / "library") as library:
        assert len(library.judgments.all("playlists")) == 1
    page.keyboard.press("n")
    expect(page.get_by_role("button", name=re.compile("^List 1 is better"))).to_be_visible()
    expect(main.get_by_text("was made by")).to_have_count(0)
    page.get_by_role("button", name="Undo last answer").click()
    expect(main.get_by_text("No answers yet.")).to_be_visible()
    with Library.open(home / "library") as library:
        assert library.judgments.all("playlists") == []
