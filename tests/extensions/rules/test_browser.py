"""A rule in the browser: the count follows the typing; the rule is saved, played, exported, deleted and restored."""

import json
import re

from playwright.sync_api import expect

from musicsim.extensions.rules.store import RuleStore
from musicsim.library import Library
from tests.browser.actions import IDLE, player_plays, rows, songs_of, visit


def test_rule_is_written_played_and_deleted(page, address, home):
    tempos = sorted(song.tempo for song in songs_of(home) if song.tempo)
    fast = f"{round(tempos[-3] - 0.05, 1):g}"
    expected = {song.id for song in songs_of(home) if song.tempo and song.tempo >= float(fast)}
    visit(page, address, "playlist")
    page.get_by_role("button", name="New rule").click()
    main = page.get_by_test_id("stMain")
    expect(main.get_by_text("Fill in a condition")).to_be_visible()
    value = page.get_by_role("textbox", name="Value")
    value.press_sequentially(fast)  # neither Enter nor a click elsewhere
    expect(main.get_by_text(re.compile(f"^{len(expected)} songs? meets? the conditions"))).to_be_visible()
    expect(rows(page)).to_have_count(len(expected))
    assert {int(row.get_attribute("data-song-id")) for row in rows(page).all()} == expected
    page.wait_for_selector(IDLE)
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_role("textbox", name="Name").press_sequentially("Fast songs")
    page.get_by_role("button", name="Save the rule").click()
    expect(page.get_by_text("“Fast songs” was saved.")).to_be_visible()
    with Library.open(home / "library") as library:
        assert str(RuleStore(library).get("Fast songs").rule) == f"tempo:{fast}.."
    page.wait_for_selector(IDLE)
    page.get_by_role("button", name="Play", exact=True).first.click()
    player_plays(page)
    page.get_by_role("button", name="Export", exact=True).click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download").click()
    document = json.loads(download.value.path().read_text(encoding="utf-8"))
    assert document["groups"][0]["conditions"][0]["value"] == [float(fast)]
    page.keyboard.press("Escape")
    page.get_by_role("button", name="All playlists").click()
    page.get_by_role("button", name="Options of “Fast songs”").click()
    page.get_by_role("menuitem", name="Delete").click()
    expect(main.get_by_text("“Fast songs” was deleted.")).to_be_visible()
    page.get_by_role("button", name="Undo", exact=True).click()
    page.get_by_role("button", name="Fast songs", exact=True).click()
    expect(page.get_by_role("textbox", name="Value")).to_have_value(fast)
    page.get_by_role("button", name="Open as a playlist").click()
    expect(page.get_by_role("heading", name=re.compile(f"^{len(expected)} songs? ·"))).to_be_visible()
