"""The app without a mouse."""

import re

from playwright.sync_api import expect

from tests.browser.actions import IDLE, play_slowly, player_plays, rows, songs_of, switch, visit


def test_arrow_keys_move_through_song_list(page, address, home):
    visit(page, address, "listen", f"?song={songs_of(home)[0].id}")
    list_ = rows(page)
    list_.nth(0).get_by_role("button", name=re.compile("^Play")).focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(list_.nth(2).get_by_role("button", name=re.compile("^Play"))).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(list_.nth(1).get_by_role("button", name=re.compile("^Play"))).to_be_focused()
    page.keyboard.press("End")
    expect(list_.last.get_by_role("button", name=re.compile("^Play"))).to_be_focused()
    page.keyboard.press("ArrowDown")  # it was the last one
    expect(list_.last.get_by_role("button", name=re.compile("^Play"))).to_be_focused()
    box, player = list_.last.bounding_box(), page.get_by_test_id("player").bounding_box()
    assert box["y"] + box["height"] <= player["y"], "what has the focus is behind the player"
    page.keyboard.press("Enter")
    player_plays(page, int(list_.last.get_attribute("data-song-id")))


def test_question_mark_lists_keys(page, address):
    visit(page, address)
    expect(page.get_by_test_id("player")).to_be_visible()
    page.wait_for_selector(IDLE)
    sheet = page.get_by_test_id("player-keys")
    page.keyboard.press("?")
    expect(sheet).to_be_visible()
    expect(sheet).to_contain_text("previous song, next song")
    page.keyboard.press("Escape")
    expect(sheet).to_be_hidden()


def test_only_one_tab_plays(page, address, home):
    songs = songs_of(home)
    play_slowly(page)
    visit(page, address, "listen", f"?song={songs[0].id}")
    page.get_by_test_id("stMainBlockContainer").get_by_role("button", name="Play", exact=True).click()
    first = player_plays(page, songs[0].id)
    other = page.context.new_page()
    play_slowly(other)
    visit(other, address, "listen", f"?song={songs[1].id}")
    other.get_by_test_id("stMainBlockContainer").get_by_role("button", name="Play", exact=True).click()
    player_plays(other, songs[1].id)
    expect(first).to_have_attribute("data-state", "paused")


def test_presentation_has_large_type_and_no_sidebar(page, address):
    visit(page, address, query="?presentation")
    side_bar = page.get_by_test_id("stSidebar")
    size = "() => getComputedStyle(document.documentElement).fontSize"
    expect(side_bar).to_be_hidden()
    large = float(page.evaluate(size).removesuffix("px"))
    page.keyboard.press("p")
    expect(side_bar).to_be_visible()
    assert large > 1.3 * float(page.evaluate(size).removesuffix("px"))
    page.get_by_test_id("player-menu").click()
    page.get_by_test_id("player-presentation").check()
    expect(side_bar).to_be_hidden()
    page.reload()
    expect(page.get_by_test_id("player")).to_be_visible()
    expect(side_bar).to_be_hidden()
    page.keyboard.press("p")
    switch(page, "playlist")
    expect(side_bar).to_be_visible()
