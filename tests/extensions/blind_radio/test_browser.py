"""A trial in the browser: two models take turns, a skip counts, and the names stay hidden until they are shown."""

import json

from playwright.sync_api import expect

from musicsim.extensions.blind_radio.store import RadioStore
from musicsim.library import Library
from tests.browser.actions import open_measurement, player_plays, row_ids, rows, songs_of, visit
from tests.browser.test_listen import listen_for
from tests.waiting import until

PLAYER = "window[Symbol.for('musicsim.player')]"


def test_models_take_turns_in_the_queue_until_names_are_shown(page, address, home):
    visit(page, address, "research")
    open_measurement(page, "Blind radio")
    main = page.get_by_test_id("stMain")
    page.get_by_role("button", name="Start a trial").click()
    expect(main.get_by_text("0 songs counted, 0 others did not.")).to_be_visible()
    visit(page, address, query=f"?song={songs_of(home)[1].id}")
    expect(rows(page)).to_have_count(11)
    expect(page.locator("[data-testid=song-row] .bar")).to_have_count(0)  # no similarity and no reason: all are turns
    ids = row_ids(page)
    page.get_by_test_id("listen").get_by_role("button", name="Play", exact=True).click()
    player_plays(page, songs_of(home)[1].id)
    page.wait_for_function(f"() => {PLAYER}.tracks.length === 12 && {PLAYER}.tracks.slice(1).every(t => t.choice_id)")
    sent = page.evaluate(f"() => JSON.stringify({PLAYER}.tracks)")
    assert not any(name in sent for name in ("Codewords", '"A"', '"B"')), "the browser does not know the model"
    assert {track["reason"] for track in json.loads(sent)} == {""}
    page.get_by_test_id("player-next").click()
    player_plays(page, ids[0])
    listen_for(page, 5.5)
    page.get_by_test_id("player-next").click()
    player_plays(page, ids[1])
    listen_for(page, 11)  # more than half of 20 s
    with Library.open(home / "library") as library:
        store = RadioStore(library)
        trial = store.get_latest()
        until(lambda: len(store.settle(trial)) == 1)
        (turn,) = store.settle(trial)
        assert (turn.song_id, turn.is_skip, turn.is_first) == (ids[0], True, True)
        assert 0.2 < turn.outcome < 0.5  # half of 5.5 of the 10 s that a song of 20 s needs
    visit(page, address, "research")
    open_measurement(page, "Blind radio")
    expect(main.get_by_text("0 songs counted, 1 other did not.")).to_be_visible()
    expect(main.get_by_text("is “")).to_have_count(0)
    page.get_by_role("button", name="Show the names").click()
    expect(main.get_by_text(f"A is “{trial.name_a}”.")).to_be_visible()
    expect(page.get_by_role("button", name="Start a trial")).to_be_visible()
    visit(page, address, query=f"?song={songs_of(home)[2].id}")
    expect(page.locator("[data-testid=song-row] .bar").first).to_be_visible()
